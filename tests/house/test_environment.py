"""The table of environment variables is what the code reads and what docs/language.md lists: test_environment.py ROOT."""
import os
import re
import sys
import unittest

ROOT = sys.argv.pop(1) if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ROW = re.compile(r'^VARIABLE\((\w+), (\w+), (\w+), "([^"]*)", "(.*)"\)$', re.M)
READS = re.compile(r"getenv\(|environment::text\(|os\.environ|os\.getenv")


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def rows():
    return ROW.findall(text_of("src", "core", "environment", "variables.def"))


def sources(folders, endings):
    for folder in folders:
        for path, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(path, name), ROOT)


class Environment(unittest.TestCase):
    def test_every_line_of_the_table_is_read(self):
        text = text_of("src", "core", "environment", "variables.def")
        self.assertEqual(len(rows()), len(re.findall(r"^VARIABLE", text, re.M)))
        self.assertGreater(len(rows()), 20)

    def test_the_guide_has_the_rows_of_users(self):
        guide = text_of("docs", "language.md")
        section = guide[guide.index("\n## Environment"):]
        table = re.findall(r"^\| `(\w+)` \| (.*) \|$", section[:section.index("\n## ", 5)], re.M)
        self.assertEqual(table, [(name, effect.replace("\\\\", "\\")) for name, readers, _, _, effect in rows() if readers == "user"])

    def test_what_the_code_reads_is_in_the_table(self):
        known = {row[0] for row in rows()}
        found = set()
        for name in sources(("src", "apps", "python"), (".cpp", ".hpp", ".py")):
            text = text_of(name)
            if not READS.search(text):
                continue
            names = set(re.findall(r'"([A-Z][A-Z0-9]*_[A-Z0-9_]+|HOME|TERM|PYTHONPATH)"', text))
            if name != os.path.join("src", "core", "environment", "environment.cpp"):
                self.assertTrue(names or "kOutputsBelow" in text, f"{name} reads a variable that this test does not see")
            self.assertEqual(names - known - {"LOCKSTEP_TEST_"}, set(), name)
            found |= names
        ours = {row[0] for row in rows() if row[1] == "user"}
        everywhere = "".join(text_of(n) for n in sources(("src", "apps", "python"), (".cpp", ".hpp", ".py")))
        self.assertEqual({n for n in ours if f'"{n}"' not in everywhere}, set())
        self.assertIn("LOCKSTEP_CACHE_DIR", found)

    def test_ours_are_read_through_the_table(self):
        for name in sources(("src", "apps"), (".cpp", ".hpp")):
            direct = re.findall(r'getenv\("(LOCKSTEP_\w+)"', text_of(name))
            self.assertEqual(direct, [], f"{name}: environment::text refuses what cannot be used")

    def test_what_tests_read_warns_nobody(self):
        known = {row[0] for row in rows()}
        for name in sources(("tests", "bench", "scripts", "examples"), (".cpp", ".hpp", ".py", ".sh")):
            read = re.findall(r'(?:getenv\(|environ\.get\(|environ\[)"(LOCKSTEP_\w+)"', text_of(name))
            self.assertEqual({n for n in read if not n.startswith("LOCKSTEP_TEST_")} - known, set(), name)


unittest.main()
