#!/usr/bin/env bash
# Tests the pages that `web/build` made: lockstep.js under node (core), the pages in a headless Chromium (pages), and with WebGPU (gpu).
# Exit code 77 where the pages were not built. WEB_SCREENSHOTS=FOLDER keeps pictures of the pages; WEB_DROPS=10000 drops as many damaged
# files on each page.
# usage: test_site.sh BUILD_FOLDER core|pages|gpu [ARGUMENTS OF node --test]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
part=$2
shift 2

export WEB_SITE=$build/web/site
if [ ! -e "$WEB_SITE/index.html" ]; then echo "skipped: the pages were not built"; exit 77; fi
python=$(sed -n 's/^LOCKSTEP_PYTHON_EXECUTABLE:FILEPATH=//p' "$build/CMakeCache.txt")
export WEB_PYTHON=${python:-python3} PYTHONPATH=$build/python:$build/python_peers
case $part in
  core) files=(native_bits bounds threads serve errors interface mesh residual city turbulence commands trainings solve guide types) ;;
  pages) files=(pages city_page turbulence_page) ;;
  gpu) files=(meshes webgpu gpu_pages) ;;
  *) echo "test_site.sh: '$part': expected core, pages or gpu" >&2; exit 2 ;;
esac
if [ "$part" != core ]; then
  WEB_BROWSER=$(command -v chromium) || { echo "skipped: chromium is not installed (scripts/packages.sh web)"; exit 77; }
  export WEB_BROWSER
  axe=$build/python_peers/axe_playwright_python/axe.min.js
  if [ -f "$axe" ]; then export AXE=$axe; fi
fi
# The core has WebGPU where its headers could be fetched.
if [ "$part" = gpu ] && [ ! -e "$build/include/webgpu.h" ]; then echo "skipped: wgpu-native was not found"; exit 77; fi
status=0
cd "$root/tests/web"
for file in "${files[@]}"; do node --no-warnings --expose-gc --test "$@" "$file.test.mjs" || status=1; done
exit $status
