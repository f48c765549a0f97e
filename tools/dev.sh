#!/usr/bin/env bash
# Everything a developer of wok runs, by name. Works from a fresh clone.
#
#   setup            install the Debian packages that are missing (silent when none is)
#   build [PRESET]   configure and build; PRESET is release (default), asan, tsan or fuzz
#   test             set up, build, fetch the test models, lint, run every test
#   serve [ARGS]     set up, build, serve the default model (or ARGS, as for `wok serve`)
#   lint [--fast]    format, include direction, weak symbols, file length, clang-tidy (not --fast)
#   sanitize         the tests under address+undefined and thread sanitizers, then the fuzz targets
#   fuzz [RUNS]      build the fuzz targets and run each for RUNS inputs (default 20000)
#   bench-kernels [ARGS]  set up, build, measure each kernel beside the roof of one core (ARGS are
#                       Google Benchmark's, as --benchmark_filter=Int4)
#   bench-peers [ARGS]  set up, build, fetch the peers, compare (ARGS as for `bench/peers measure`;
#                       after --served as for `bench/peers served`)
#   help             this text
#
# JOBS=N sets how many compile at once (default: the CPUs this process may use).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=${JOBS:-$(nproc)}
# Lets clones in different folders share the compiler's cache.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
fuzz_runs_default=20000

say() { printf '== %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

find_cargo() { command -v cargo || { [[ -x ${HOME:-}/.cargo/bin/cargo ]] && echo "$HOME/.cargo/bin/cargo"; }; }

missing_packages() {
  local package
  sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' tools/packages.txt | while read -r package; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

cmd_setup() {
  if command -v dpkg-query >/dev/null; then
    local -a missing
    mapfile -t missing < <(missing_packages)
    # Any Node will do, also one that did not come from a package.
    command -v node >/dev/null && command -v npm >/dev/null || missing+=(nodejs npm)
    if (( ${#missing[@]} )); then
      say "installing: ${missing[*]}"
      local -a as_root=()
      if (( EUID != 0 )); then
        command -v sudo >/dev/null || die "not root and no sudo: install these packages yourself: ${missing[*]}"
        as_root=(sudo)
      fi
      # The packages' own scripts call python3: they must find the system's, not one that pyenv or a
      # virtual environment put in front of it.
      local -a apt=("${as_root[@]}" env PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
                    DEBIAN_FRONTEND=noninteractive apt-get)
      "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
        { "${apt[@]}" update >/dev/null && "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null; } ||
        die "apt-get could not install: ${missing[*]}"
    fi
  else
    say "no dpkg here: make sure that the libraries of tools/packages.txt are installed"
  fi
  if [[ -z $(find_cargo) ]]; then
    die "cargo not found. wok's tokenizers and chat templates are a small Rust library, so building needs
  a Rust toolchain, 1.75 or newer (Debian 12's own is older). Install it with rustup, as the Rust
  project's page \"Install Rust\" describes, or with your distribution's package if it is new enough;
  then open a new shell, so that cargo is on the PATH, and run this again."
  fi
}

cmd_build() {
  local preset=${1:-release}
  say "building $preset"
  cmake --preset "$preset" >"$(log_of "$preset")" 2>&1 || { cat "$(log_of "$preset")" >&2; die "cmake failed"; }
  cmake --build --preset "$preset" -j "$jobs"
}
log_of() { mkdir -p "build/$1"; echo "build/$1/configure.log"; }

# Runs a preset's tests; results also go to build/PRESET/ctest.xml, where .ci/run counts them.
run_ctest() {
  local preset=$1
  say "testing $preset"
  rm -f "build/$preset/ctest.xml"
  ctest --preset "$preset" -j "$jobs" --no-tests=error --output-junit ctest.xml
}

# The tests with real models need both in the store; once there, no network is used.
fetch_models() {
  local model
  for model in smollm2 gemma3:270m; do
    build/release/wok pull "$model" ||
      die "the tests need the model $model, and it could not be fetched (see above). With a network, run this again."
  done
}

# OpenAI's own clients, pinned, in build/e2e: fetched here, so that the tests fetch nothing.
fetch_clients() {
  local stamp=build/e2e/stamp want
  command -v node >/dev/null && command -v npm >/dev/null ||
    die "node and npm are needed to test with OpenAI's JavaScript client: install nodejs and npm"
  want=$(cat tests/e2e/requirements.txt tests/e2e/package.json tests/e2e/package-lock.json | sha256sum)
  if [[ ! -f $stamp || $(cat "$stamp") != "$want" ]]; then
    say "fetching OpenAI's clients for the end-to-end tests"
    rm -rf build/e2e && mkdir -p build/e2e/js
    python3 -m venv build/e2e/venv &&
      build/e2e/venv/bin/pip install --quiet --disable-pip-version-check -r tests/e2e/requirements.txt ||
      die "the Python client could not be fetched. With a network, run this again."
    cp tests/e2e/package.json tests/e2e/package-lock.json build/e2e/js/
    npm ci --silent --no-audit --no-fund --prefix build/e2e/js ||
      die "the JavaScript client could not be fetched. With a network, run this again."
    echo "$want" >"$stamp"
  fi
  # Node looks for packages beside the script.
  cp tests/e2e/openai_js.mjs build/e2e/js/
}

cmd_lint() {
  local failed=0 fast=${1:-}
  say "lint: format"
  git ls-files '*.cpp' '*.h' | xargs clang-format-14 --dry-run --Werror || failed=1
  say "lint: include direction"
  python3 tools/lint/include_direction.py --self-test && python3 tools/lint/include_direction.py || failed=1
  say "lint: file length"
  python3 tools/lint/file_length.py --self-test && python3 tools/lint/file_length.py || failed=1
  say "lint: weak symbols"
  python3 tools/lint/weak_symbols.py --self-test && python3 tools/lint/weak_symbols.py build/release || failed=1
  if [[ $fast != --fast ]]; then
    say "lint: clang-tidy"
    python3 tools/lint/tidy.py --self-test && python3 tools/lint/tidy.py --jobs "$jobs" build/release || failed=1
  fi
  (( failed == 0 )) || die "lint found something (see above)"
}

cmd_test() {
  cmd_setup
  cmd_build release
  fetch_models
  fetch_clients
  cmd_lint
  run_ctest release
}

cmd_serve() {
  cmd_setup
  cmd_build release
  exec build/release/wok serve "$@"
}

cmd_fuzz() {
  local runs=${1:-$fuzz_runs_default} target name count=0 failed=0
  cmd_build fuzz || die "the fuzz targets do not build"
  for target in build/fuzz/tests/fuzz/*_fuzz; do
    [[ -x $target && -f $target ]] || continue
    name=$(basename "$target")
    count=$((count + 1))
    mkdir -p "build/fuzz/findings/$name" "build/fuzz/corpus/$name"
    say "fuzzing $name, $runs inputs"
    local -a corpus=("build/fuzz/corpus/$name")
    [[ -d tests/fuzz/corpus/$name ]] && corpus+=("tests/fuzz/corpus/$name")
    # A fixed seed and an empty start: the same inputs on every machine.
    rm -rf "build/fuzz/corpus/$name" && mkdir -p "build/fuzz/corpus/$name"
    if ! "$target" -runs="$runs" -seed=1 -timeout=30 -rss_limit_mb=3000 -print_final_stats=0 \
        -artifact_prefix="build/fuzz/findings/$name/" "${corpus[@]}" >"build/fuzz/$name.log" 2>&1; then
      tail -n 40 "build/fuzz/$name.log" >&2
      say "fuzzing $name FAILED (input kept in build/fuzz/findings/$name)"
      failed=1
    fi
  done
  (( count > 0 )) || die "no fuzz target (*_fuzz) in build/fuzz/tests/fuzz"
  (( failed == 0 )) || die "a fuzz target failed"
  say "$count fuzz targets clean"
}

cmd_sanitize() {
  local preset
  local -a failed=()
  cmd_setup
  for preset in asan tsan; do
    mkdir -p "build/$preset"
    # In a subshell, and chained by hand: errexit is off inside a condition.
    (cmd_build "$preset" && run_ctest "$preset") 2>&1 | tee "build/$preset/sanitize.log" ||
      failed+=("$preset")
  done
  (cmd_fuzz) || failed+=(fuzz)
  # What failed is said last, where it is seen: the targets after it print a lot.
  for preset in "${failed[@]}"; do
    [[ $preset == fuzz ]] || { say "$preset failed; the end of its output:"; tail -n 40 "build/$preset/sanitize.log" >&2; }
  done
  (( ${#failed[@]} == 0 )) || die "failed under sanitizers: ${failed[*]}"
}

cmd_bench_kernels() {
  cmd_setup
  cmake --preset release >/dev/null && cmake --build --preset release --target kernel_bench >&2 ||
    die "the kernel benchmark did not build (see above)"
  build/release/bench/kernel_bench "$@"
}

# llama.cpp and OpenVINO GenAI, pinned, in build/peers/venv. llama.cpp is compiled here.
fetch_peers() {
  local venv=build/peers/venv want
  want=$(sha256sum <bench/requirements.txt)
  [[ -f $venv/stamp && $(cat "$venv/stamp") == "$want" ]] && return
  say "fetching the peers; llama.cpp compiles for a quarter of an hour on two CPUs"
  rm -rf "$venv" && mkdir -p build/peers
  python3 -m venv "$venv" &&
    CMAKE_BUILD_PARALLEL_LEVEL=$jobs "$venv/bin/pip" install --quiet --disable-pip-version-check \
      -r bench/requirements.txt ||
    die "the peers could not be installed (see above). With a network, run this again."
  echo "$want" >"$venv/stamp"
}

# llama-server, built here from the sources inside the pinned llama-cpp-python. That package's own
# server answers one request at a time.
fetch_llama_server() {
  local folder=build/peers/llama-server sources=build/peers/llama.cpp pin
  pin=$(grep '^llama-cpp-python==' bench/requirements.txt)
  [[ -f $folder/stamp && $(cat "$folder/stamp") == "$pin" ]] && return
  say "fetching and building llama-server; another quarter of an hour on two CPUs"
  rm -rf "$folder" "$sources" && mkdir -p "$folder" "$sources/package"
  build/peers/venv/bin/pip download --quiet --disable-pip-version-check --no-deps \
      --no-binary llama-cpp-python --dest "$sources/package" "$pin" &&
    tar -xzf "$sources"/package/*.tar.gz -C "$sources" --strip-components 3 \
      --wildcards --no-wildcards-match-slash '*/vendor/llama.cpp' &&
    cmake -S "$sources" -B "$folder" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF \
      -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_BUILD_TESTS=OFF \
      -DLLAMA_BUILD_EXAMPLES=OFF >"$folder/configure.log" 2>&1 &&
    cmake --build "$folder" -j "$jobs" --target llama-server >"$folder/build.log" 2>&1 ||
    die "llama-server could not be built (see above and $folder/*.log)"
  echo "$pin" >"$folder/stamp"
}

cmd_bench_peers() {
  cmd_setup
  cmd_build release
  fetch_peers
  if [[ ${1:-} == --served ]]; then
    shift
    fetch_llama_server
    build/peers/venv/bin/python bench/peers served "$@"
  else
    build/peers/venv/bin/python bench/peers measure "$@"
  fi
}

cmd_help() { sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' tools/dev.sh; }

command=${1:-help}
shift || true
case $command in
  setup | build | test | serve | lint | sanitize | fuzz | bench-kernels | bench-peers | help) "cmd_${command//-/_}" "$@" ;;
  -h | --help) cmd_help ;;
  *) die "unknown command '$command'; see tools/dev.sh help" ;;
esac
