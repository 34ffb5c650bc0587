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

# muster_share_precompiled_headers(<target> <kind> <header> ...): the first target of a kind compiles the headers, the
# others, which have the same flags, reuse them.
function(muster_share_precompiled_headers target kind)
  if(NOT MUSTER_PCH)
    return()
  endif()
  get_property(owner GLOBAL PROPERTY muster_precompiled_${kind})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY muster_precompiled_${kind} ${target})
  endif()
endfunction()

# muster_batch(<target>): up to MUSTER_BATCH of its sources at a time are compiled together, in every preset. Batches of 8 halve the
# compiler's time, batches of 32 halve it once more. They hide a forgotten #include; with -DMUSTER_BATCH=1 sources are compiled one by
# one. CMake's own unity builds name sources by absolute paths, so ccache would find nothing from another clone; these name them from
# the root.
function(muster_batch target)
  if(MUSTER_BATCH GREATER 1)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL muster_write_batches ${target})")
  endif()
endfunction()

# Called at the end of the folder's CMakeLists.txt, when the properties of its sources are known.
function(muster_write_batches target)
  get_target_property(sources ${target} SOURCES)
  set(together "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    get_source_file_property(generated ${source} GENERATED)
    get_source_file_property(own_flags ${source} COMPILE_OPTIONS)
    get_source_file_property(alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(NOT generated AND NOT own_flags AND NOT alone AND source MATCHES "\\.cc$")
      list(APPEND together ${source})
    endif()
  endforeach()
  list(LENGTH together count)
  if(count EQUAL 0)
    return()
  endif()
  math(EXPR batches "(${count} + ${MUSTER_BATCH} - 1) / ${MUSTER_BATCH}")
  set(number 0)
  foreach(source IN LISTS together)
    set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    math(EXPR batch "${number} * ${batches} / ${count}")  # of about the same size
    string(APPEND batch_${batch} "#include \"${name}\"\n")
    math(EXPR number "${number} + 1")
  endforeach()
  set(batch 0)
  while(batch LESS batches)
    set(path ${CMAKE_CURRENT_BINARY_DIR}/${target}_batch_${batch}.cc)
    file(CONFIGURE OUTPUT ${path} CONTENT "${batch_${batch}}" @ONLY)
    target_sources(${target} PRIVATE ${path})
    math(EXPR batch "${batch} + 1")
  endwhile()
endfunction()

# muster_library(<folder> SRCS ... DEPS ... [OWN_FLAGS] [FUZZED]): the static library muster::<folder>. OWN_FLAGS: its sources
# are compiled with other flags than most, and so cannot share precompiled headers. FUZZED: the fuzz targets look for new
# branches in it. All other code lacks the counters, which cost a third of the compiler's time and of the object's size.
function(muster_library name)
  cmake_parse_arguments(ARG "OWN_FLAGS;FUZZED" "" "SRCS;DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(muster_${name} STATIC ${ARG_SRCS})
    target_include_directories(muster_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    target_link_libraries(muster_${name} PUBLIC ${ARG_DEPS})
    muster_batch(muster_${name})
    set(kind library)
    if(ARG_FUZZED AND MUSTER_FUZZ)
      set(kind fuzzed_library)
      target_compile_options(muster_${name} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
    if(NOT ARG_OWN_FLAGS)
      muster_share_precompiled_headers(muster_${name} ${kind}
        <algorithm> <chrono> <cstdint> <functional> <map> <memory> <optional> <string> <string_view>
        <utility> <variant> <vector>
        <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/time/time.h> <fmt/format.h>)
    endif()
  else()
    add_library(muster_${name} INTERFACE)
    target_include_directories(muster_${name} INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    target_link_libraries(muster_${name} INTERFACE ${ARG_DEPS})
  endif()
  add_library(muster::${name} ALIAS muster_${name})
endfunction()

# Every program that the label `unit` needs, for builds that run nothing else.
add_custom_target(muster_unit_tests)
option(MUSTER_UNIT_TESTS "`all` has the programs of all unit tests" ON)

# muster_has_plain_tests(<variable> <source> ...): whether a test leaves something out, or tries fewer seeds, under a sanitizer.
function(muster_has_plain_tests variable)
  set(${variable} FALSE PARENT_SCOPE)
  foreach(source ${ARGN})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    file(STRINGS ${source} found REGEX "kSanitized|Seeds\\(" LIMIT_COUNT 1)
    if(found)
      set(${variable} TRUE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# muster_one_thread(): at the top of a test folder whose room, and whose tests, have one thread. The thread sanitizer has nothing
# to see there, so its build leaves the folder out. tests/tidy checks that it is true.
macro(muster_one_thread)
  if(MUSTER_TSAN)
    return()
  endif()
endmacro()

# muster_test(<name> SRCS ... DEPS ... [LABELS unit] [TIMEOUT s] [ARGS ...] [NO_TSAN] [OPTIMISED]): one GoogleTest program,
# run by CTest. NO_TSAN: it runs threads of Debian's gRPC, RocksDB or librdkafka, which are not built for the thread sanitizer: it
# would report races where there are none; or it walks Debian's Protobuf maps, which look otherwise under it. OPTIMISED: it runs thousands of seeds, so its own code is optimised as well.
function(muster_test name)
  cmake_parse_arguments(ARG "NO_TSAN;OPTIMISED" "TIMEOUT" "SRCS;DEPS;LABELS;ARGS" ${ARGN})
  if(ARG_NO_TSAN AND MUSTER_TSAN)
    return()
  endif()
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} muster::tests_support GTest::gmock GTest::gtest_main)
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(ARG_LABELS STREQUAL "unit")
    add_dependencies(muster_unit_tests ${name})
    muster_has_plain_tests(plain ${ARG_SRCS})
    if(NOT MUSTER_UNIT_TESTS AND plain)
      set(ARG_LABELS plain)
    elseif(NOT MUSTER_UNIT_TESTS)
      set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  # Tests ask for more memory than there is, to see the error.
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "ASAN_OPTIONS=allocator_may_return_null=1;TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/thread_sanitizer.supp")
  muster_batch(${name})
  if(NOT ARG_OPTIMISED)
    # A third of the compiler's time would go into making fast what runs once.
    target_compile_options(${name} PRIVATE $<$<CONFIG:Dev>:-O0>)
    muster_share_precompiled_headers(${name} test
      <absl/status/statusor.h> <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h>)
  endif()
endfunction()

# muster_benchmark(<name> SRCS ... DEPS ...): a program under benchmarks/. CTest runs it with --smoke only (tests/benchmarks).
function(muster_benchmark name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()
