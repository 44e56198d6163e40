#!/usr/bin/env bash
# Compiles the core, the kernel language, the interpreter and what stands on them for wasm32 and runs the language
# cases under node. Exit code 77 where clang-19's wasm32 packages or node are missing (scripts/packages.sh web).
# usage: wasm.sh [BUILD_FOLDER]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/build/web}

skip() { echo "SKIPPED: $1 (scripts/packages.sh web)" >&2; exit 77; }
command -v clang++-19 >/dev/null || skip "clang-19 is missing"
command -v wasm-ld-19 >/dev/null || skip "lld-19 is missing"
command -v node >/dev/null || skip "node is missing"
[ -e /usr/lib/wasm32-wasi/libc++.a ] || skip "libc++ for wasm32 is missing"

cd "$root"
sources=$(ls src/core/*.cpp src/core/platform/web/*.cpp src/ir/*.cpp src/compile/*.cpp src/compile/passes/*.cpp \
  src/autodiff/*.cpp src/device/*.cpp src/device/interp/*.cpp src/primitives/*.cpp src/primitives/fft/*.cpp src/solve/model/*.cpp \
  src/math/{expand,reference}.cpp src/verify/{compare,engine_cases,language_cases,registry,run,word_cases}.cpp tests/web/*.cpp)

# Headers of the system without its C library.
mkdir -p "$out/include"
for name in fmt nlohmann eigen3; do ln -sfn "/usr/include/$name" "$out/include/$name"; done

# Several files of a folder at once, as the native build does it: a third of the time.
rm -f "$out"/unit*
number=0 unit=0 folder=
for source in $sources; do
  if [ "$folder" != "${source%/*}" ] || [ $((number++ % 8)) = 0 ]; then unit=$((unit + 1)) number=1 folder=${source%/*}; fi
  echo "#include \"$root/$source\"" >>"$out/unit$unit.cpp"
done

flags=(--target=wasm32-wasi -std=c++20 -O1 -fwasm-exceptions -ffp-contract=off -fno-fast-math -DFMT_HEADER_ONLY
  -DLOCKSTEP_HAS_INTERP -I"$root/include" -I"$root/src" -isystem "$out/include" -isystem "$out/include/eigen3")
launcher=$(command -v ccache || true)
printf '%s\n' "$out"/unit*.cpp |
  xargs -P "${LOCKSTEP_JOBS:-$(nproc)}" -I '{}' $launcher clang++-19 "${flags[@]}" -c '{}' -o '{}.o'
clang++-19 --target=wasm32-wasi -fwasm-exceptions -Wl,-z,stack-size=8388608 "$out"/unit*.cpp.o -o "$out/language_cases.wasm"
node --no-warnings tests/web/run.mjs "$out/language_cases.wasm"
