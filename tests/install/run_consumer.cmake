# Installs the component devel from BUILD, then configures, builds and runs CONSUMER against it below WORK.
set(prefix ${WORK}/prefix)
file(REMOVE_RECURSE ${prefix} ${WORK}/consumer)
include(${CMAKE_CURRENT_LIST_DIR}/step.cmake)
step(${CMAKE_COMMAND} --install ${BUILD} --component devel --prefix ${prefix})
step(${CMAKE_CURRENT_LIST_DIR}/../../scripts/check_elf.py --installed ${prefix})
if(NOT LLVM STREQUAL "shared")
  own_libraries(${prefix}/lib/liblockstep.so ${prefix})
endif()
step(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/consumer -G Ninja -D CMAKE_PREFIX_PATH=${prefix}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_BUILD_TYPE=Release)
step(${CMAKE_COMMAND} --build ${WORK}/consumer)
step(${WORK}/consumer/consumer)
# The examples, which link what the library instantiates.
step(${CMAKE_COMMAND} -S ${CONSUMER}/../../../examples -B ${WORK}/examples -G Ninja -D CMAKE_PREFIX_PATH=${prefix}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_BUILD_TYPE=Debug)
step(${CMAKE_COMMAND} --build ${WORK}/examples --target example_own_case example_robot_arm example_recorded_loop)
step(${WORK}/examples/example_own_case verify --device interp)
step(${WORK}/examples/example_recorded_loop verify --device interp)
step(${WORK}/examples/example_own_case emit example.logistic --target wgsl)
