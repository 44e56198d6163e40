#!/usr/bin/env bash
# Spelling of documentation, comments and names: codespell finds common misspellings, apart from the words of spelling.txt.
# usage: spelling.sh SOURCE
set -euo pipefail
cd "$1"
command -v codespell >/dev/null || { echo "skipped: codespell is not installed (scripts/packages.sh test)"; exit 77; }
git ls-files -z -- '*.md' '*.hpp' '*.cpp' '*.h' '*.py' '*.pyi.in' '*.js' '*.mjs' '*.html' '*.sh' '*.cmake' '*CMakeLists.txt' |
  xargs -0 codespell -q 3 -I tests/house/spelling.txt
