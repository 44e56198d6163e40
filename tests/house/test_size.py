"""The table of sizes: what it counts where, and when it is too old."""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "size")
TREE = {"src/ir/a.cpp": 400, "src/ir/deep/a.hpp": 100, "include/lockstep/ir/a.def": 50, "include/lockstep/ir.hpp": 30, "include/lockstep/array.hpp": 20,
        "src/pde/a.cpp": 300, "apps/cli/a.cpp": 60, "python/a.py": 40, "tests/a.cpp": 5000}


class Size(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.TemporaryDirectory()
        self.addCleanup(self.root.cleanup)
        for name, lines in TREE.items():
            self.write(name, "x\n" * lines)
        self.write("src/ir/table.inc", "// Written by scripts/a.py.\n" * 500)
        self.write("src/ir/font.ttf", "\0\n" * 500)
        self.write("docs/design/size.md", "before\n<!-- size -->\n<!-- /size -->\nafter\n")

    def write(self, name, text):
        path = os.path.join(self.root.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run_size(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, *arguments, self.root.name], capture_output=True, text=True).returncode

    def document(self):
        with open(os.path.join(self.root.name, "docs/design/size.md"), encoding="utf-8") as file:
            return file.read()

    def test_lines_belong_to_their_concepts(self):
        self.assertEqual(self.run_size(), 0)
        text = self.document()
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))
        rows = {line.split(" | ")[0].strip("|* "): line.split(" | ")[1].strip("*") for line in text.splitlines() if " | " in line}
        self.assertEqual({name: rows[name] for name in ("ir", "pde", "apps/cli", "python", "include", "generated", "all but generated")},
                         {"ir": "580", "pde": "300", "apps/cli": "60", "python": "40", "include": "20", "generated": "500", "all but generated": "1,000"})
        self.assertNotIn("tests", rows)
        self.assertLess(text.index("| ir |"), text.index("| pde |"))
        self.assertIn("| src/ir 400, src/ir/deep 100, include/lockstep/ir 50, include/lockstep 30 |", text)

    def test_a_table_may_be_a_little_older_than_the_tree(self):
        self.assertEqual(self.run_size("--check"), 1, "no table")
        self.run_size()
        before = self.document()
        self.write("src/pde/a.cpp", "x\n" * 330)
        self.assertEqual(self.run_size("--check"), 0, "30 of 1,530 lines")
        self.write("src/pde/a.cpp", "x\n" * 331)
        self.assertEqual(self.run_size("--check"), 1, "31 of 1,531 lines")
        self.assertEqual(self.document(), before)

    def test_lines_that_moved_count(self):
        self.run_size()
        self.write("src/pde/a.cpp", "x\n" * 280)
        self.write("src/ir/a.cpp", "x\n" * 420)
        self.assertEqual(self.run_size("--check"), 1)
        self.run_size()
        self.assertEqual(self.run_size("--check"), 0)


if __name__ == "__main__":
    unittest.main()
