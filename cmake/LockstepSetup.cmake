# Language level, warnings, sanitizers and the helpers that every folder's list uses.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# liblockstep.so exports by cmake/lockstep.version; inside it, calls may bind directly.
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
add_compile_options(-fno-semantic-interposition)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(LOCKSTEP_CCACHE ccache)
if(LOCKSTEP_CCACHE)
  # Paths below the checkout are kept relative, so that another checkout's objects serve this one.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true
    ${LOCKSTEP_CCACHE})
endif()
# Neighbours in a list of sources are compiled as one: each header is read once for all of them. So no two files of a folder give different
# things the same name, in anonymous namespaces neither.
set(CMAKE_UNITY_BUILD ${LOCKSTEP_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE ${LOCKSTEP_UNITY_FILES})
# A compiler needs up to 1.3 GB for such a unit.
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR compilers "1 + ${memory} / 1500")
set_property(GLOBAL APPEND PROPERTY JOB_POOLS compilers=${compilers})
set(CMAKE_JOB_POOL_COMPILE compilers)

find_program(LOCKSTEP_LLD NAMES ld.lld-19 ld.lld)
if(LOCKSTEP_LLD)
  add_link_options(-B${CMAKE_BINARY_DIR}/linker -fuse-ld=lld)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/linker)
  file(CREATE_LINK ${LOCKSTEP_LLD} ${CMAKE_BINARY_DIR}/linker/ld.lld SYMBOLIC)
endif()
add_link_options(-Wl,--gc-sections)
add_compile_options(-ffunction-sections -fdata-sections)

# Bit equality: the host compiler may neither contract nor reassociate anything.
add_compile_options(-ffp-contract=off -fno-fast-math)

add_library(lockstep_warnings INTERFACE)
# GCC 12 reports std::string where nothing overlaps. Clang reports shifts beside comparisons, one level of braces around arrays, and
# what GCC's headers use themselves.
set(gcc $<CXX_COMPILER_ID:GNU>)
set(clang $<CXX_COMPILER_ID:Clang>)
target_compile_options(lockstep_warnings INTERFACE -Wall -Wextra -Wpedantic $<${gcc}:-Wshadow=local>
  -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers $<${gcc}:-Wno-restrict>
  $<${clang}:-Wno-overloaded-shift-op-parentheses> $<${clang}:-Wno-missing-braces> $<${clang}:-Wno-deprecated-declarations>)
if(LOCKSTEP_SANITIZE STREQUAL thread)
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
elseif(LOCKSTEP_SANITIZE)
  add_compile_options(-g1 -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  # AddressSanitizer reports bad addresses by itself; these three checks of every access would cost a fifth of the compile time. Casts of
  # numbers too large for an integer are checked by `all` alone: -fsanitize=undefined leaves them out.
  if(LOCKSTEP_SANITIZE STREQUAL all)
    add_compile_options(-fsanitize=float-cast-overflow)
  else()
    # Clang alone checks the types of called functions, which those of a loaded driver do not share.
    add_compile_options(-fno-sanitize=null,object-size,vptr $<${clang}:-fno-sanitize=function>)
  endif()
  add_link_options(-fsanitize=address,undefined)
endif()

find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(TBB REQUIRED)
find_package(Threads REQUIRED)

set_property(GLOBAL PROPERTY LOCKSTEP_FEATURES "")
function(lockstep_feature name state)
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_FEATURES "${name}: ${state}")
endfunction()
function(lockstep_print_features)
  get_property(features GLOBAL PROPERTY LOCKSTEP_FEATURES)
  message(STATUS "Lockstep ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}")
  foreach(feature IN LISTS features)
    message(STATUS "  ${feature}")
  endforeach()
endfunction()

# lockstep_library(<folder> SOURCES … [QUICK …] DEPENDS …): static library lockstep_<folder>, alias lockstep::<folder>.
# QUICK: sources that trace kernels or arrange work, but loop over no data on the host: -O1 compiles them in three quarters of the time of -O3.
function(lockstep_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;QUICK;DEPENDS;PRIVATE")
  add_library(lockstep_${name} STATIC ${arg_SOURCES})
  add_library(lockstep::${name} ALIAS lockstep_${name})
  target_include_directories(lockstep_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(lockstep_${name} PUBLIC ${arg_DEPENDS} PRIVATE lockstep_warnings ${arg_PRIVATE})
  if(arg_QUICK)
    add_library(lockstep_${name}_quick OBJECT ${arg_QUICK})
    target_include_directories(lockstep_${name}_quick PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(lockstep_${name}_quick PRIVATE ${arg_DEPENDS} lockstep_warnings ${arg_PRIVATE})
    target_compile_options(lockstep_${name}_quick PRIVATE $<$<CONFIG:Release>:-O1>)
    target_sources(lockstep_${name} PRIVATE $<TARGET_OBJECTS:lockstep_${name}_quick>)
  endif()
endfunction()

# The parts of a native kernel's source as strings of lockstep::<space>::PATH_source in PATH_source.hpp, / as _.
function(cuda_sources space path)
  foreach(part ${ARGN})
    set(file ${path}/${part}.cu)
    file(READ ${file} source)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    string(APPEND sources "inline constexpr const char* k_${part} = R\"cuda(${source})cuda\";\n")
  endforeach()
  string(REPLACE "/" "_" name ${path})
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}_source.hpp @ONLY CONTENT
    "#pragma once\nnamespace lockstep::${space}::${name}_source {\n@sources@}\n")
endfunction()

# lockstep_application(<name>): src/<name> with its cases, apps/cli/<name> with its commands, tests/<name>.
# applications.def lists all of them for the program and the tests.
set_property(GLOBAL PROPERTY LOCKSTEP_APPLICATIONS "")
function(lockstep_application name)
  add_subdirectory(src/${name})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_APPLICATIONS ${name})
  get_property(applications GLOBAL PROPERTY LOCKSTEP_APPLICATIONS)
  list(TRANSFORM applications REPLACE "(.+)" "LOCKSTEP_APPLICATION(\\1)\n")
  list(JOIN applications "" rows)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/applications.def CONTENT "${rows}" @ONLY)
endfunction()

# lockstep_test(<name> SOURCES … DEPENDS … [LABELS …] [QUICK_CODE] [COST …]): a GoogleTest program; scripts/test_summary.py lists what it skips.
# QUICK_CODE: its subject is what kernels compute, of which CPU code that compiles sooner gives the same bits; `verify`, `device_cpu` and the
# fuzzer run the code that users get.
# COST: about how many seconds it takes, for those above half a minute: CTest starts them first, so that none is left alone at the end.
function(lockstep_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "QUICK_CODE" "COST" "SOURCES;DEPENDS;LABELS")
  add_executable(test_${name} ${arg_SOURCES})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(test_${name} PRIVATE ${arg_DEPENDS} lockstep_warnings GTest::gtest GTest::gtest_main)
  # Tests spend their time in the library and in generated code: -O1 compiles them in two thirds of the time of -O3.
  target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 1800)
  if(arg_QUICK_CODE)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT LOCKSTEP_CPU_CODE=quick)
  endif()
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
endfunction()

# lockstep_install_dependencies(EXECUTABLES|MODULES <target> <folder> <component>): the shared libraries that it needs, into <folder>.
# Asked of the target as built: the installed one would also name what an earlier install left in the folder. The C and C++ run-time
# libraries are the system's: drivers that are loaded must share one copy with it.
function(lockstep_install_dependencies kind target folder component)
  install(CODE "
    file(GET_RUNTIME_DEPENDENCIES
      ${kind} \"$<TARGET_FILE:${target}>\"
      RESOLVED_DEPENDENCIES_VAR found
      UNRESOLVED_DEPENDENCIES_VAR missing
      POST_EXCLUDE_REGEXES [[/ld-linux[^/]*$]] [[/lib(c|m|dl|rt|pthread|gcc_s|stdc\\+\\+)\\.so[^/]*$]])
    if(missing)
      message(FATAL_ERROR \"${target} needs libraries that were not found: \${missing}\")
    endif()
    foreach(library IN LISTS found)
      file(REAL_PATH \${library} file)
      get_filename_component(name \${library} NAME)
      file(INSTALL \${file} DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${folder}\" TYPE FILE RENAME \${name})
    endforeach()
  " COMPONENT ${component})
endfunction()
