#!/usr/bin/env bash
# Compiles the core for wasm32, as the pages have it, and runs tests/web under node. Exit code 77 where clang-19's wasm32 packages or
# node are missing (scripts/packages.sh web).
# usage: wasm.sh [BUILD_FOLDER [ARGUMENTS OF tests/web/main.cpp]]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/build/web}

cd "$root"
joined() { local IFS=,; echo "$*"; }
# In the folder of the pages' objects, so that a compiler cache serves both.
objects=$out/optimised
scripts/wasm_core.sh "$objects" "fuzz=$(joined tests/fuzz/{data,generator,minimise,runner,stencils}.cpp)" "tests=$(joined tests/web/*.cpp)"
clang++-19 --target=wasm32-wasi -fwasm-exceptions -Wl,-z,stack-size=8388608,--export-table,--growable-table "$objects"/core_*.o -o "$out/tests.wasm"
node --no-warnings tests/web/run.mjs "$out/tests.wasm" "${@:2}"
# The same bits with the engine's own fma, where it has one.
relaxed=--experimental-wasm-relaxed-simd
if [ $# -le 1 ] && node "$relaxed" -e 0 2>/dev/null; then node --no-warnings "$relaxed" tests/web/run.mjs "$out/tests.wasm" operations; fi
