"""scripts/packages.sh with stand-ins for dpkg-query, apt-cache and apt-get: which names it takes, and what it does to the system."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "packages.sh"
STAND_INS = {
    "dpkg-query": 'sed "s/^/installed /" "$WORLD/installed"',
    "apt-cache": '[ "$1" = pkgnames ] && cat "$WORLD/known"',
    "apt-get": 'echo "apt-get $*" >>"$WORLD/calls"',
    "id": "echo 0",
}


def names():
    """All names and patterns of the script."""
    text = re.sub(r"#.*", "", SCRIPT.read_text())
    lists = re.findall(r"^(?:build|run|build_tests|test|web)=\((.*?)\)$", text, re.S | re.M)
    return {word.strip("'") for one in lists for word in one.split() if "$" not in word}


class Packages(unittest.TestCase):
    def run_with(self, installed, known, *arguments):
        with tempfile.TemporaryDirectory() as world:
            for name, body in STAND_INS.items():
                path = pathlib.Path(world, name)
                path.write_text(f"#!/bin/sh\n{body}\n")
                path.chmod(0o755)
            pathlib.Path(world, "installed").write_text("".join(n + "\n" for n in installed))
            pathlib.Path(world, "known").write_text("".join(n + "\n" for n in known))
            done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False,
                                  env=os.environ | {"WORLD": world, "PATH": f"{world}:{os.environ['PATH']}", "LOCKSTEP_WASM": "on"})
            calls = pathlib.Path(world, "calls")
            return done, calls.read_text().splitlines() if calls.exists() else []

    def setUp(self):
        self.plain = {n for n in names() if "[" not in n}
        self.patterns = names() - self.plain
        self.assertEqual(len(self.patterns), 2)

    def test_the_names_of_each_release(self):
        for gdal, netcdf in (("libgdal32", "libnetcdf19"), ("libgdal36", "libnetcdf22"), ("libgdal34t64", "libnetcdf19t64")):
            others = {"libgdal-dev", "libgdal20x", gdal.replace("3", "2", 1), "g", "gg"}
            done, calls = self.run_with([], self.plain | {gdal, netcdf} | others, "test")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(calls[0], "apt-get -q -o Dpkg::Use-Pty=0 update")
            taken = calls[1].partition("--no-install-recommends ")[2].split()
            self.assertEqual(sorted(taken), sorted(self.plain | {gdal, netcdf}))
            self.assertIn(f"installing {' '.join(taken)}", done.stderr)

    def test_nothing_is_installed_twice_or_unasked(self):
        all_of_it = self.plain | {"libgdal36", "libnetcdf22"}
        done, calls = self.run_with(all_of_it, [], "test")
        self.assertEqual((done.returncode, done.stderr, calls), (0, "", []))
        done, calls = self.run_with(all_of_it - {"doxygen", "g++"}, all_of_it, "--no-install", "test")
        self.assertEqual((done.returncode, calls), (0, []))
        self.assertEqual(done.stderr, "packages.sh: not installed: g++ doxygen\n")

    def test_a_release_without_a_package(self):
        all_of_it = self.plain | {"libgdal36", "libnetcdf22"}
        done, calls = self.run_with(all_of_it - {"chromium", "doxygen"}, all_of_it - {"chromium"}, "test")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"has no chromium: features that need them are left out")
        self.assertEqual(calls[1].split()[-1], "doxygen")
        self.assertEqual(len(calls), 2)

    def test_a_release_without_what_the_build_needs(self):
        all_of_it = self.plain | {"libgdal30", "libnetcdf19"}
        for lacking, what in ({"llvm-19-dev", "lld-19"}, "run"), ({"libgtest-dev"}, "test"):
            done, calls = self.run_with([], all_of_it - lacking, what)
            self.assertEqual((done.returncode, len(calls)), (1, 1), done.stderr)  # `apt-get update` alone
            release = re.search(r"^packages.sh: (.+) has no (.+): Lockstep cannot be built from its packages; nothing was installed$",
                                done.stderr, re.M)
            self.assertEqual(set(release.group(2).split()), lacking)
            self.assertIn(f'PRETTY_NAME="{release.group(1)}"', pathlib.Path("/etc/os-release").read_text())
            # The packages may be there from elsewhere.
            done, calls = self.run_with([], all_of_it - lacking, "--no-install", what)
            self.assertEqual((done.returncode, calls), (0, []))
            self.assertRegex(done.stderr, f"not in apt's lists of {re.escape(release.group(1))}: {release.group(2)}\n")

    def test_refuses_other_words(self):
        done, calls = self.run_with([], [], "all")
        self.assertEqual((done.returncode, calls), (2, []))
        self.assertIn("'all': expected run, test or web", done.stderr)


if __name__ == "__main__":
    unittest.main()
