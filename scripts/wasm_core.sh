#!/usr/bin/env bash
# Compiles the core, the kernel language, the interpreter, the CPU device with kernels as WebAssembly and what stands on them
# for wasm32 into FOLDER/core_*.o, and units of one's own beside them. Exit code 77 where clang-19's wasm32 packages or node are
# missing (scripts/packages.sh web).
# usage: wasm_core.sh FOLDER [NAME=SOURCE,SOURCE…]...
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=$1
shift

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

# A layer is a unit, since clang spends most of its time in headers.
rm -f "$out"/core_*.{cpp,args,o}
unit() {  # NAME SOURCE...
  local file=$out/core_$1 source; shift
  for source; do echo "#include \"$root/$source\""; done >"$file.cpp"
  echo "-c $file.cpp -o $file.o" >"$file.args"
}
unit base src/core/*.cpp src/core/{numbers,reports}/*.cpp $(ls src/core/platform/web/*.cpp | grep -v fma) src/ir/*.cpp src/math/{expand,reference}.cpp
unit compile src/compile/*.cpp src/compile/{native,passes,wasm}/*.cpp src/compile/passes/*/*.cpp src/autodiff/*.cpp
unit device src/device/*.cpp src/device/{cpu,launch,stages,variants}/*.cpp
# WebGPU needs the two headers that scripts/fetch_wgpu.sh places; without them the core has no such device.
for folder in "$out"/../include "$out"/../../include "$root/build/include"; do
  [ -e "$folder/webgpu.h" ] || continue
  unit webgpu src/compile/clike/printer*.cpp src/compile/clike/cuda/cuda_points.cpp src/compile/clike/wgsl/*.cpp src/device/webgpu/browser/*.cpp \
    $(ls src/device/webgpu/*.cpp src/device/webgpu/memory/*.cpp | grep -Ev '/(native|vulkan_memory)\.cpp')
  sed -i "s|\$| -isystem $folder|" "$out/core_webgpu.args"
  sed -i "s|\$| -DLOCKSTEP_HAS_WEBGPU|" "$out/core_device.args"
  break
done
unit interp src/device/interp/*.cpp src/core/platform/web/fma.cpp
unit primitives src/primitives/*.cpp src/primitives/{fft,products,sort,sums}/*.cpp src/primitives/products/tensor/no_tensor.cpp
unit solve src/solve/model/*.cpp
unit verify src/verify/{compare,digest,registry,run,measured}.cpp src/verify/cases/{engine,language,parameter,word}_cases.cpp src/math/cases.cpp
version=$(sed -n 's/^project(lockstep VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
for own; do
  IFS=, read -ra sources <<<"${own#*=}"
  unit "${own%%=*}" "${sources[@]}"
  sed -i "s|\$| -isystem $root/src/core/platform/web/tbb -isystem $root/src/core/platform/web/std -isystem $root/src/core/platform/web/zlib -DLOCKSTEP_VERSION=\\\\\"$version\\\\\"|" "$out/core_${own%%=*}.args"
done

flags=(--target=wasm32-wasi -Os -std=c++20 -fwasm-exceptions -ffp-contract=off -fno-fast-math -DFMT_HEADER_ONLY
  -DLOCKSTEP_HAS_CPU -DLOCKSTEP_HAS_INTERP "-fmacro-prefix-map=$root/=" -I"$root/include" -I"$root/src" -isystem "$out/include" -isystem "$out/include/eigen3")
launcher=$(command -v ccache || true)
printf '%s\n' "$out"/core_*.args |
  xargs -P "${LOCKSTEP_JOBS:-$(nproc)}" -I '{}' $launcher clang++-19 "${flags[@]}" '@{}'
