#!/usr/bin/env bash
# Builds the documentation site and opens it in a headless Chromium. Exit code 77 where a tool is missing.
# usage: test_docs.sh BUILD_FOLDER
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
for tool in chromium node; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed (scripts/packages.sh web)"; exit 77; }
done
status=0
"$root/scripts/site" --no-build "$build" || status=$?
if [ $status -eq 77 ]; then echo "skipped: the tools of scripts/site are not installed"; fi
if [ $status -ne 0 ]; then exit $status; fi
axe=$build/python_peers/axe_playwright_python/axe.min.js
if [ -f "$axe" ]; then export AXE=$axe; fi
export DOCS_SITE=$build/site/html
WEB_BROWSER=$(command -v chromium)
export WEB_BROWSER
cd "$root/tests/web"
node --no-warnings --test docs.test.mjs
