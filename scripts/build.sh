#!/usr/bin/env bash
# Configures (where that is due) and builds the given targets in build/, Release.
# usage: build.sh TARGET...
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build

"$root/scripts/fetch_wgpu.sh" "$build" || true
cache=$build/CMakeCache.txt
if [ ! -f "$build/build.ninja" ] || ! grep -q "CMAKE_HOME_DIRECTORY:INTERNAL=$root\$" "$cache" 2>/dev/null; then
  rm -f "$cache"
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >&2
elif grep -q -- "-NOTFOUND\$" "$cache"; then
  cmake "$build" >&2  # what was missing may have come since
fi
cmake --build "$build" --target "$@" >&2
