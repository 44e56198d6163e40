# Stands for an installed Eigen 5 while CMake configures; nothing is compiled with it.
add_library(Eigen3::Eigen INTERFACE IMPORTED)
