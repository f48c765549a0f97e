# Flags every target shares. ISA flags are never set here: they belong to the few translation
# units in src/kernels that are compiled once per instruction set.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(WOK_SANITIZE "" CACHE STRING "sanitizers to build with: address,undefined or thread")
option(WOK_FUZZ "build the libFuzzer targets (needs clang)" OFF)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror -fno-math-errno
                    -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees ghosts in moved std::variant and in std::string (bugs 105562, 105651).
  add_compile_options(-Wno-maybe-uninitialized -Wno-restrict)
endif()
if(WOK_SANITIZE)
  add_compile_options(-fsanitize=${WOK_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${WOK_SANITIZE})
  if(WOK_SANITIZE MATCHES "thread")
    add_compile_options(-Wno-tsan)  # atomic_thread_fence inside the standard library
  endif()
endif()
if(WOK_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
