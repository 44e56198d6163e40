"""scripts/release on a finished build: the files, their sums, the bill of materials. It runs the archive and the package itself.

usage: test_release.py SOURCE BUILD
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

SOURCE, BUILD = map(pathlib.Path, sys.argv[1:])
# Statically linked and compiled in, in every build.
KNOWN = ("llvm", "fmt", "tbb", "nlohmann-json", "cli11", "eigen", "toml", "freetype", "png", "zlib", "dejavu", "nanobind")


def release(*arguments):
    return subprocess.run([sys.executable, SOURCE / "scripts/release", *arguments], capture_output=True, text=True, check=False)


def refuses(saying, *arguments):
    done = release(*arguments)
    assert done.returncode != 0 and saying in done.stderr, f"{arguments}: {done.returncode}\n{done.stderr}"


def check_sums(out):
    lines = dict(reversed(line.split("  ")) for line in (out / "SHA256SUMS").read_text().splitlines())
    files = {f.name for f in out.iterdir()} - {"SHA256SUMS"}
    assert lines.keys() == files, f"sums of {sorted(lines)}, files {sorted(files)}"
    for name, digest in lines.items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest, name
    return lines


def check_materials(out, sums, members):
    bill = json.loads((out / "sbom.spdx.json").read_text())
    packages = {p["name"]: p for p in bill["packages"]}
    for name, digest in sums.items():
        assert name == "sbom.spdx.json" or packages[name]["checksums"][0]["checksumValue"] == digest, name
    for part in KNOWN:
        assert any(part in name for name in packages), f"{part} is not in the bill: {sorted(packages)}"
    # Every shared library of the archive has its part.
    contained = {r["relatedSpdxElement"] for r in bill["relationships"] if r["relationshipType"] == "CONTAINS"}
    names = [p["name"] for p in bill["packages"] if p["SPDXID"] in contained]
    for library in {re.match(r"lib([a-z]+)", m.rpartition("/")[2]).group(1) for m in members if "/lib/" in m and ".so" in m}:
        owner = {"z": "zlib", "brotlidec": "brotli", "brotlicommon": "brotli"}.get(library, library)
        assert any(owner in name for name in names), f"lib{library} is not in the bill: {names}"
    texts = {i["licenseId"] for i in bill["hasExtractedLicensingInfos"]}
    for p in packages.values():
        assert p["versionInfo"] and re.fullmatch(r"[\w.+ -]+", p["licenseConcluded"]), p
        assert not p["licenseConcluded"].startswith("LicenseRef-") or p["licenseConcluded"] in texts, p["licenseConcluded"]


def main():
    refuses("expected a tag, or --snapshot")
    refuses("expected a tag, or --snapshot", "v1", "--snapshot")
    refuses("expected portable with it", "--snapshot", "--part", "container")
    refuses("tag v0.0.0-none", "v0.0.0-none")
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        done = release("--snapshot", "--no-build", "--build", BUILD, "--out", out, "--part", "portable", "--part", "deb", "--part", "container")
        print(done.stdout, done.stderr, sep="")
        assert done.returncode == 0
        assert len(re.findall(r": runs in (?:an empty root|a folder)", done.stdout)) == 2
        sums = check_sums(out)
        archive, = out.glob("*.tar.gz")
        assert f"ADD {archive.name} /opt/" in (out / "Containerfile").read_text()
        with tarfile.open(archive) as tar:
            members = tar.getnames()
            assert all(m.uid == 0 and m.uname == "" for m in tar.getmembers())
        for file in ("bin/lockstep", "LICENSE", "THIRD_PARTY_LICENSES"):
            assert any(m.endswith(f"/{file}") for m in members), file
        check_materials(out, sums, members)
        package, = out.glob("*.deb")
        listed = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True).stdout
        for place in ("bin/lockstep", "man/man1/lockstep.1.gz", "doc/lockstep/copyright", "bash-completion/completions/lockstep"):
            assert place in listed, place


if subprocess.run(["git", "-C", SOURCE, "rev-parse"], capture_output=True, check=False).returncode != 0:
    print("skipped: not a git working tree")
    sys.exit(77)
main()
