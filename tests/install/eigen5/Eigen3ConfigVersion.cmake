# As Eigen's own file: another major version than the requested one is incompatible.
set(PACKAGE_VERSION 5.0.1)
if(PACKAGE_FIND_VERSION_MAJOR EQUAL 5)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
