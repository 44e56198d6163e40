#!/usr/bin/env bash
# Installs missing Debian or Ubuntu packages that ./run (default), ./test or scripts/wasm.sh (web) needs, and lists them
# first. Installing requires root or sudo. --no-install: lists the missing packages and changes nothing.
# Names whose number differs between releases are patterns (of grep -E) without +; the newest package of the release is used.
# If the release lacks a package of `build` or `build_tests`, nothing is installed; features that need others are left out.
# usage: packages.sh [--no-install] [run|test|web]
set -euo pipefail

build=(cmake ninja-build g++ lld-19 llvm-19-dev libfmt-dev libcli11-dev nlohmann-json3-dev libtbb-dev libpng-dev libfreetype-dev
  libtomlplusplus-dev libeigen3-dev libzstd-dev libxml2-dev zlib1g-dev libbz2-dev libncurses-dev python3)
run=("${build[@]}" ccache 'libgdal[0-9]{2}(t64)?' 'libnetcdf[0-9]{2}(t64)?' python3-pip libvulkan1 mesa-vulkan-drivers)
build_tests=(libgtest-dev librapidcheck-dev)
test=("${build_tests[@]}" git dpkg-dev libbenchmark-dev clang-19 libclang-rt-19-dev clang-format-19 clang-tidy-19 chromium-common python3-dev python3-numpy python3-pytest
  python3-hypothesis python3-sphinx python3-myst-parser python3-bs4 doxygen codespell pkg-config openmpi-bin libavcodec-dev libavformat-dev libswscale-dev)
web=(clang-19 lld-19 wasi-libc libc++-19-dev-wasm32 libc++abi-19-dev-wasm32 libclang-rt-19-dev-wasm32 nodejs chromium)

required=()
no_install=
if [ "${1:-}" = --no-install ]; then
  no_install=1
  shift
fi
wanted=("${run[@]}")
case "${1:-run}" in
  run) required=("${build[@]}") ;;
  test)
    required=("${build[@]}" "${build_tests[@]}")
    wanted+=("${test[@]}")
    if [ "${LOCKSTEP_WASM:-on}" != off ]; then wanted+=("${web[@]}"); fi
    ;;
  web) wanted=(libfmt-dev nlohmann-json3-dev "${web[@]}") ;;
  *)
    echo "packages.sh: '$1': expected run, test or web" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "packages.sh: this is not a Debian or Ubuntu system; install the equivalents of: ${wanted[*]}" >&2
  exit 0
fi
mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | awk '!seen[$0]++')  # test and web share a name
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
missing=()
for package in "${wanted[@]}"; do
  grep -qxE -- "${package//+/\\+}" <<<"$installed" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
apt_get() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@" </dev/null >&2; }
if [ -z "$no_install" ]; then
  echo "packages.sh: missing: ${missing[*]}" >&2
  if [ ${#as_root[@]} -ne 0 ] && ! command -v sudo >/dev/null; then
    echo "packages.sh: root or sudo is needed once, to install them" >&2
    exit 1
  fi
  apt_get update
fi

known=$(apt-cache pkgnames)
found=()
unknown=()
for package in "${missing[@]}"; do
  name=$(grep -xE -- "${package//+/\\+}" <<<"$known" | sort -V | tail -n 1 || true)
  if [ -n "$name" ]; then found+=("$name"); else unknown+=("$package"); fi
done
release=$(. /etc/os-release 2>/dev/null && echo "$PRETTY_NAME" || echo "this release")
if [ -n "$no_install" ]; then
  if [ ${#found[@]} -ne 0 ]; then echo "packages.sh: not installed: ${found[*]}" >&2; fi
  if [ ${#unknown[@]} -ne 0 ]; then echo "packages.sh: not installed, and not in apt's lists of $release: ${unknown[*]}" >&2; fi
  exit 0
fi
if [ ${#unknown[@]} -ne 0 ]; then
  lacking=$(grep -xF "$(printf '%s\n' "${unknown[@]}")" <<<"$(printf '%s\n' "${required[@]}")" | paste -sd ' ' || true)
  if [ -n "$lacking" ]; then
    echo "packages.sh: $release has no $lacking: Lockstep cannot be built from its packages; nothing was installed" >&2
    echo "packages.sh: the wheel and the portable archive of a release need none of them; if $lacking are installed from elsewhere, use --no-install" >&2
    exit 1
  fi
  echo "packages.sh: $release has no ${unknown[*]}: features that need them are left out" >&2
fi
if [ ${#found[@]} -eq 0 ]; then exit 0; fi
echo "packages.sh: installing ${found[*]}" >&2
apt_get install -y --no-install-recommends "${found[@]}"
