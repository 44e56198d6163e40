"""A Debian package of the program, whose libraries are those of the system it is built on."""
import gzip
import pathlib
import re
import shutil
import subprocess

from sbom import output, packages_of

CONTROL = """Package: lockstep
Version: {version}
Section: science
Priority: optional
Architecture: {architecture}
Maintainer: The Lockstep maintainers <lockstep@example.org>
Installed-Size: {size}
Depends: {depends}
Recommends: {recommends}
Description: scientific GPU kernels, written once
 Kernels, urban climate, flow, residual losses and least squares on the CPU,
 CUDA and WebGPU, with bit-identical results on the CPU and CUDA.
"""
# Libraries that the program loads where they are there.
LOADED = r"lib(gdal|netcdf)\.so\.\d+"
COMPLETIONS = {"bash": "bash-completion/completions/lockstep", "zsh": "zsh/vendor-completions/_lockstep",
               "fish": "fish/vendor_completions.d/lockstep.fish"}


def dependencies(scratch, program, video):
    """(Depends, Recommends) by dpkg-shlibdeps; what is loaded on need is recommended."""
    (scratch / "debian").mkdir(parents=True)
    (scratch / "debian/control").write_text("Source: lockstep\nPackage: lockstep\nArchitecture: any\n", encoding="utf-8")
    on_need = ["-dRecommends", f"-e{video}"] if video.exists() else []
    found = output("dpkg-shlibdeps", "-O", "-dDepends", f"-e{program}", *on_need, cwd=scratch)
    fields = dict(re.findall(r"^shlibs:(\w+)=(.*)$", found, re.M))
    cache = output("/sbin/ldconfig", "-p")
    loaded = {path for name, path in re.findall(r"^\s+(\S+) .*=> (\S+)$", cache, re.M) if re.fullmatch(LOADED, name)}
    recommended = sorted(set(packages_of(loaded).values()) | set(filter(None, fields.get("Recommends", "").split(", "))))
    return fields["Depends"], ", ".join(recommended)


def closure(package):
    """The packages that a .deb depends on, and those that they depend on."""
    names, more = set(), output("dpkg-deb", "-f", package, "Depends")
    while fresh := set(re.findall(r"(?:^|[,|] )([a-z0-9.+-]+)", more, re.M)) - names:
        names |= fresh
        more = subprocess.run(["dpkg-query", "-W", "-f", "${Pre-Depends}\n${Depends}\n", *sorted(fresh)], capture_output=True, text=True,
                              check=False).stdout
    installed = output("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n")
    return sorted(names & set(re.findall(r"^installed (\S+)$", installed, re.M)))


def make(prefix, out, version, licences, scratch):
    """Packs the portable folder without the libraries that Debian has."""
    root = scratch / "root"
    home = root / "usr/lib/lockstep"
    shutil.copytree(prefix, home, ignore=lambda folder, names: [
        n for n in names if pathlib.Path(folder).name == "lib" and ".so" in n and "wgpu" not in n or n.startswith(("LICENSE", "THIRD"))])
    program = home / "bin/lockstep"
    depends, recommends = dependencies(scratch, program, home / "bin/lockstep_video.so")
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/lockstep").symlink_to("../lib/lockstep/bin/lockstep")
    texts = {f"usr/share/{place}": output(program, "completion", shell).encode() for shell, place in COMPLETIONS.items()}
    texts["usr/share/man/man1/lockstep.1.gz"] = gzip.compress(output(program, "completion", "man").encode(), mtime=0)
    texts["usr/share/doc/lockstep/copyright"] = licences.encode()
    for name, data in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    architecture = output("dpkg", "--print-architecture").strip()
    size = sum(f.lstat().st_size for f in root.rglob("*")) // 1024
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(CONTROL.format(version=version, architecture=architecture, size=size, depends=depends,
                                                        recommends=recommends), encoding="utf-8")
    package = out / f"lockstep_{version}_{architecture}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", root, package], check=True, stdout=subprocess.DEVNULL)
    return package
