#!/usr/bin/env bash
# Builds the pages and tests them: lockstep.js under node, the pages in a headless Chromium where there is one. Exit code 77 where
# the tools of web/build are missing. WEB_SCREENSHOTS=FOLDER keeps pictures of the pages; WEB_DROPS=10000 drops as many damaged files
# on each page.
# usage: test_site.sh BUILD_FOLDER [ARGUMENTS OF node --test]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
shift

"$root/web/build" "$build"
python=$(sed -n 's/^LOCKSTEP_PYTHON_EXECUTABLE:FILEPATH=//p' "$build/CMakeCache.txt")
export WEB_SITE=$build/web/site WEB_PYTHON=${python:-python3} PYTHONPATH=$build/python:$build/python_peers
cd "$root/tests/web"
files=(native_bits bounds threads serve errors interface mesh residual city turbulence commands guide types)
if WEB_BROWSER=$(command -v chromium); then
  export WEB_BROWSER
  files+=(pages city_page turbulence_page)
  axe=$build/python_peers/axe_playwright_python/axe.min.js
  if [ -f "$axe" ]; then export AXE=$axe; fi
  # The core has WebGPU where its headers could be fetched.
  if [ -e "$build/include/webgpu.h" ]; then files+=(meshes webgpu gpu_pages); else echo "meshes, webgpu, gpu_pages (web) ... skipped 'wgpu-native was not found'"; fi
else
  # In the form of Python's unittest, which scripts/test_summary.py reads.
  echo "pages, city_page, turbulence_page, meshes, webgpu, gpu_pages (web) ... skipped 'chromium is not installed (scripts/packages.sh web)'"
fi
status=0
for file in "${files[@]}"; do node --no-warnings --expose-gc --test "$@" "$file.test.mjs" || status=1; done
exit $status
