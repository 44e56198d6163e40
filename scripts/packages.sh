#!/usr/bin/env bash
# Installs the Debian packages that ./run (default), ./test or scripts/wasm.sh (web) needs, if any is missing. Needs
# root or sudo for that.
# usage: packages.sh [run|test|web]
set -euo pipefail

run=(cmake ninja-build g++ ccache lld-19 llvm-19-dev libfmt-dev libcli11-dev nlohmann-json3-dev libtbb-dev
  libgdal32 libnetcdf19 libpng-dev libfreetype-dev libtomlplusplus-dev libeigen3-dev libzstd-dev libxml2-dev zlib1g-dev libbz2-dev libtinfo-dev python3 python3-pip libvulkan1 mesa-vulkan-drivers)
test=(git libgtest-dev librapidcheck-dev libbenchmark-dev clang-format-19 clang-tidy-19 chromium-common python3-dev python3-numpy python3-pytest python3-hypothesis
  pkg-config libavcodec-dev libavformat-dev libswscale-dev)
web=(clang-19 lld-19 wasi-libc libc++-19-dev-wasm32 libc++abi-19-dev-wasm32 libclang-rt-19-dev-wasm32 nodejs chromium)

wanted=("${run[@]}")
case "${1:-run}" in
  test)
    wanted+=("${test[@]}")
    if [ "${LOCKSTEP_WASM:-on}" != off ]; then wanted+=("${web[@]}"); fi
    ;;
  web) wanted=(libfmt-dev nlohmann-json3-dev "${web[@]}") ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "packages.sh: this is no Debian system; it needs the counterparts of: ${wanted[*]}" >&2
  exit 0
fi
missing=()
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true)
for package in "${wanted[@]}"; do
  grep -qx "installed $package" <<<"$installed" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

echo "Installing ${missing[*]}" >&2
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "packages.sh: root or sudo is needed once, to install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
apt_get() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@" </dev/null >&2; }
apt_get update
apt_get install -y --no-install-recommends "${missing[@]}"
