# Compiler, linker and cache settings shared by every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Hidden by default: the SDK is a shared library that exports its public classes and nothing else.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

set(MUSTER_SANITIZE "" CACHE STRING "Comma-separated sanitizers: address,undefined or thread")
option(MUSTER_PCH "Use precompiled headers" ON)
set(MUSTER_BATCH 32 CACHE STRING "How many sources of a target are compiled together")
option(MUSTER_FUZZ "Build the fuzz targets of tests/fuzz with libFuzzer; needs Clang" OFF)
set(MUSTER_FUZZ_SECONDS 10 CACHE STRING "How long CTest runs each fuzz target")
option(MUSTER_BENCHMARKS "Build benchmarks/" ON)
# base/failpoint.h; not in what users run.
string(COMPARE NOTEQUAL "${CMAKE_BUILD_TYPE}" Release MUSTER_FAILPOINTS_DEFAULT)
option(MUSTER_FAILPOINTS "Compile failpoints in" ${MUSTER_FAILPOINTS_DEFAULT})
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1" CACHE STRING "Flags of the Dev build type" FORCE)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1" CACHE STRING "Flags of the Release build type" FORCE)
# Instrumented code takes the compiler long to optimise, and its tests are short.
set(CMAKE_CXX_FLAGS_SANITIZE "-O0 -g1" CACHE STRING "Flags of the Sanitize build type" FORCE)

# Options structs are filled by designated initializers that name only what differs from the default.
add_compile_options(-Wall -Wextra -Werror -Wno-missing-field-initializers -fno-omit-frame-pointer)
# Some packages ask for it; said for every target, they all can share precompiled headers.
add_compile_options(-pthread)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees overruns inside its own std::string and std::vector when it optimises (GCC bugs 105651, 105329).
  add_compile_options(-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict)
  if(MUSTER_BATCH GREATER 1)
    add_compile_options(-Wno-subobject-linkage)  # takes the sources of a batch for headers
  endif()
endif()
if(MUSTER_SANITIZE MATCHES "thread")
  set(MUSTER_TSAN ON)
  # Asio's fences are not modelled by the sanitizer; they are not what orders our data.
  add_compile_options(-Wno-tsan)
endif()
if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # GCC 12's std::stable_sort uses what its own headers call deprecated.
  add_compile_options(-Wthread-safety -Wno-deprecated-declarations)
endif()

find_program(MUSTER_CCACHE ccache)
if(MUSTER_CCACHE)
  # The sloppiness flags are what ccache asks for where precompiled headers are used; paths below the sources count as
  # relative, so that a second clone finds what the first has built.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${MUSTER_CCACHE})
endif()
find_program(MUSTER_MOLD mold)
if(MUSTER_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
# Two hundred test programs hold the same libraries: uncompressed, debug information is two thirds of a build folder.
add_link_options(-Wl,--compress-debug-sections=zlib)
# Thin: an archive names its objects and does not copy them.
set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> qcT <TARGET> <LINK_FLAGS> <OBJECTS>")
