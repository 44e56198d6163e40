#!/bin/sh
# Places NVRTC, the CUDA run-time compiler, into DEST/lib where no CUDA toolkit has it. It comes out of the PyPI wheel
# `nvidia-cuda-nvrtc` and needs no GPU. Exit code 1 where that failed.
set -eu

if [ $# -ne 1 ]; then
  echo "usage: fetch_nvrtc.sh DEST" >&2
  exit 2
fi
dest=$1
if ls "$dest"/lib/libnvrtc.so.* >/dev/null 2>&1; then exit 0; fi
if ls /usr/local/cuda*/lib64/libnvrtc.so.* >/dev/null 2>&1 || ldconfig -p | grep -q libnvrtc.so; then exit 0; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The wheels of both platforms, by content.
cat > "$work/wheels.txt" <<WHEELS
nvidia-cuda-nvrtc==13.5.37 --hash=sha256:86b4d68058807988b7d9af5b44917a0601e9c337f35ccd657bfb3c759ff8d8bc --hash=sha256:36e4fa2a8ada293f5693d308e531c196ab6f91cf7a0ff479bf96a537d43a6096
WHEELS
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
  --dest "$work" -r "$work/wheels.txt" >&2 || {
  echo "fetch_nvrtc.sh: NVRTC could not be downloaded: its compile checks are skipped" >&2
  exit 1
}
python3 - "$work" "$dest" <<'PYTHON'
import glob, os, sys, zipfile

work, dest = sys.argv[1:]
os.makedirs(os.path.join(dest, "lib"), exist_ok=True)
with zipfile.ZipFile(glob.glob(os.path.join(work, "*.whl"))[0]) as wheel:
    for name in wheel.namelist():
        base = os.path.basename(name)
        if not base.startswith("libnvrtc") or ".so" not in base or ".alt." in base:
            continue
        target = os.path.join(dest, "lib", base)
        with open(target + ".part", "wb") as out:
            out.write(wheel.read(name))
        os.chmod(target + ".part", 0o755)
        os.replace(target + ".part", target)
PYTHON
