# The text room's Rust crate, built by cargo into one static library with a C ABI.
find_program(CARGO cargo HINTS $ENV{HOME}/.cargo/bin)
if(NOT CARGO)
  message(FATAL_ERROR "cargo not found: wok's tokenizers and templates are a small Rust library. "
                      "Install a Rust toolchain (1.75 or newer) and configure again.")
endif()
set(WOK_RUST_DIR ${PROJECT_SOURCE_DIR}/src/text/rust)
set(WOK_RUST_TARGET_DIR ${PROJECT_SOURCE_DIR}/build/rust)  # shared by all presets
set(WOK_RUST_LIB ${WOK_RUST_TARGET_DIR}/release/libwok_text.a)
file(GLOB_RECURSE WOK_RUST_SOURCES CONFIGURE_DEPENDS ${WOK_RUST_DIR}/src/*.rs)
add_custom_command(
  OUTPUT ${WOK_RUST_LIB}
  COMMAND ${CARGO} build --release --locked --quiet --manifest-path ${WOK_RUST_DIR}/Cargo.toml
          --target-dir ${WOK_RUST_TARGET_DIR}
  DEPENDS ${WOK_RUST_SOURCES} ${WOK_RUST_DIR}/Cargo.toml ${WOK_RUST_DIR}/Cargo.lock
  COMMENT "cargo: text room"
  VERBATIM)
add_custom_target(wok_text_rust_build DEPENDS ${WOK_RUST_LIB})
add_library(wok_text_rust INTERFACE)
add_dependencies(wok_text_rust wok_text_rust_build)
target_link_libraries(wok_text_rust INTERFACE ${WOK_RUST_LIB} dl pthread m)
