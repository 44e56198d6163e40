"""The checks of the source tree find what they look for, and nothing else."""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "check_house.py")


def run(check, files):
    with tempfile.TemporaryDirectory() as root:
        lists = "lockstep_application(urban)\nlockstep_application(pde)\nlockstep_application(solve)\n"
        for name, text in ({"CMakeLists.txt": lists} | files).items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([sys.executable, SCRIPT, check, root], capture_output=True, text=True)
        return done.returncode, done.stdout


class CheckHouse(unittest.TestCase):
    def test_includes_that_point_down_pass(self):
        code, text = run("include-direction", {
            "src/device/a.cpp": '#include "device/a.hpp"\n#include "core/reports/log.hpp"\n#include "lockstep/device.hpp"\n',
            "src/urban/a.cpp": '#include "io/raster.hpp"\n#include "lockstep/urban.hpp"\n',
            "include/lockstep/a.hpp": '#include "lockstep/b.hpp"\n#include <vector>\n',
            "apps/cli/a.cpp": '#include "io/a.hpp"\n#include "commands.hpp"\n#include "lockstep/urban.hpp"\n',
            "apps/cli/tune.cpp": '#include "device/variants/table.hpp"\n',
            "src/math/cases.cpp": '#include "verify/inputs.hpp"\n',
        })
        self.assertEqual(code, 0, text)
        self.assertIn("11 includes checked", text)

    def test_includes_that_point_up_or_sideways_are_found(self):
        for name, include in (("src/core/a.cpp", "device/a.hpp"), ("src/urban/a.cpp", "pde/a.hpp"),
                              ("src/primitives/a.cpp", "io/npy.hpp"), ("src/device/a.cpp", "lockstep/urban.hpp"),
                              ("include/lockstep/a.hpp", "core/reports/log.hpp"), ("examples/a.cpp", "device/a.hpp"),
                              ("apps/cli/pde/a.cpp", "pde/language/a.hpp"), ("apps/cli/a.cpp", "device/variants/table.hpp"),
                              ("apps/cli/tune.cpp", "device/variants/variants.hpp"), ("src/io/a.cpp", "../core/log.hpp"), ("src/math/a.cpp", "verify/inputs.hpp"), ("src/mystery/a.cpp", "core/reports/log.hpp")):
            code, text = run("include-direction", {name: f'#include "{include}"\n'})
            self.assertEqual(code, 1, (name, include, text))
            self.assertIn(name, text)

    def test_exceptions_that_nothing_needs_are_found(self):
        code, text = run("include-direction", {"apps/cli/tune.cpp": '#include "lockstep/device.hpp"\n'})
        self.assertEqual(code, 1, text)
        self.assertIn('apps/cli/tune.cpp: no longer includes "device/variants/table.hpp"', text)

    def test_headers_of_the_system_outside_the_platform_are_found(self):
        good = {"src/core/platform/posix/a.cpp": "#include <unistd.h>\n", "src/device/a.cpp": "#include <vector>\n",
                "src/io/a.cpp": "#include <sys/stat.h>\n"}
        code, text = run("platform", good)
        self.assertEqual(code, 0, text)
        for name, include in (("src/core/a.cpp", "unistd.h"), ("src/device/cpu/a.cpp", "tbb/parallel_for.h"),
                              ("src/device/webgpu/a.cpp", "dlfcn.h"), ("src/compile/a.hpp", "sys/mman.h")):
            code, text = run("platform", {name: f"#include <{include}>\n"})
            self.assertEqual(code, 1, (name, include))
            self.assertIn(f"{name}:1: <{include}>", text)

    def test_names_without_their_header_are_found(self):
        use = 'fmt::format("{}", fmt::join(a, b));\n'
        code, text = run("headers", {"src/core/a.cpp": "#include <fmt/ranges.h>\n" + use, "tests/a.cpp": "join(a);\n"})
        self.assertEqual(code, 0, text)
        self.assertIn("2 files checked", text)
        code, text = run("headers", {"bench/a.cpp": "#include <fmt/format.h>\n" + use})
        self.assertEqual(code, 1, text)
        self.assertIn("bench/a.cpp: uses fmt::join without <fmt/ranges.h>", text)

    def test_files_made_outside_core_files_are_found(self):
        good = {"src/core/platform/posix/a.cpp": "::open(name, O_CREAT);\n", "apps/cli/a.cpp": '::open("/dev/null", O_WRONLY);\n',
                "src/io/a.cpp": "std::ifstream in(name);  // no std::ofstream\nfs::remove(name);\n"}
        code, text = run("files", good)
        self.assertEqual(code, 0, text)
        self.assertIn("2 files checked", text)
        for line in ("std::ofstream out(name);", 'FILE* f = fopen(name, "w");', "::open(name, O_RDWR);", "fs::rename(a, b);",
                     "std::filesystem::create_directories(a);", "::mkdir(name, 0777);", "fs::copy_file(a, b);"):
            for name in ("src/urban/a.cpp", "apps/cli/a.cpp", "python/src/a.cpp"):
                code, text = run("files", {name: line + "\n"})
                self.assertEqual(code, 1, (name, line))
                self.assertIn(f"{name}:1", text)

    def test_libraries_loaded_elsewhere_are_found(self):
        good = {"src/core/platform/posix/a.cpp": "::dlopen(file, 0);\n", "src/device/a.cpp": "search.load();  // no dlopen()\n",
                "python/lockstep/a.py": "import numpy\n", "tests/a.cpp": "dlopen(name, 0);\n"}
        code, text = run("libraries", good)
        self.assertEqual(code, 0, text)
        for name, line in (("src/io/a.cpp", 'dlopen("libgdal.so", 1);'), ("python/src/a.cpp", "::dlopen(x, 0);"),
                           ("python/lockstep/a.py", "import ctypes")):
            code, text = run("libraries", {name: line + "\n"})
            self.assertEqual(code, 1, name)
            self.assertIn(f"{name}:1", text)

    def test_fetches_without_a_hash_are_found(self):
        digest = "0" * 64
        good = {"scripts/a.sh": "# pip install x\npip install --require-hashes -r a.txt\npip download \\\n  --require-hashes -r a.txt\n"
                                f"curl -o a https://a && echo {digest} a | sha256sum -c\ngit clone . copy\n",
                "CMakeLists.txt": f"FetchContent_Declare(a URL https://a\n  URL_HASH SHA256={digest})\nmessage(\"try `pip install x`\")\n",
                "scripts/a.py": '"""Run pip install x."""\nrun(python, "-m", "pip", "install", "--require-hashes", file)\n'
                                'run("pip", "install", wheel)  # no hash: a local file\n',
                "pyproject.toml": '[build-system]\nrequires = ["a-b==1.0"]\n'}
        code, text = run("fetches", good)
        self.assertEqual(code, 0, text)
        for name, line in (("scripts/a.sh", "python3 -m pip install x"), ("test", "pip3 download x==1"), ("scripts/a.sh", "curl -LO https://a"),
                           ("scripts/a.sh", "git clone --depth 1 https://a/b"), ("scripts/a.sh", "npm install"), ("scripts/a.py", 'run("pip", "install", name)'),
                           ("scripts/a.py", 'urllib.request.urlopen("https://a")'), ("cmake/a.cmake", "FetchContent_Declare(a GIT_REPOSITORY https://a GIT_TAG v1)"),
                           ("CMakeLists.txt", "file(DOWNLOAD https://a b)"), ("pyproject.toml", 'requires = ["a>=1"]')):
            code, text = run("fetches", {name: line + "\n"})
            self.assertEqual(code, 1, (name, line, text))
            self.assertIn(name, text)

    def test_instructions_built_above_autodiff_are_found(self):
        good = {"src/autodiff/a.cpp": "ir::Function f;\n", "src/verify/a.cpp": '#include "lockstep/ir/types.hpp"\n',
                "src/solve/a.cpp": '#include "lockstep/ir/ops.def"\n// ir::Function\nstd::dir::x();\n'}
        code, text = run("language", good)
        self.assertEqual(code, 0, text)
        self.assertIn("1 files checked", text)
        for name, line in (("src/pde/a.cpp", "ir::Builder b;"), ("apps/cli/a.cpp", '#include "lockstep/ir/builder.hpp"'),
                           ("src/optimize/a.hpp", '#include "ir/verify.hpp"')):
            code, text = run("language", {name: line + "\n"})
            self.assertEqual(code, 1, name)
            self.assertIn(f"{name}:1", text)

    def test_comments_that_begin_with_what_are_found(self):
        self.assertEqual(run("comments", {"src/a.cpp": "// Limits: what a back end holds.\nint What;\n"})[0], 0)
        for name, line in (("src/a.cpp", "int x;  ///< " + "What it is."), ("tests/a.py", "# " + "What it does.")):
            code, text = run("comments", {name: line + "\n"})
            self.assertEqual(code, 1, name)
            self.assertIn(f"{name}:1", text)

    def test_long_files_are_found(self):
        self.assertEqual(run("file-size", {"src/core/a.cpp": "\n" * 600})[0], 0)
        code, text = run("file-size", {"src/core/a.cpp": "\n" * 601})
        self.assertEqual(code, 1)
        self.assertIn("601 lines", text)

    def test_long_functions_are_found(self):
        body = "  f();  // }\n" * 78
        good = {"src/a.cpp": 'namespace n {\nstruct S {\n  S() : a_(1) {}\n' + "  int a_;\n" * 90 + "};\nint f(int x) {\n" + body + "}\n}  // {\n",
                "src/b.cpp": 'const char* t = R"(f() {\n' + "\n" * 90 + '})";\n', "docs/a.cpp": "void f() {\n" + body * 2 + "}\n"}
        code, text = run("function-size", good)
        self.assertEqual(code, 0, text)
        self.assertIn("2 functions checked", text)
        for head in ("void f() {\n", "void C::f() const\n    noexcept {\n", "namespace n {\nstruct S {\n  void f() {\n",
                     "auto g = [](int x) {\n"):
            code, text = run("function-size", {"src/a.cpp": head + body + "  g();\n}\n"})
            self.assertEqual(code, 1, head)
            self.assertIn("81 lines", text)

    def test_folders_without_a_readme_are_found(self):
        good = {"src/README.md": "x\n", "src/core/README.md": "x\n", "src/core/a.cpp": "", "tests/core/a.cpp": ""}
        self.assertEqual(run("readme", good)[0], 0)
        for more in ({"src/ir/a.cpp": ""}, {"src/core/deep/er/a.hpp": "", "src/core/deep/er/README.md": "x\n"},
                     {"src/core/README.md": "x\n" * 101}):
            self.assertEqual(run("readme", good | more)[0], 1, more)

    def test_unformatted_files_are_found(self):
        style = "BasedOnStyle: Google\n"
        code, text = run("format", {".clang-format": style, "src/a.cpp": "int  main( ) {return 0 ;}\n"})
        if code == 77:
            self.skipTest(text)
        self.assertEqual(code, 1)
        self.assertIn("src/a.cpp", text)
        self.assertEqual(run("format", {".clang-format": style, "src/a.cpp": "int main() { return 0; }\n"})[0], 0)


if __name__ == "__main__":
    unittest.main()
