#!/bin/sh
# Places nanobind, with which the Python module is built, into DEST/nanobind, out of its PyPI wheel (sources and CMake
# files alone). Does nothing where it is there already. Exit code 1 where that failed.
set -eu

version=3.1.0
if [ $# -ne 1 ]; then
  echo "usage: fetch_nanobind.sh DEST" >&2
  exit 2
fi
dest=$1/nanobind
if [ -e "$dest/nanobind-$version.dist-info" ]; then exit 0; fi
rm -rf "$dest"
wheels=$(mktemp)
trap 'rm -f "$wheels"' EXIT
echo "nanobind==$version --hash=sha256:96984dbe8154ffb86e653b1b60aaeed6985c710c5e75ad0279eb87943c66292d" > "$wheels"
python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes --target "$dest" \
  -r "$wheels" >&2 || {
  echo "fetch_nanobind.sh: nanobind $version could not be downloaded: the Python module is left out" >&2
  exit 1
}
