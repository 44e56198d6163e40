#!/usr/bin/env bash
# Compiles the core, the kernel language, the interpreter, the CPU device with kernels as WebAssembly and what stands on them
# for wasm32 and runs tests/web under node. Exit code 77 where clang-19's wasm32 packages or node are missing (scripts/packages.sh web).
# usage: wasm.sh [BUILD_FOLDER [ARGUMENTS OF tests/web/main.cpp]]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/build/web}

skip() { echo "SKIPPED: $1 (scripts/packages.sh web)" >&2; exit 77; }
[ "${LOCKSTEP_WASM:-on}" != off ] || skip "LOCKSTEP_WASM=off"
command -v clang++-19 >/dev/null || skip "clang-19 is missing"
command -v wasm-ld-19 >/dev/null || skip "lld-19 is missing"
command -v node >/dev/null || skip "node is missing"
[ -e /usr/lib/wasm32-wasi/libc++.a ] || skip "libc++ for wasm32 is missing"

cd "$root"
# Headers of the system without its C library.
mkdir -p "$out/include"
for name in fmt nlohmann eigen3; do ln -sfn "/usr/include/$name" "$out/include/$name"; done

# A layer is a unit, since clang spends most of its time in headers. Only the interpreter, with its fma, runs for long: -O1 for it.
rm -f "$out"/unit*
unit() {  # LEVEL NAME SOURCE...
  local level=$1 file=$out/unit_$2 source; shift 2
  for source; do echo "#include \"$root/$source\""; done >"$file.cpp"
  echo "$level -c $file.cpp -o $file.o" >"$file.args"
}
unit -O0 base src/core/*.cpp src/core/{numbers,reports}/*.cpp $(ls src/core/platform/web/*.cpp | grep -v fma) src/ir/*.cpp src/math/{expand,reference}.cpp
unit -O0 compile src/compile/*.cpp src/compile/native/*.cpp src/compile/passes/*.cpp src/compile/passes/*/*.cpp
unit -O0 wasm src/compile/wasm/*.cpp
unit -O0 autodiff src/autodiff/*.cpp
unit -O0 device src/device/*.cpp src/device/{cpu,launch,stages,variants}/*.cpp
unit -O1 interp src/device/interp/*.cpp src/core/platform/web/fma.cpp
unit -O0 primitives $(ls src/primitives/*.cpp src/primitives/{products,sums}/*.cpp | grep -v matmul)
unit -O0 fft src/primitives/fft/*.cpp src/primitives/products/matmul.cpp
unit -O0 solve src/solve/model/*.cpp
unit -O0 verify src/verify/{compare,registry,run,measured}.cpp src/verify/cases/{engine,language,parameter,word}_cases.cpp src/math/cases.cpp
unit -O0 fuzz tests/fuzz/{data,generator,minimise,runner,stencils}.cpp
unit -O0 tests tests/web/*.cpp

flags=(--target=wasm32-wasi -std=c++20 -fwasm-exceptions -ffp-contract=off -fno-fast-math -DFMT_HEADER_ONLY
  -DLOCKSTEP_HAS_CPU -DLOCKSTEP_HAS_INTERP -I"$root/include" -I"$root/src" -isystem "$out/include" -isystem "$out/include/eigen3")
launcher=$(command -v ccache || true)
printf '%s\n' "$out"/unit*.args |
  xargs -P "${LOCKSTEP_JOBS:-$(nproc)}" -I '{}' $launcher clang++-19 "${flags[@]}" '@{}'
clang++-19 --target=wasm32-wasi -fwasm-exceptions -Wl,-z,stack-size=8388608,--export-table,--growable-table "$out"/unit*.o -o "$out/tests.wasm"
node --no-warnings tests/web/run.mjs "$out/tests.wasm" "${@:2}"
