# Defines thalweg::highway, whose vectorised sort the CPU kernels use. Installed beside thalwegConfig.cmake, because a
# program that links the static kernels needs it too.
if(NOT TARGET thalweg::highway)
  find_path(THALWEG_HIGHWAY_INCLUDE hwy/contrib/sort/vqsort.h)
  find_library(THALWEG_HIGHWAY_LIBRARY hwy)
  find_library(THALWEG_HIGHWAY_CONTRIB_LIBRARY hwy_contrib)
  if(NOT THALWEG_HIGHWAY_INCLUDE OR NOT THALWEG_HIGHWAY_LIBRARY OR NOT THALWEG_HIGHWAY_CONTRIB_LIBRARY)
    message(FATAL_ERROR "Highway (hwy/contrib/sort/vqsort.h, libhwy_contrib) was not found. On Debian or Ubuntu: "
                        "apt-get install libhwy-dev")
  endif()
  add_library(thalweg::highway INTERFACE IMPORTED)
  set_target_properties(thalweg::highway PROPERTIES
    INTERFACE_LINK_LIBRARIES "${THALWEG_HIGHWAY_CONTRIB_LIBRARY};${THALWEG_HIGHWAY_LIBRARY}"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${THALWEG_HIGHWAY_INCLUDE}"
    INTERFACE_INCLUDE_DIRECTORIES "${THALWEG_HIGHWAY_INCLUDE}")
endif()
