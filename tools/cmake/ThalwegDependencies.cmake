# Finds oneTBB, nlohmann_json, SLEEF, Highway, pocketfft, libdivide and threads: from Debian's packages or from PyPI's.

# In a wheel build oneTBB comes from PyPI's tbb-devel, which keeps TBBConfig.cmake outside site-packages, where
# CMake does not look by itself; the build backend's interpreter knows the place.
if(SKBUILD AND NOT TBB_DIR)
  find_package(Python COMPONENTS Interpreter REQUIRED)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "
import importlib.metadata as metadata
files = metadata.files('tbb-devel') or []
print(next(str(f.locate().resolve().parent) for f in files if f.name == 'TBBConfig.cmake'))"
    OUTPUT_VARIABLE pypi_tbb_dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
# ThreadSanitizer reports false races in an oneTBB that was built without it.
if(THALWEG_SANITIZE STREQUAL "thread")
  set(tsan_tbb "${THALWEG_TSAN_TBB}")
  if(NOT tsan_tbb)
    set(tsan_tbb "${PROJECT_SOURCE_DIR}/build/tsan-tbb/lib/cmake/TBB")
  endif()
  if(NOT EXISTS "${tsan_tbb}/TBBConfig.cmake")
    message(FATAL_ERROR "THALWEG_SANITIZE=thread needs an instrumented oneTBB and ${tsan_tbb} has none. "
                        "Run tools/build_tsan_tbb, or set THALWEG_TSAN_TBB to the folder of its TBBConfig.cmake.")
  endif()
  set(TBB_DIR "${tsan_tbb}" CACHE PATH "" FORCE)
endif()
find_package(TBB CONFIG REQUIRED COMPONENTS tbb HINTS "${pypi_tbb_dir}")
if(TBB_VERSION VERSION_LESS 2021.8)
  message(FATAL_ERROR "oneTBB ${TBB_VERSION} found at ${TBB_DIR}; 2021.8 or newer is needed")
endif()
message(STATUS "oneTBB ${TBB_VERSION}: ${TBB_DIR}")

find_package(Threads REQUIRED)

# PyPI's nlohmann-json ships the headers alone, without a CMake config.
find_package(nlohmann_json 3.10 CONFIG QUIET)
if(NOT TARGET nlohmann_json::nlohmann_json)
  find_path(THALWEG_NLOHMANN_INCLUDE nlohmann/json.hpp
    HINTS ${CMAKE_PREFIX_PATH} PATH_SUFFIXES nlohmann_json/include NO_CACHE REQUIRED)
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
  target_include_directories(nlohmann_json::nlohmann_json SYSTEM INTERFACE "${THALWEG_NLOHMANN_INCLUDE}")
endif()

include(FindThalwegSleef)
include(FindThalwegHighway)

# pocketfft is a header of its own, which several packages carry.
find_path(THALWEG_POCKETFFT_INCLUDE pocketfft_hdronly.h PATH_SUFFIXES gemmi/third_party pocketfft)
if(NOT THALWEG_POCKETFFT_INCLUDE)
  message(FATAL_ERROR "pocketfft (pocketfft_hdronly.h) was not found. On Debian or Ubuntu: apt-get install gemmi-dev; "
                      "elsewhere set THALWEG_POCKETFFT_INCLUDE to its folder")
endif()
add_library(thalweg::pocketfft INTERFACE IMPORTED)
target_include_directories(thalweg::pocketfft SYSTEM INTERFACE "${THALWEG_POCKETFFT_INCLUDE}")

# libdivide is a header too; its CMake config is not in every package.
find_path(THALWEG_LIBDIVIDE_INCLUDE libdivide.h)
if(NOT THALWEG_LIBDIVIDE_INCLUDE)
  message(FATAL_ERROR "libdivide (libdivide.h) was not found. On Debian or Ubuntu: apt-get install libdivide-dev; "
                      "elsewhere set THALWEG_LIBDIVIDE_INCLUDE to its folder")
endif()
add_library(thalweg::libdivide INTERFACE IMPORTED)
target_include_directories(thalweg::libdivide SYSTEM INTERFACE "${THALWEG_LIBDIVIDE_INCLUDE}")
