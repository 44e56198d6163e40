# Installation. Two components:
#   portable  bin/lockstep and lib/ with everything it loads that a bare Linux with glibc >= 2.35 may lack
#   devel     liblockstep.so with the same libraries, the public headers and find_package(lockstep)
include(CMakePackageConfigHelpers)
include(${CMAKE_CURRENT_LIST_DIR}/LockstepBuiltParts.cmake)
if(TARGET lockstep_cli)
  lockstep_install_built_parts(lockstep_cli lockstep_shared)
endif()

# --- portable: the program, wgpu-native, and the shared libraries they need.
if(TARGET lockstep_cli)
  # In the build tree too: CMake would keep room for it there with empty entries, each of which is the current folder.
  set_target_properties(lockstep_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../lib" BUILD_WITH_INSTALL_RPATH ON)
  # DT_RPATH, unlike DT_RUNPATH, also serves the libraries that the bundled libraries need.
  target_link_options(lockstep_cli PRIVATE -Wl,--disable-new-dtags)
  install(TARGETS lockstep_cli RUNTIME DESTINATION bin COMPONENT portable)
  install(FILES LICENSE DESTINATION . COMPONENT portable)
  install(FILES src/io/pictures/fonts/LICENSE DESTINATION . RENAME LICENSE.fonts COMPONENT portable)
  install(FILES ${CMAKE_BINARY_DIR}/lib/libwgpu_native-release.so DESTINATION lib COMPONENT portable OPTIONAL)
  lockstep_install_dependencies(EXECUTABLES lockstep_cli lib portable)
endif()

# --- devel: every library in one, for users of the C++ interface.
get_property(applications GLOBAL PROPERTY LOCKSTEP_APPLICATIONS)
set(LOCKSTEP_PUBLIC_PARTS core ir math autodiff compile clike llvm device device_interp device_cpu device_cuda
  device_webgpu verify math_cases primitives primitives_cases gradients gradient_cases optimize parallel io nn ${applications})
foreach(part IN LISTS LOCKSTEP_PUBLIC_PARTS)
  if(TARGET lockstep_${part})
    get_target_property(kind lockstep_${part} TYPE)
    if(kind STREQUAL "STATIC_LIBRARY")
      list(APPEND whole lockstep_${part})
    endif()
  endif()
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/lockstep_shared.cpp "// Holds the static libraries together.\n")
add_library(lockstep_shared SHARED ${CMAKE_BINARY_DIR}/lockstep_shared.cpp)
add_library(lockstep::lockstep ALIAS lockstep_shared)
# Every object goes in, then the same libraries once more for what they depend on.
foreach(part IN LISTS whole)
  list(APPEND archives $<TARGET_FILE:${part}>)
endforeach()
target_link_options(lockstep_shared PRIVATE -Wl,--whole-archive ${archives} -Wl,--no-whole-archive)
add_dependencies(lockstep_shared ${whole})
set_property(TARGET lockstep_shared APPEND PROPERTY LINK_DEPENDS ${archives})
target_link_libraries(lockstep_shared PRIVATE ${whole})
target_include_directories(lockstep_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_features(lockstep_shared INTERFACE cxx_std_20)
# Only names of the namespace lockstep leave the library, not those of LLVM and others inside it.
set(version_script ${PROJECT_SOURCE_DIR}/cmake/lockstep.version)
target_link_options(lockstep_shared PRIVATE -Wl,--version-script=${version_script} -Wl,-Bsymbolic)
set_target_properties(lockstep_shared PROPERTIES
  OUTPUT_NAME lockstep EXPORT_NAME lockstep VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib INSTALL_RPATH "$ORIGIN/lockstep" BUILD_WITH_INSTALL_RPATH ON)
target_link_options(lockstep_shared PRIVATE -Wl,--disable-new-dtags)
# In a folder of their own: below /usr/local, other programs would take them for those of the system.
lockstep_install_dependencies(LIBRARIES lockstep_shared lib/lockstep devel)
set_property(TARGET lockstep_shared APPEND PROPERTY LINK_DEPENDS ${version_script})

set(package_folder lib/cmake/lockstep)
install(TARGETS lockstep_shared EXPORT lockstep LIBRARY DESTINATION lib COMPONENT devel)
install(EXPORT lockstep NAMESPACE lockstep:: DESTINATION ${package_folder} COMPONENT devel)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/lockstep DESTINATION include COMPONENT devel
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.def")
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/lockstepConfig.cmake.in ${CMAKE_BINARY_DIR}/lockstepConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/lockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/lockstepConfig.cmake ${CMAKE_BINARY_DIR}/lockstepConfigVersion.cmake
  DESTINATION ${package_folder} COMPONENT devel)
