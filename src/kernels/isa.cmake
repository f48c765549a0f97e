# The kernels room: one translation unit per instruction set, each with that file's own flags.
wok_room(kernels DEPS wok_base)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(kernels/kernels_avx2.cpp PROPERTIES COMPILE_OPTIONS
    "-mavx2;-mfma;-mf16c")
  set_source_files_properties(kernels/kernels_avxvnni.cpp PROPERTIES COMPILE_OPTIONS
    "-mavx2;-mfma;-mf16c;-mavxvnni")
  # GCC 12 warns about its own AVX-512 header (bug 105593), hence the two -Wno.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(avx512_warnings "-Wno-uninitialized;-Wno-maybe-uninitialized;")
  endif()
  set_source_files_properties(kernels/kernels_avx512.cpp PROPERTIES COMPILE_OPTIONS
    "${avx512_warnings}-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mfma;-mf16c;-mprefer-vector-width=512")
endif()
