# A room is a folder of src/: one static library, and one test program from its *_test.cpp files.
#   wok_room(kv DEPS wok_kernels LIBS ZLIB::ZLIB)
# ONE_THREAD: nothing in it runs on several threads, so the thread sanitizer has nothing to see.
function(wok_room name)
  cmake_parse_arguments(ROOM "ONE_THREAD" "" "DEPS;LIBS;TEST_LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")

  if(sources)
    set(only_if_needed)
    if(WOK_FUZZ)  # by a fuzz target
      set(only_if_needed EXCLUDE_FROM_ALL)
    endif()
    add_library(wok_${name} STATIC ${only_if_needed} ${sources})
    target_include_directories(wok_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(wok_${name} PUBLIC ${ROOM_DEPS} ${ROOM_LIBS})
  endif()
  if(tests AND NOT WOK_FUZZ AND NOT (ROOM_ONE_THREAD AND WOK_SANITIZE MATCHES "thread"))
    add_executable(${name}_test ${tests})
    target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(${name}_test PRIVATE WOK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    if(WOK_SANITIZE MATCHES "undefined")
      # What is checked is the room; its tests would take twice as long to compile.
      target_compile_options(${name}_test PRIVATE -fno-sanitize=undefined)
    endif()
    target_link_libraries(${name}_test PRIVATE wok_${name} ${ROOM_TEST_LIBS} GTest::gtest
                                               GTest::gmock GTest::gtest_main)
    gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
                         PROPERTIES TIMEOUT 600)
  endif()
endfunction()
