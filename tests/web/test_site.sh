#!/usr/bin/env bash
# Builds the pages and tests them: lockstep.js under node, the pages in a headless Chromium where there is one. Exit code 77 where
# the tools of web/build are missing. WEB_SCREENSHOTS=FOLDER keeps pictures of the pages.
# usage: test_site.sh BUILD_FOLDER [ARGUMENTS OF node --test]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
shift

"$root/web/build" "$build"
python=$(sed -n 's/^LOCKSTEP_PYTHON_EXECUTABLE:FILEPATH=//p' "$build/CMakeCache.txt")
export WEB_SITE=$build/web/site WEB_PYTHON=${python:-python3} PYTHONPATH=$build/python
cd "$root/tests/web"
files=(native_bits errors interface residual types)
if WEB_BROWSER=$(command -v chromium); then
  export WEB_BROWSER
  files+=(pages)
else
  # In the form of Python's unittest, which scripts/test_summary.py reads.
  echo "pages (web) ... skipped 'chromium is not installed (scripts/packages.sh web)'"
fi
status=0
for file in "${files[@]}"; do node --no-warnings --expose-gc --test "$@" "$file.test.mjs" || status=1; done
exit $status
