# The three kinds of target. Every folder's CMakeLists.txt is a list of calls to these.
include(CMakeParseArguments)

# muster_add_folders(a b ...): add_subdirectory for each that has a CMakeLists.txt.
function(muster_add_folders)
  foreach(folder ${ARGN})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
      add_subdirectory(${folder})
    endif()
  endforeach()
endfunction()

# muster_library(<folder> SRCS ... DEPS ...): the static library muster::<folder>.
function(muster_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(muster_${name} STATIC ${ARG_SRCS})
    target_include_directories(muster_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    target_link_libraries(muster_${name} PUBLIC ${ARG_DEPS})
    if(MUSTER_PCH AND NOT name STREQUAL "proto_control")
      target_precompile_headers(muster_${name} PRIVATE
        <algorithm> <chrono> <cstdint> <functional> <map> <memory> <optional> <string> <string_view>
        <utility> <variant> <vector>)
    endif()
  else()
    add_library(muster_${name} INTERFACE)
    target_include_directories(muster_${name} INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    target_link_libraries(muster_${name} INTERFACE ${ARG_DEPS})
  endif()
  add_library(muster::${name} ALIAS muster_${name})
endfunction()

# muster_test(<name> SRCS ... DEPS ... [LABELS unit] [TIMEOUT s] [ARGS ...]): one GoogleTest program, run by CTest.
function(muster_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SRCS;DEPS;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} muster::tests_support GTest::gmock GTest::gtest_main)
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
  if(MUSTER_PCH)
    target_precompile_headers(${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  endif()
endfunction()

# muster_benchmark(<name> SRCS ... DEPS ...): a program under benchmarks/, never run by CTest.
function(muster_benchmark name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()
