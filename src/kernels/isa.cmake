# The kernels room: one translation unit per instruction set, each with that file's own flags.
wok_room(kernels DEPS wok_base)
# Races and hostile files do not depend on the instruction set, and the wide units compile for many
# minutes once instrumented: the thread sanitizer and the fuzz targets go without them. The address
# sanitizer keeps them, without the checks for undefined behaviour, which the AVX2 unit runs on the
# same bodies.
if(WOK_SANITIZE MATCHES "thread" OR WOK_FUZZ)
  set(wide_units OFF)
else()
  set(wide_units ON)
endif()
if(WOK_SANITIZE MATCHES "undefined")
  set(wide_checks "-fno-sanitize=undefined;")
endif()
# The bodies in plain C++, which only the test has: to be right there is enough.
set_source_files_properties(kernels/kernels_test.cpp PROPERTIES COMPILE_OPTIONS "${wide_checks}-O1")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(kernels/kernels_avx2.cpp PROPERTIES COMPILE_OPTIONS
    "-mavx2;-mfma;-mf16c")
endif()
if(wide_units AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(kernels/kernels_avxvnni.cpp PROPERTIES COMPILE_OPTIONS
    "${wide_checks}-mavx2;-mfma;-mf16c;-mavxvnni")
  # GCC 12 warns about its own AVX-512 header (bug 105593), hence the two -Wno.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(avx512_warnings "-Wno-uninitialized;-Wno-maybe-uninitialized;")
  endif()
  set_source_files_properties(kernels/kernels_avx512.cpp PROPERTIES COMPILE_OPTIONS
    "${avx512_warnings}${wide_checks}-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mfma;-mf16c;-mprefer-vector-width=512")
endif()
