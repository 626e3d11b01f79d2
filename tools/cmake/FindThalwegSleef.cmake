# Defines thalweg::sleef, the SIMD vector-math library of the CPU kernels. Installed beside thalwegConfig.cmake,
# because a program that links the static kernels needs it too.
if(NOT TARGET thalweg::sleef)
  find_path(THALWEG_SLEEF_INCLUDE sleef.h)
  find_library(THALWEG_SLEEF_LIBRARY sleef)
  if(NOT THALWEG_SLEEF_INCLUDE OR NOT THALWEG_SLEEF_LIBRARY)
    message(FATAL_ERROR "SLEEF (sleef.h, libsleef) was not found. On Debian or Ubuntu: apt-get install libsleef-dev")
  endif()
  add_library(thalweg::sleef UNKNOWN IMPORTED)
  set_target_properties(thalweg::sleef PROPERTIES
    IMPORTED_LOCATION "${THALWEG_SLEEF_LIBRARY}"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${THALWEG_SLEEF_INCLUDE}"
    INTERFACE_INCLUDE_DIRECTORIES "${THALWEG_SLEEF_INCLUDE}")
endif()
