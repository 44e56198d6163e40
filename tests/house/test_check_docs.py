"""The checks of the documentation find what they look for, and nothing else."""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "check_docs.py")
STYLE = """# Style
<!-- glossary -->
| not | but | allowed |
|---|---|---|
| `goes by` | uses | |
| `stands` | is | `stands for` |
<!-- /glossary -->
"""
def run(check, files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in ({"docs/style.md": STYLE} | files).items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([sys.executable, SCRIPT, check, root], capture_output=True, text=True)
        return done.returncode, done.stdout


class CheckWords(unittest.TestCase):
    def test_phrases_are_found_with_line_and_replacement(self):
        code, text = run("words", {"docs/a.md": "# A\n\nA model Goes\nby kernels. It stands here.\n"})
        self.assertEqual(code, 1, text)
        self.assertIn('docs/a.md:3: "goes by": write uses', text)
        self.assertIn('docs/a.md:4: "stands": write is', text)
        self.assertIn("2 findings", text)

    def test_phrases_in_tables_and_headings_are_prose(self):
        code, text = run("words", {"README.md": "# It stands\n\n| a | b |\n|---|---|\n| it stands | |\n"})
        self.assertEqual(code, 1, text)
        self.assertIn("README.md:1:", text)
        self.assertIn("README.md:5:", text)

    def test_code_links_generated_sections_and_allowed_phrases_pass(self):
        code, text = run("words", {"docs/a.md": "A `goes by` and ``stands ` here``; x stands\nfor y; outstands; [a](stands.md) https://stands\n\n"
                                                "```sh\ngoes by\n```\n\n<!-- options a -->\n| stands |\n<!-- end -->\n\n- item\n  ```\n  stands\n  ```\n"})
        self.assertEqual(code, 0, text)

    def test_prose_after_a_block_of_code_is_checked(self):
        code, text = run("words", {"docs/a.md": "```sh\nx\n```\nIt stands.\n\n<!-- t -->\nx\n<!-- /t -->\nIt stands.\n"
                                                "<!-- a remark -->\nIt stands.\n<!-- t -->\nstands\n<!-- /t -->\n"})
        self.assertEqual(code, 1, text)
        for line in (4, 9, 11):
            self.assertIn(f"docs/a.md:{line}:", text)
        self.assertIn("3 findings", text)

    def test_long_lines_are_found(self):
        code, text = run("words", {"docs/a.md": "word " * 23 + "words\n" + "word " * 24 + "w\n"})
        self.assertEqual(code, 1, text)
        self.assertIn("docs/a.md:2: 121 characters, at most 120", text)
        self.assertIn("1 findings", text)

    def test_long_lines_of_code_tables_and_urls_pass(self):
        long = "x" * 130
        code, text = run("words", {"docs/a.md": f"| {long} |\n```\n{long}\n```\nsee [a](https://a.b/{long}) and https://a.b/{long}\n"})
        self.assertEqual(code, 0, text)

    def test_measured_times_in_sentences_of_guides_are_found(self):
        page = "A step takes 3.4 ms.\n\n| step | 3.4 ms |\n\n`5 ms`\n\n<!-- measured a -->\nAt 4225 GB/s.\n<!-- /measured -->\n"
        code, text = run("words", {"docs/a.md": page, "docs/design/a.md": page, "docs/style.md": STYLE + "Units: 3.4 ms.\n"})
        self.assertEqual(code, 1, text)
        self.assertIn('docs/a.md:1: "3.4 ms" in a sentence', text)
        self.assertIn("1 findings", text)

    def test_a_url_does_not_excuse_the_words_around_it(self):
        code, text = run("words", {"docs/a.md": "word " * 24 + "w https://a.b/c\n"})
        self.assertEqual(code, 1, text)

    def places(self, files):
        code, text = run("words", files)
        self.assertEqual(code, 1 if "write " in text else 0, text)
        return [line.split(": write ")[0] for line in text.splitlines() if ": write " in line]

    def test_comments_of_cpp_are_read(self):
        header = ("/// It stands\n/// for y, `stands` and goes\n///< by x.\nint stands();  // It stands here.\n/* It\n * stands. */\n"
                  "// It goes\nint a;  // by x.\nchar c = '\"';  // stands\nint million = 1'000'000;  // stands\n")
        self.assertEqual(self.places({"include/a/a.hpp": header, "src/a.hpp": header}),
                         [place for name in ("include/a/a.hpp", "src/a.hpp")
                          for place in [f'{name}:2: "goes by"'] + [f'{name}:{n}: "stands"' for n in (4, 6, 9, 10)]])

    def test_string_literals_of_cpp_are_read(self):
        source = ('s.option("a", "what goes "\n         "by x");  // it stands\nf("goes ", "by x");\nkey = "stands";\nt = R"(it\nstands)";\n'
                  'u = "a \\"b\\" stands // here";\nv = "`stands` is a key";\n')
        self.assertEqual(self.places({"src/a/options/a.cpp": source, "apps/b.cpp": source, "tests/a.cpp": source}),
                         [f'{name}:{place}' for name in ("apps/b.cpp", "src/a/options/a.cpp")
                          for place in ('1: "goes by"', '2: "stands"', '6: "stands"', '7: "stands"')] + ['tests/a.cpp:2: "stands"'])

    def test_comments_and_strings_of_python_are_read(self):
        source = ('"""It\nstands."""\nstands = f"the {x.stands} goes {1} by"  # It goes by x.\nkey = "stands"\nname = "it " "stands"\n'
                  'text = f"it stands {x}"\n')
        self.assertEqual(self.places({"python/lockstep/a.py": source, "scripts/a.py": source}),
                         [f"{name}:{place}" for name in ("python/lockstep/a.py", "scripts/a.py") for place in ('3: "goes by"', '2: "stands"', '6: "stands"')])

    def test_without_a_glossary_nothing_passes(self):
        code, text = run("words", {"docs/style.md": "# Style\n"})
        self.assertEqual(code, 1, text)


class CheckLinks(unittest.TestCase):
    def test_links_that_lead_somewhere_pass(self):
        code, text = run("links", {
            "README.md": "[a](docs/a.md#one-two--three) ![b](b.png) [c](docs) [d](#top) [e](https://x.y/z#a) `[f](none.md)`\n\n# Top\n",
            "b.png": "", "docs/a.md": "# One `two` – [three](../b.png)\n\n```\n[g](none.md)\n```\n[h](../README.md)\n"})
        self.assertEqual(code, 0, text)
        self.assertIn("6 links checked", text)

    def test_links_that_lead_nowhere_are_found(self):
        for link in ("none.md", "../docs/none.md", "a.md#none", "#none", "none.png", "a.md#one-2"):
            code, text = run("links", {"docs/a.md": f"# One\n\n# One\n\n[x\ny]({link})\n"})
            self.assertEqual(code, 1, (link, text))
            self.assertIn(f"docs/a.md:5: {link}", text)

    def test_repeated_headings_are_numbered(self):
        code, text = run("links", {"docs/a.md": "# One\n\n# One\n\n[x](#one-1)\n"})
        self.assertEqual(code, 0, text)


if __name__ == "__main__":
    unittest.main()
