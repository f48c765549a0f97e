# A room is a folder of src/: one static library, and one test program from its *_test.cpp files.
#   wok_room(kv DEPS wok_kernels LIBS ZLIB::ZLIB)
function(wok_room name)
  cmake_parse_arguments(ROOM "" "" "DEPS;LIBS;TEST_LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")

  if(sources)
    add_library(wok_${name} STATIC ${sources})
    target_include_directories(wok_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(wok_${name} PUBLIC ${ROOM_DEPS} ${ROOM_LIBS})
  endif()
  if(tests AND NOT WOK_FUZZ)
    add_executable(${name}_test ${tests})
    target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(${name}_test PRIVATE WOK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_link_libraries(${name}_test PRIVATE wok_${name} ${ROOM_TEST_LIBS} GTest::gtest
                                               GTest::gmock GTest::gtest_main)
    gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
                         PROPERTIES TIMEOUT 600)
  endif()
endfunction()
