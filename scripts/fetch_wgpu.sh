#!/bin/sh
# Places wgpu-native and its headers below DEST: DEST/lib/libwgpu_native-release.so, DEST/include/{webgpu,wgpu}.h.
# They come out of the PyPI wheel `wgpu`. Does nothing where they are there already. Exit code 1 where that failed.
set -eu

version=0.32.0
if [ $# -ne 1 ]; then
  echo "usage: fetch_wgpu.sh DEST" >&2
  exit 2
fi
dest=$1
stamp=$dest/include/.wgpu-$version
library=libwgpu_native-release.so
if [ -e "$stamp" ] && [ -e "$dest/lib/$library" ] && [ -e "$dest/include/wgpu.h" ]; then exit 0; fi

case $(uname -m) in
  x86_64) platform=manylinux_2_28_x86_64 ;;
  aarch64) platform=manylinux_2_28_aarch64 ;;
  *) echo "fetch_wgpu.sh: no wheel for $(uname -m): WebGPU is left out" >&2; exit 1 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The wheels of both platforms, by content.
cat > "$work/wheels.txt" <<WHEELS
wgpu==$version --hash=sha256:6499a31b5a29a10b4f1089fea4a0806411f42605fa86b6c0b543a07ca0de8568 --hash=sha256:00454ba1bc794d38c8365f4ad29f381b88ce0a7f115133bfaa6f1dfad7eb2764
WHEELS
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
  --platform "$platform" --dest "$work" -r "$work/wheels.txt" >&2 || {
  echo "fetch_wgpu.sh: wgpu $version could not be downloaded: WebGPU is left out" >&2
  exit 1
}
python3 - "$work" "$dest" <<'PYTHON'
import glob, os, sys, zipfile

work, dest = sys.argv[1:]
places = {"libwgpu_native-release.so": "lib", "webgpu.h": "include", "wgpu.h": "include"}
with zipfile.ZipFile(glob.glob(os.path.join(work, "*.whl"))[0]) as wheel:
    for name, folder in places.items():
        os.makedirs(os.path.join(dest, folder), exist_ok=True)
        target = os.path.join(dest, folder, name)
        with open(target + ".part", "wb") as out:
            out.write(wheel.read("wgpu/resources/" + name))
        os.chmod(target + ".part", 0o755 if folder == "lib" else 0o644)
        os.replace(target + ".part", target)
PYTHON
: > "$stamp"
