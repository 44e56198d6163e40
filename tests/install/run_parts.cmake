# A plain install of a build that lacks a component takes the other one and names what is left out.
# Arguments: SOURCE, SETUP, WORK, COMPILER.
include(${CMAKE_CURRENT_LIST_DIR}/step.cmake)
file(REMOVE_RECURSE ${WORK}/parts)
set(build ${WORK}/parts/build)
step(${CMAKE_COMMAND} -S ${SOURCE} -B ${build} -D SETUP=${SETUP} -D CMAKE_CXX_COMPILER=${COMPILER})

# Installs `component` (empty: a plain install) into a new prefix and compares the exit code, a text and the files.
function(expect component code text files)
  set(prefix ${WORK}/parts/prefix)
  file(REMOVE_RECURSE ${prefix})
  set(of)
  if(component)
    set(of --component ${component})
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${build} --prefix ${prefix} ${of}
    RESULT_VARIABLE got OUTPUT_VARIABLE out ERROR_VARIABLE err)
  string(REGEX REPLACE "[ \n]+" " " said "${out}${err}")
  file(GLOB_RECURSE found RELATIVE ${prefix} ${prefix}/*)
  string(FIND "${said}" "${text}" at)
  if(NOT "${got}" STREQUAL "${code}" OR at EQUAL -1 OR NOT "${found}" STREQUAL "${files}")
    message(FATAL_ERROR "component '${component}': exit code ${got}, files '${found}', output:\n${said}\nexpected ${code}, "
      "'${files}', '${text}'")
  endif()
endfunction()

expect("" 1 "nothing is built" "")
expect(devel 1 "component devel is not built: cmake --build ${build} --target parts_library" "")
step(${CMAKE_COMMAND} --build ${build} --target parts_program)
expect("" 0 "component devel, the C++ library (cmake --build ${build} --target parts_library)" "bin/parts_program")
expect(devel 1 "component devel is not built" "")
expect(portable 0 "bin/parts_program" "bin/parts_program")
step(${CMAKE_COMMAND} --build ${build} --target parts_library)
expect("" 0 "libparts_library.so" "bin/parts_program;include/library.cpp;lib/libparts_library.so")
