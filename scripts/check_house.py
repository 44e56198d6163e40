#!/usr/bin/env python3
"""Checks of the source tree: include direction, sizes, folders' READMEs, format, lint. One check per call; exit code 1 on a finding.

usage: check_house.py include-direction|platform|headers|files|libraries|fetches|language|comments|file-size|function-size|readme|format|tidy [ROOT]

tidy checks .clang-tidy itself and, by it, the folder $LOCKSTEP_TIDY (default src/core, the lowest layer; src is all); $LOCKSTEP_BUILD
(default build) holds compile_commands.json.
"""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

SKIPPED_EXIT_CODE = 77
LINE_LIMIT = 600
FUNCTION_LIMIT = 80
FUNCTION_FOLDERS = ("src/", "include/", "apps/", "examples/", "python/", "web/", "tests/", "bench/")
README_LIMIT = 100
SOURCE_SUFFIXES = (".cpp", ".hpp", ".h", ".cu", ".cuh", ".def", ".wgsl")
TEXT_SUFFIXES = SOURCE_SUFFIXES + (".py", ".sh", ".cmake", ".txt", ".md", ".js", ".html")
EXTENSIONLESS = ("run", "test", ".ci/run")

# Height of each layer: an include may only point to a lower one, or stay in its folder.
LAYERS = {
    "core": 0, "ir": 1, "math": 2, "compile": 4, "device": 5, "verify": 6, "primitives": 7, "autodiff": 8, "parallel": 8, "optimize": 9, "io": 10, "nn": 10,
}
APPLICATIONS = 11
# Public headers belong to the layer that implements them; all others are open to every layer.
PUBLIC_LAYERS = {"optimize.hpp": "optimize", "parallel.hpp": "parallel"}
# The program is made of public headers and of helpers of files and reports; what else it includes, and why.
PROGRAM_LAYERS = ("core", "io")
PROGRAM_EXCEPTIONS = {
    ("apps/cli/record/record.cpp", "device/variants/variants.hpp"): "a record names the variants that a run took",
    ("apps/cli/tune.cpp", "device/variants/table.hpp"): "writes the user's table",
    ("apps/cli/report/report.cpp", "urban/pictures/stress_clock.hpp"): "drawings of a page; drawings are not public",
    ("apps/cli/report/report.cpp", "urban/results/run_page.hpp"): "a page, which is HTML and not data",
    ("apps/cli/bench/bench_crossover.cpp", "solve/minimize/crossover.hpp"): "times the solver on two devices",
}
# A folder's cases are a library of their own above its code: they need the runners and a device.
CASE_FILES = ("cases.cpp", "cases.hpp")
# Headers of the system stay behind src/core/platform in the folders that are compiled for the web as well, and in the
# back ends.
PORTABLE_LAYERS = ("core", "ir", "math", "compile", "device", "verify", "primitives", "autodiff")
SYSTEM_INCLUDE = re.compile(r"^\s*#\s*include\s+<((?:unistd|fcntl|dlfcn|pthread|signal|termios|sys/\w+)\.h|tbb/[^>]+)>")
# Names whose header other headers include in some versions of a library only: fmt 11 leaves out fmt::join.
OWN_HEADERS = {"fmt/ranges.h": re.compile(r"\bfmt::join\b")}
# Calls that make or change files by name.
MADE_FILE = re.compile(r"\b(?:fopen\s*\(|freopen\s*\(|creat\s*\(|std::ofstream|std::fstream|O_CREAT|O_WRONLY|O_RDWR|mkdir(?:at)?\s*\(|mkstemp"
                       r"|(?:fs|filesystem)::(?:create_\w+|rename|copy(?:_\w+)?|resize_file|permissions)\s*\()")
# Calls that load libraries; core/dynamic_library makes them, by absolute path.
LOADED_LIBRARY = re.compile(r"\b(?:dlm?open|LoadLibrary\w*)\s*\(|^\s*(?:import|from)\s+(?:ctypes|cffi)\b")
# Fetches over the network while building have the hash of its content on the same command.
FETCHES = (
    (re.compile(r"\bpip3?[\"', ]+(?:install|download|wheel)\b"), re.compile(r"--require-hashes|--no-build-isolation.*--no-deps|--no-deps.*--no-build-isolation")),
    (re.compile(r"\b(?:FetchContent_Declare|ExternalProject_Add|CPMAddPackage)\s*\(|\bfile\s*\(\s*DOWNLOAD\b", re.I),
     re.compile(r"\b(?:URL_HASH|EXPECTED_HASH)\s+SHA(?:256|512)\b|\bGIT_TAG\s+[0-9a-f]{40}\b")),
    (re.compile(r"\b(?:curl|wget)\s+-|\burlopen\s*\(|\burlretrieve\s*\("), re.compile(r"\bsha(?:256|512)(?:sum)?\b")),
    (re.compile(r"\bgit[\"', ]+clone\b.*(?:://|git@)|\b(?:npm|npx|cargo|gem|conda|go)[\"', ]+(?:install|get|add|exec|ci)\b"), re.compile(r"$^")),
)
FETCHING_FILES = (".sh", ".cmake", "CMakeLists.txt", ".py", ".yml", ".yaml", "Dockerfile")
NO_HASH = re.compile(r"#\s*no hash: \S+")
# Above autodiff kernels are written in the kernel language: no instruction is built by hand.
HAND_BUILT = re.compile(r'\bir::|^\s*#\s*include\s+"(?:lockstep/)?ir/[^"]+\.hpp"')
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def files_of(root):
    """Tracked files, or all files outside build folders where git is absent."""
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=True).stdout
        names = [name for name in listed.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = []
        for folder, folders, entries in os.walk(root):
            folders[:] = [f for f in folders if not f.startswith(".") and f not in ("build", "out", "install")]
            names += [os.path.relpath(os.path.join(folder, entry), root) for entry in entries]
    return sorted(name for name in names if os.path.isfile(os.path.join(root, name)))


def add_applications(root):
    """The folders that lockstep_application names, each a layer above all others with its public header."""
    lists = os.path.join(root, "CMakeLists.txt")
    if os.path.isfile(lists):
        with open(lists, encoding="utf-8") as file:
            for name in re.findall(r"^lockstep_application\((\w+)\)", file.read(), re.M):
                LAYERS[name] = APPLICATIONS
                PUBLIC_LAYERS[f"{name}.hpp"] = name


def layer_of_include(include):
    parts = include.split("/")
    if parts[0] == "lockstep":
        return PUBLIC_LAYERS.get(parts[-1]) if len(parts) == 2 else None
    return parts[0] if parts[0] in LAYERS and len(parts) > 1 else None


def check_include_direction(root):
    findings, checked, included = [], 0, set()
    for name in files_of(root):
        if not name.endswith(SOURCE_SUFFIXES):
            continue
        parts = name.split("/")
        inside = parts[1] if parts[0] == "src" and len(parts) > 2 else None
        public = name.startswith("include/")
        height = LAYERS.get(inside, 0)
        if parts[-1] in CASE_FILES:
            height = max(height, LAYERS["verify"] + 1)
        if inside is not None and inside not in LAYERS:
            findings.append(f"{name}: folder src/{inside} has no layer: name it in scripts/check_house.py")
            continue
        program = name.startswith("apps/cli/")
        if not (inside or public or program or parts[0] == "examples"):
            continue
        with open(os.path.join(root, name), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                checked += 1
                include = match.group(1)
                target = layer_of_include(include)
                if program:
                    included.add((name, include))
                    private = target and not include.startswith("lockstep/") and target not in PROGRAM_LAYERS
                    if private and (name, include) not in PROGRAM_EXCEPTIONS:
                        findings.append(f"{name}:{number}: includes \"{include}\": the program uses public headers, so that its users' programs can do the same")
                elif public or parts[0] == "examples":
                    if not include.startswith("lockstep/"):
                        findings.append(f"{name}:{number}: includes \"{include}\": only public headers may be used here")
                elif target and target != inside and LAYERS[target] >= height:
                    findings.append(f"{name}:{number}: {inside} includes \"{include}\" of {target}, which is not below it")
                elif include.startswith("..") or include.startswith("apps/") or include.startswith("tests/"):
                    findings.append(f"{name}:{number}: includes \"{include}\": not a path below src or include")
    findings += [f"{name}: no longer includes \"{include}\": leave it out of PROGRAM_EXCEPTIONS"
                 for name, include in PROGRAM_EXCEPTIONS if os.path.isfile(os.path.join(root, name)) and (name, include) not in included]
    print(f"include direction: {checked} includes checked, {len(findings)} findings")
    return findings


def check_lines(root, what, chosen, fault):
    """Findings of the lines of all chosen files: fault(line) says what is wrong, or nothing."""
    findings, checked = [], 0
    for name in files_of(root):
        if not chosen(name):
            continue
        checked += 1
        with open(os.path.join(root, name), encoding="utf-8") as file:
            findings += [f"{name}:{number}: {found}" for number, line in enumerate(file, 1) if (found := fault(line))]
    print(f"{what}: {checked} files checked, {len(findings)} findings")
    return findings


def is_above_platform(name, roots, suffixes=SOURCE_SUFFIXES):
    return name.startswith(roots) and name.endswith(suffixes) and not name.startswith("src/core/platform/")


def check_platform(root):
    def chosen(name):
        parts = name.split("/")
        return is_above_platform(name, "src/") and len(parts) > 2 and parts[1] in PORTABLE_LAYERS

    def fault(line):
        match = SYSTEM_INCLUDE.match(line)
        return match and f"<{match.group(1)}> belongs behind src/core/platform"

    return check_lines(root, "platform", chosen, fault)


def check_headers(root):
    findings, checked = [], 0
    for name in files_of(root):
        if not name.endswith(SOURCE_SUFFIXES):
            continue
        checked += 1
        with open(os.path.join(root, name), encoding="utf-8") as file:
            text = file.read()
        findings += [f"{name}: uses {use.pattern[2:-2]} without <{header}>" for header, use in OWN_HEADERS.items()
                     if use.search(text) and f"#include <{header}>" not in text]
    print(f"headers: {checked} files checked, {len(findings)} findings")
    return findings


def check_files(root):
    """Files and folders are made by core/files alone; its system part is in core/platform."""
    def fault(line):
        match = MADE_FILE.search(line.split("//")[0])
        return match and "/dev/null" not in line and f"{match.group(0)} belongs in src/core/files"

    return check_lines(root, "files", lambda name: is_above_platform(name, ("src/", "apps/", "python/src/")), fault)


def check_libraries(root):
    """Libraries are loaded by core/dynamic_library alone."""
    def fault(line):
        match = LOADED_LIBRARY.search(line.split("//")[0])
        return match and f"{match.group(0).strip()} belongs in src/core/dynamic_library.hpp"

    return check_lines(root, "libraries", lambda name: is_above_platform(name, ("src/", "apps/", "python/"), SOURCE_SUFFIXES + (".py",)), fault)


def commands_of(text):
    """(line, command) with continued lines and open parentheses joined; comments and strings of documentation are left out."""
    text = re.sub(r'"""(?:.|\n)*?"""', lambda found: "\n" * found.group(0).count("\n"), text)
    whole, start, depth = "", 0, 0
    for number, line in enumerate(text.splitlines(), 1):
        code = re.sub(r"(?:^|\s)#(?!\s*no hash:).*", "", line)
        start = start or number
        depth += code.count("(") - code.count(")")
        whole += " " + code.rstrip("\\")
        if depth > 0 and number - start < 60 or code.endswith("\\"):
            continue
        yield start, whole
        whole, start, depth = "", 0, 0
    if whole:
        yield start, whole


def check_fetches(root):
    """Everything that a script or CMake fetches is pinned by hash; Debian's packages are signed. A build backend has an exact version."""
    findings, checked = [], 0
    for name in files_of(root):
        if name == "pyproject.toml":
            with open(os.path.join(root, name), encoding="utf-8") as file:
                listed = re.search(r"^requires\s*=\s*\[(.*?)\]", file.read(), re.M | re.S)
            for need in re.findall(r'"([^"]+)"', listed.group(1)) if listed else []:
                checked += 1
                if not re.fullmatch(r"[\w.-]+==[\w.]+", need):
                    findings.append(f"{name}: {need}: expected an exact version")
        if not (name.endswith(FETCHING_FILES) or name in EXTENSIONLESS) or name.startswith(("tests/house/", "scripts/check_house.py")):
            continue
        with open(os.path.join(root, name), encoding="utf-8") as file:
            text = file.read()
            if name.endswith((".cmake", "CMakeLists.txt")):
                text = re.sub(r"`[^`\n]*`", "", text)  # quoted in a message
            for number, command in commands_of(text):
                for fetch, pin in FETCHES:
                    if not (match := fetch.search(command)):
                        continue
                    checked += 1
                    if not pin.search(command) and not NO_HASH.search(command):
                        findings.append(f"{name}:{number}: {match.group(0).strip()}: no hash of what it fetches")
    print(f"fetches: {checked} checked, {len(findings)} findings")
    return findings


def check_language(root):
    findings, checked = [], 0
    for name in files_of(root):
        parts = name.split("/")
        above = parts[0] == "apps" or parts[0] == "src" and LAYERS.get(parts[1], 0) > LAYERS["autodiff"]
        if not (above and name.endswith(SOURCE_SUFFIXES)):
            continue
        checked += 1
        with open(os.path.join(root, name), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if HAND_BUILT.search(line.split("//")[0]):
                    findings.append(f"{name}:{number}: builds instructions; only autodiff and what is below it may")
    print(f"language: {checked} files checked, {len(findings)} findings")
    return findings


COMMENT_OF_WHAT = re.compile(r"(?://[/!]?<?|#)\s*What\b")


def check_comments(root):
    """A comment is a statement, or the name of the thing below it: none begins with "What"."""
    findings, checked = [], 0
    for name in files_of(root):
        if not name.endswith(SOURCE_SUFFIXES + (".py", ".sh", ".cmake", ".txt")):
            continue
        checked += 1
        with open(os.path.join(root, name), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if COMMENT_OF_WHAT.search(line):
                    findings.append(f"{name}:{number}: begins with \"What\": say it as a statement")
    print(f"comments: {checked} files checked, {len(findings)} findings")
    return findings


def check_file_size(root):
    findings, checked = [], 0
    for name in files_of(root):
        if not (name.endswith(TEXT_SUFFIXES) or name in EXTENSIONLESS):
            continue
        checked += 1
        with open(os.path.join(root, name), encoding="utf-8") as file:
            lines = sum(1 for _ in file)
        if lines > LINE_LIMIT:
            findings.append(f"{name}: {lines} lines, at most {LINE_LIMIT}")
    print(f"file size: {checked} files checked, {len(findings)} findings")
    return findings


COMMENT_OR_TEXT = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.S)
TYPE_HEAD = re.compile(r"\b(?:namespace|struct|class|union|enum)\b[^()]*$")


def functions_of(text):
    """(first line, lines, head) of each outermost function, by its braces."""
    text = COMMENT_OR_TEXT.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)
    opened, inside, last = [], 0, 0
    for match in re.finditer(r"[{};]", text):
        if match.group(0) == "{":
            head = text[last:match.start()]
            begins = not inside and ")" in head and not TYPE_HEAD.search(head)
            inside += begins
            opened.append((begins, match.start(), head.strip()))
        elif match.group(0) == "}" and opened:
            begins, start, head = opened.pop()
            if begins:
                inside -= 1
                first = text.count("\n", 0, start) + 1
                yield first, text.count("\n", 0, match.start()) + 2 - first, " ".join(head.split())
        last = match.end()


def check_function_size(root):
    findings, checked = [], 0
    for name in files_of(root):
        if not (name.startswith(FUNCTION_FOLDERS) and name.endswith((".cpp", ".hpp", ".h", ".cu", ".cuh"))):
            continue
        with open(os.path.join(root, name), encoding="utf-8") as file:
            for line, lines, head in functions_of(file.read()):
                checked += 1
                if lines > FUNCTION_LIMIT:
                    findings.append(f"{name}:{line}: {lines} lines, at most {FUNCTION_LIMIT}: {head[:100]}")
    print(f"function size: {checked} functions checked, {len(findings)} findings")
    return findings


def check_readme(root):
    """Every folder under src with sources of its own begins with a README of a screen."""
    names = files_of(root)
    folders = {os.path.dirname(name) for name in names if name.startswith("src/") and name.endswith(SOURCE_SUFFIXES)}
    while above := {os.path.dirname(folder) for folder in folders if folder != "src"} - folders:
        folders |= above
    findings = []
    for folder in sorted(folders):
        if f"{folder}/README.md" not in names:
            findings.append(f"{folder}: no README.md: what is here, where to begin")
            continue
        with open(os.path.join(root, folder, "README.md"), encoding="utf-8") as file:
            lines = sum(1 for _ in file)
        if lines > README_LIMIT:
            findings.append(f"{folder}/README.md: {lines} lines, at most {README_LIMIT}")
    print(f"readme: {len(folders)} folders checked, {len(findings)} findings")
    return findings


def check_format(root):
    tool = shutil.which("clang-format-19")
    if not tool:
        print("format: clang-format-19 is not installed: SKIPPED")
        sys.exit(SKIPPED_EXIT_CODE)
    sources = [name for name in files_of(root) if name.endswith((".cpp", ".hpp", ".h", ".cu", ".cuh"))]

    # Many files to a process: starting one for each would take five times as long.
    def unclean(names):
        done = subprocess.run([tool, "--dry-run", "-Werror", *names], cwd=root, capture_output=True, text=True)
        named = {line.split(":", 1)[0] for line in done.stderr.splitlines() if " error: " in line}
        return sorted(named) or (names if done.returncode else [])

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        batches = [sources[k:k + 50] for k in range(0, len(sources), 50)]
        findings = [f"{name}: run clang-format-19 -i on it" for names in pool.map(unclean, batches) for name in names]
    print(f"format: {len(sources)} files checked, {len(findings)} findings")
    return findings


def check_tidy(root):
    """Lints the build's files, unity files where it has such: their sources are what the header filter lets through."""
    tool = shutil.which("clang-tidy-19")
    build = os.environ.get("LOCKSTEP_BUILD", os.path.join(root, "build"))
    commands = os.path.join(build, "compile_commands.json")
    if not tool or not os.path.exists(commands):
        print("tidy: clang-tidy-19 or compile_commands.json is missing: SKIPPED")
        sys.exit(SKIPPED_EXIT_CODE)
    verified = subprocess.run([tool, "--verify-config"], cwd=root, capture_output=True, text=True)
    findings = [] if verified.returncode == 0 and "No config errors" in verified.stdout + verified.stderr else [
        ".clang-tidy: " + (verified.stdout + verified.stderr).strip()]
    folder = os.environ.get("LOCKSTEP_TIDY", "src/core") + "/"
    with open(commands) as file:
        names = [entry["file"] for entry in json.load(file)]
    sources = [name for name in names if os.path.relpath(name, build).startswith(folder) or os.path.relpath(name, root).startswith(folder)]
    # A source that is in a unity file needs no linting by itself.
    units = "".join(open(name, encoding="utf-8").read() for name in sources if "/Unity/" in name)
    sources = [name for name in sources if f'"{name}"' not in units]
    if not sources:
        findings.append(f"tidy: no file of {folder} in {commands}")

    def lint(name):
        done = subprocess.run([tool, "-p", build, "--quiet", name], cwd=root, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if " warning: " in line or " error: " in line]
        return lines or ([f"{name}: {done.stderr.strip()[-300:]}"] if done.returncode else [])

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines in pool.map(lint, sources):
            findings += lines
    print(f"tidy: {len(sources)} files of {folder} checked, {len(findings)} findings")
    return sorted(set(findings))


CHECKS = {"include-direction": check_include_direction, "platform": check_platform, "headers": check_headers, "files": check_files, "libraries": check_libraries, "fetches": check_fetches, "language": check_language, "comments": check_comments,
          "file-size": check_file_size, "function-size": check_function_size, "readme": check_readme, "format": check_format, "tidy": check_tidy}


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in CHECKS:
        sys.exit(__doc__)
    root = sys.argv[2] if len(sys.argv) == 3 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    add_applications(root)
    findings = CHECKS[sys.argv[1]](root)
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
