# How a library, a program and a test of shoal are declared, and the flags that all of them share.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_BUILD_RPATH_USE_ORIGIN OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "g++ ${CMAKE_CXX_COMPILER_VERSION} is too old: shoal is C++20 and needs g++ 12 or newer.\n"
                      "HINT: apt-get install g++-12, then configure with -DCMAKE_CXX_COMPILER=g++-12")
endif()

find_program(SHOAL_CCACHE ccache)
if(SHOAL_CCACHE)
  # Paths below the tree are hashed as relative ones: another clone, and the copy of scripts/self-test, find the same objects.
  foreach(language C CXX CUDA)
    set(CMAKE_${language}_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "${SHOAL_CCACHE}")
  endforeach()
endif()
find_program(SHOAL_MOLD mold)
find_program(SHOAL_LLD ld.lld)
if(SHOAL_MOLD)
  add_link_options($<$<LINK_LANGUAGE:C,CXX>:-fuse-ld=mold>)
elseif(SHOAL_LLD)
  add_link_options($<$<LINK_LANGUAGE:C,CXX>:-fuse-ld=lld>)
endif()

add_library(shoal_flags INTERFACE)
target_include_directories(shoal_flags INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(shoal_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
                                             $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping copies in std::string's operator+ that are not there (GCC bug 105651).
  target_compile_options(shoal_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
target_compile_options(shoal_flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")
if(SHOAL_WERROR)
  target_compile_options(shoal_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>
                                               "$<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings;-Xcompiler=-Werror>")
endif()
target_compile_definitions(shoal_flags INTERFACE SHOAL_VERSION="${PROJECT_VERSION}" SHOAL_WITH_NET=$<BOOL:${SHOAL_WITH_NET}>)
# What strangers send is parsed by every program: its mistakes shall end in an error and not in somebody's code. PIE is
# the compiler's own default on Debian; CMAKE_POSITION_INDEPENDENT_CODE above keeps the libraries fit for it.
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong>)
add_link_options($<$<LINK_LANGUAGE:C,CXX>:LINKER:-z,relro,-z,now>)
if(NOT SHOAL_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")  # it needs optimisation, and hides from the sanitizers what they see
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-U_FORTIFY_SOURCE> $<$<COMPILE_LANGUAGE:C,CXX>:-D_FORTIFY_SOURCE=2>)
endif()
if(SHOAL_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${SHOAL_SANITIZE}> $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${SHOAL_SANITIZE})
  if(SHOAL_SANITIZE MATCHES undefined)
    add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all>)
  endif()
endif()
if(SHOAL_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SHOAL_FUZZ needs clang, whose libFuzzer it links.\nHINT: apt-get install clang, then cmake --preset fuzz")
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>)
endif()

# Rooms that also hold -Wconversion, and -Wshadow where it is about locals (a constructor's parameter may have its member's
# name). A room is added when it holds them, and none is taken out.
set(shoal_strict_rooms common common/os common/packed common/crypto text kernels compression transport transport/relay transport/zmq dht stages stages/pretrained events events/books page runtime/config runtime/plan runtime/data runtime/edge runtime/solo)
function(shoal_be_strict name)
  file(RELATIVE_PATH room "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  if(room IN_LIST shoal_strict_rooms AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wconversion> $<$<COMPILE_LANGUAGE:CXX>:-Wshadow=local>)
  endif()
endfunction()

# Compiles several of a target's files as one, which costs a third: what they include is parsed once. Whether each
# header stands alone is scripts/tidy's to see. Files named after SEPARATE are not merged (they share a name with another of the
# target, or include what does not bear it); SEPARATE ALL merges none.
option(SHOAL_MERGE "Compile several files of a target as one" ON)
function(shoal_merge name)
  if("ALL" IN_LIST ARGN OR NOT SHOAL_MERGE)
    return()
  endif()
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  # Its "header" of an anonymous type is the file itself, which only the merged one includes.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

# shoal_library(name SOURCES a.cc ... DEPS public ... [PRIVATE_DEPS only for our .cc files ...] [SEPARATE a.cc ...])
function(shoal_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS;SEPARATE" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    shoal_be_strict(${name})
    shoal_merge(${name} ${ARG_SEPARATE})
    target_link_libraries(${name} PUBLIC shoal_flags ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE shoal_flags ${ARG_DEPS})
  endif()
endfunction()

# shoal_program(name SOURCES main.cc ... DEPS ... [SEPARATE ...]): lands in <build>/bin.
function(shoal_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS;SEPARATE" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  shoal_merge(${name} ${ARG_SEPARATE})
  target_link_libraries(${name} PRIVATE shoal_flags ${ARG_DEPS} ${ARG_PRIVATE_DEPS})
  shoal_be_strict(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
endfunction()

file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/tree_paths.h"
     CONTENT "#define SHOAL_SOURCE_DIR \"@PROJECT_SOURCE_DIR@\"\n#define SHOAL_BINARY_DIR \"@PROJECT_BINARY_DIR@\"\n" @ONLY)

# shoal_test(folder_test SOURCES ... DEPS ... [SEPARATE ...]): GoogleTest with gmock's main, run by ctest from the repository's root.
function(shoal_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS;SEPARATE" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  shoal_merge(${name} ${ARG_SEPARATE})
  target_link_libraries(${name} PRIVATE shoal_flags ${ARG_DEPS} ${ARG_PRIVATE_DEPS} GTest::gmock_main GTest::gmock GTest::gtest)
  target_compile_options(${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)  # two thirds of what -O3 costs to compile
  if(SHOAL_SANITIZE MATCHES undefined)  # half of what a test's own file costs to compile; the product's files keep all of it
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0> $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,alignment>)
  endif()
  # As a header and no -D: a file that does not use them has the same preprocessed text in every clone, so ccache finds it.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:SHELL:-include\ ${PROJECT_BINARY_DIR}/tree_paths.h>)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test-bin")
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  get_filename_component(folder "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  set_tests_properties(${name} PROPERTIES LABELS "${folder}")  # what scripts/test FOLDER asks for
endfunction()
