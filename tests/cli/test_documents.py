"""Every command that the documents show is one: its name, its options, its kernels and cases exist."""
import glob
import os
import re
import shlex
import unittest

from program import run

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DOCUMENTS = ["README.md", "CONTRIBUTING.md"] + sorted(
    glob.glob(os.path.join(ROOT, "docs", "*.md")) + glob.glob(os.path.join(ROOT, "docs", "extending", "*.md")))

ADDED_BY_GUIDES = {"cooling"}  # docs/extending/application.md adds it to a copy of the tree (house_walks_above)


def commands_of(path):
    """(line, words) of `lockstep …` in code blocks and between backticks; "…" and "|" end a command."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"\\\n\s*", lambda m: " " * len(m.group(0)), text)
    for match in re.finditer(r"(?:(?<=\n)|(?<=`)|(?<=\$ )|(?<=bin/))lockstep ([a-z][^\n`#|>;&]*)", text):
        try:
            yield text.count("\n", 0, match.start()) + 1, shlex.split(match.group(1).split("…")[0].rstrip("\\"))
        except ValueError:  # prose with an apostrophe
            continue


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.helps = {}
        cls.kernels = set(run("emit", "--list").stdout.split())

    def help_of(self, words):
        key = tuple(words)
        if key not in self.helps:
            self.helps[key] = run(*words, "--help")
        return self.helps[key]

    def test_commands(self):
        seen = 0
        for path in DOCUMENTS:
            for line, words in commands_of(path):
                if words[0] in ADDED_BY_GUIDES:
                    continue
                with self.subTest(place=f"{os.path.basename(path)}:{line}", command=" ".join(words)):
                    depth = 1
                    while depth < min(len(words), 3) and re.fullmatch(r"[a-z][a-z0-9-]*", words[depth]) \
                            and "Usage: lockstep " + " ".join(words[:depth + 1]) + " " in self.help_of(words[:depth + 1]).stdout:
                        depth += 1
                    help_text = self.help_of(words[:depth])
                    self.assertEqual(help_text.returncode, 0, help_text.stderr)
                    known = set(re.findall(r"(--[a-z0-9-]+)", help_text.stdout)) | {"--help", "--version"}
                    for word in words[depth:]:
                        if word.startswith("--"):
                            self.assertIn(word.split("=")[0], known)
                    if words[0] == "emit" and len(words) > 1 and not words[1].startswith("-") and words[1].islower() and "." in words[1]:
                        self.assertIn(words[1], self.kernels)
                    seen += 1
        self.assertGreater(seen, 30)

    def test_the_readme_shows_the_output_of_verify(self):
        """Each line that README shows is printed; "…" stands for columns that are left out."""
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            text = file.read()
        command = re.search(r"^lockstep (verify .*?) *#", text, re.M).group(1)
        (shown,) = re.findall(r"^```text\n( +case .*?)^```", text, re.S | re.M)
        printed = run(*shlex.split(command)).stdout
        self.assertGreater(len(shown.splitlines()), 3)
        for line in shown.splitlines():
            pattern = r"\s+".join(r".*" if word == "…" else re.escape(word) for word in line.split())
            self.assertRegex(printed, r"(?m)^\s*" + pattern + r"\s*$")

    def test_findings_name_tests_that_exist(self):
        sources = ""
        for pattern in ("*.cpp", "*.py"):
            for path in glob.glob(os.path.join(ROOT, "tests", "**", pattern), recursive=True):
                with open(path, encoding="utf-8") as file:
                    sources += file.read()
        tests = set(re.findall(r"TEST(?:_P|_F)?\((\w+), (\w+)\)", sources))
        with open(os.path.join(ROOT, "docs", "design", "findings.md"), encoding="utf-8") as file:
            rows = file.read().splitlines()
        for row in rows:
            suite = None
            for first, name in re.findall(r"`([A-Z]\w+)?\.([A-Z]\w+)`", row):
                suite = first or suite
                self.assertIn((suite, name), tests)
            for suite in re.findall(r"`([A-Z]\w+)\.\*`", row):
                self.assertIn(suite, {s for s, _ in tests})
            for name in re.findall(r"`(test_[a-z_]+)`", row):
                self.assertIn("def " + name + "(", sources)


if __name__ == "__main__":
    unittest.main()
