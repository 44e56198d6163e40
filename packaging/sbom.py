"""The parts of others in what a release ships: an SPDX document and the texts of their licences.

Everything is read from the build: packages whose headers were compiled in (which covers static libraries), and those of the shared
libraries in a folder. Versions and licences are those of the packages.
"""
import dataclasses
import datetime
import json
import pathlib
import re
import subprocess

# Of the compiler and of the system that a program runs on.
SYSTEM = re.compile(r"(libc6|linux-libc|libgcc|libstdc\+\+|gcc|libcrypt|libunwind).*")
# Short names of Debian's copyright files.
SPDX = {"expat": "MIT", "mit": "MIT", "apache-2.0": "Apache-2.0", "apache-2-llvm-exceptions": "Apache-2.0 WITH LLVM-exception",
        "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause", "zlib": "Zlib", "libpng": "libpng-2.0", "ftl": "FTL",
        "mpl-2.0": "MPL-2.0", "mpl-2": "MPL-2.0", "gpl-2": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later", "lgpl-2.1": "LGPL-2.1-only",
        "lgpl-2.1+": "LGPL-2.1-or-later", "cc0-1.0": "CC0-1.0"}


@dataclasses.dataclass
class Part:
    name: str
    version: str
    homepage: str
    licence: str  # an SPDX expression
    text: str  # of the licences
    relation: str  # of SPDX
    about: str


def output(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, **options).stdout


def packages_of(files):
    """The package of each file that one owns."""
    owners = {}
    files = sorted({str(name) for f in files for name in (f, pathlib.Path(f).resolve())})
    for first in range(0, len(files), 500):
        done = subprocess.run(["dpkg-query", "-S", *files[first:first + 500]], capture_output=True, text=True, check=False).stdout
        owners |= {path: owner.split(",")[0].split(":")[0] for owner, path in re.findall(r"^(\S+?): (/.*)$", done, re.M)}
    return owners


def licence_of(package, text):
    """The licence of "Files: *", as an expression of SPDX; a reference to the text where it has no name there."""
    main = re.search(r"^Files: \*\n(?:(?!\n\n)[\s\S])*?^License: *(.+)$", text, re.M)
    names = re.split(r"\s+(or|and)\s+", main.group(1).strip(), flags=re.I) if main else [""]
    known = [SPDX.get(name.lower()) if k % 2 == 0 else name.upper() for k, name in enumerate(names)]
    return " ".join(known) if all(known) else f"LicenseRef-{package}"


def part_of(package, relation, about):
    version, source, homepage = output("dpkg-query", "-W", "-f", "${Version}\t${source:Package}\t${Homepage}", package).split("\t")
    text = pathlib.Path(f"/usr/share/doc/{package}/copyright").read_text(encoding="utf-8", errors="replace")
    return Part(package, version, homepage or "NOASSERTION", licence_of(package, text), text, relation, f"{about} (source {source})")


def headers_of(build, target):
    """All headers outside the tree that the objects of a target were compiled with."""
    inputs = output("ninja", "-C", build, "-t", "inputs", target).split()
    objects = [name for name in inputs if name.endswith(".o")]
    return {line.strip() for line in output("ninja", "-C", build, "-t", "deps", *objects).splitlines() if line.startswith("    /usr/")}


def libraries_of(program):
    """The shared libraries that a program is linked with, by name."""
    return dict(re.findall(r"(\S+) => (/\S+)", output("ldd", program)))


def parts(source, build, prefix):
    """What the program and the library contain of others."""
    compiled = {p for p in packages_of(headers_of(build, "bin/lockstep")).values() if not SYSTEM.fullmatch(p)}
    needed = libraries_of(build / "bin/lockstep")
    shared = {name: needed[name] for name in (f.name for f in prefix.glob("lib/*.so*")) if name in needed}
    owners = packages_of(shared.values())
    bundled = {owners.get(path) or owners[str(pathlib.Path(path).resolve())] for path in shared.values()}
    found = [part_of(p, "CONTAINS", "shared library in the archives and the wheel") for p in sorted(bundled)]
    found += [part_of(p, "STATIC_LINK", "compiled in: headers or a static library") for p in sorted(compiled)]
    fonts = (source / "src/io/pictures/fonts/LICENSE").read_text(encoding="utf-8")
    found.append(Part("dejavu-fonts", re.search(r"fonts (\S+)", fonts).group(1), "https://dejavu-fonts.github.io", "LicenseRef-dejavu-fonts",
                      fonts, "STATIC_LINK", "subsets of two fonts, compiled in"))
    if (prefix / "lib/libwgpu_native-release.so").exists():
        version = re.search(r"^version=(\S+)", (source / "scripts/fetch_wgpu.sh").read_text(encoding="utf-8"), re.M).group(1)
        found.append(Part("wgpu-native", f"of wgpu-py {version}", "https://github.com/gfx-rs/wgpu-native", "MIT OR Apache-2.0", "",
                          "CONTAINS", "shared library in the portable archive and the package, loaded on need"))
    version = re.search(r"^version=(\S+)", (source / "scripts/fetch_nanobind.sh").read_text(encoding="utf-8"), re.M).group(1)
    found.append(Part("nanobind", version, "https://github.com/wjakob/nanobind", "BSD-3-Clause", "", "STATIC_LINK", "compiled into the wheel"))
    return found


def licence_texts(found):
    rule = "=" * 120
    return "".join(f"{rule}\n{p.name} {p.version}: {p.licence}\n{p.about}; {p.homepage}\n{rule}\n{p.text}\n" for p in found)


def document(name, version, commit, time, found, artifacts):
    """SPDX 2.3. `artifacts`: file name and SHA-256."""
    created = datetime.datetime.fromtimestamp(time, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    none = {"downloadLocation": "NOASSERTION", "copyrightText": "NOASSERTION", "filesAnalyzed": False}

    def identifier(text):
        return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)

    packages = [{"SPDXID": "SPDXRef-lockstep", "name": name, "versionInfo": version, "licenseConcluded": "Apache-2.0",
                 "licenseDeclared": "Apache-2.0", "sourceInfo": f"commit {commit}", **none}]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-lockstep")]
    for file, digest in artifacts.items():
        packages.append({"SPDXID": identifier(f"file-{file}"), "name": file, "packageFileName": file, "versionInfo": version,
                         "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
                         "checksums": [{"algorithm": "SHA256", "checksumValue": digest}], **none})
        relations.append((identifier(f"file-{file}"), "GENERATED_FROM", "SPDXRef-lockstep"))
    for p in found:
        packages.append({"SPDXID": identifier(f"part-{p.name}"), "name": p.name, "versionInfo": p.version, "licenseConcluded": p.licence,
                         "licenseDeclared": p.licence, "comment": p.about, **none, "homepage": p.homepage})
        relations.append(("SPDXRef-lockstep", p.relation, identifier(f"part-{p.name}")))
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"{name}-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{version}-{commit}",
        "creationInfo": {"created": created, "creators": ["Tool: scripts/release"]},
        "packages": packages,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations],
        "hasExtractedLicensingInfos": [{"licenseId": p.licence, "extractedText": p.text} for p in found if p.licence.startswith("LicenseRef-")],
    }, indent=1, ensure_ascii=False) + "\n"
