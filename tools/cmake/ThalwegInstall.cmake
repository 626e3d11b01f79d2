# Installs the C++ libraries, the public headers and thalwegConfig.cmake (component "cpp"); the Python module is
# installed by bindings/ (component "python").
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/thalweg")

set(exported)
if(TARGET thalweg_engine)
  install(TARGETS thalweg_engine EXPORT thalwegTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT cpp)
  set(exported TRUE)
endif()
if(TARGET thalweg_kernels_cpu)
  install(TARGETS thalweg_kernels_cpu EXPORT thalwegTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp)
endif()
if(exported)
  install(EXPORT thalwegTargets NAMESPACE thalweg:: DESTINATION "${package_dir}" COMPONENT cpp)
endif()

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/thalwegConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/thalwegConfig.cmake" INSTALL_DESTINATION "${package_dir}")
# While the version is 0.x a new minor version may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/thalwegConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/thalwegConfig.cmake"
    "${PROJECT_BINARY_DIR}/thalwegConfigVersion.cmake"
    "${CMAKE_CURRENT_LIST_DIR}/FindThalwegSleef.cmake"
    "${CMAKE_CURRENT_LIST_DIR}/FindThalwegHighway.cmake"
  DESTINATION "${package_dir}" COMPONENT cpp)
