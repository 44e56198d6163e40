#!/bin/sh
# Places the packages of python_peers.txt into DEST/python_peers, for the tests that compare with them. Does nothing where
# they are there already. Exit code 1 where that failed. PyTorch is not among them: PyPI's wheel for Linux on x86-64 brings
# 5 GB of CUDA libraries; its tests run where the interpreter, or a folder of PYTHONPATH, has it.
set -eu

if [ $# -ne 1 ]; then
  echo "usage: fetch_python_peers.sh DEST" >&2
  exit 2
fi
list=$(dirname "$0")/python_peers.txt
dest=$1/python_peers
if cmp -s "$list" "$dest/python_peers.txt"; then exit 0; fi
rm -rf "$dest"
python=$(command -v /usr/bin/python3 || command -v python3)
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --no-compile --only-binary :all: --require-hashes \
  --target "$dest" -r "$list" >&2 || {
  rm -rf "$dest"
  echo "fetch_python_peers.sh: the packages of $list could not be downloaded: tests that need one are skipped" >&2
  exit 1
}
cp "$list" "$dest/python_peers.txt"
