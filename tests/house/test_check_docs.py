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
sys.path.insert(0, os.path.dirname(SCRIPT))
import check_docs  # noqa: E402

# Prefixes that the check leaves out must have findings.
UNCHECKED = {prefix + ("a.md" if prefix.endswith("/") else ""): "It goes by X.\n" for prefix in check_docs.UNCHECKED}


def run(check, files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in ({"docs/style.md": STYLE} | UNCHECKED | files).items():
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

    def test_a_url_does_not_excuse_the_words_around_it(self):
        code, text = run("words", {"docs/a.md": "word " * 24 + "w https://a.b/c\n"})
        self.assertEqual(code, 1, text)

    def test_what_is_left_out_is_named_and_must_need_it(self):
        code, text = run("words", {})
        self.assertEqual(code, 0, text)
        self.assertIn(f"{len(UNCHECKED)} files left out", text)
        for prefix, name in zip(check_docs.UNCHECKED, UNCHECKED):
            self.assertIn(f"  {prefix}: ", text)
            code, fixed = run("words", {name: "It uses X.\n"})
            self.assertEqual(code, 1, fixed)
            self.assertIn(f"{prefix}: has no findings any more", fixed)

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
