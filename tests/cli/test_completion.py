"""Completion in each shell as a user types, and the manual page."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

from program import ProgramTest, run
from test_usage import COMMANDS, COMMON

# Lines typed before the tab key, with the words that follow.
TYPED = {
    "lockstep urb": "urban",
    "lockstep urban ru": "urban run",
    "lockstep help urban ru": "help urban run",
    "lockstep --device cpu verif": "--device cpu verify",
    "lockstep --thr": "--threads",
    "lockstep urban --device cpu ru": "urban --device cpu run",
    "lockstep urban run --dsm urban --dsm-h": "urban run --dsm urban --dsm-heights",
    "lockstep urban run --dsm-heights abo": "urban run --dsm-heights above-ground",
    "lockstep verify --device webg": "verify --device webgpu",
    "lockstep verify --device=webg": "verify --device=webgpu",
    "lockstep verify --gradients --against ref": "verify --gradients --against reference",
    "lockstep urban sample --format np": "urban sample --format npy",
    "lockstep completion fi": "completion fish",
    "lockstep urban run --dsm cit": "urban run --dsm city.tif",
    "lockstep report cit": "report city.tif",
    "lockstep urban plant --objective cit": "urban plant --objective city.tif",
}


class Shell:
    """An interactive shell on a terminal of its own, in which `lockstep` prints its words."""

    def __init__(self, home, words, begin):
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.chdir(home)
            os.execvpe(words[0], words, {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", "LC_ALL": "C.UTF-8"})
        self.pid = pid
        self.send(begin + '\nlockstep() { echo "<$*>"; }\nlockstep ready\n')
        self.words_after("ready")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def words_after(self, what):
        seen, end = "", time.monotonic() + 30
        while not (found := re.findall(r"<([^<>$]*)>\r*\n", seen)):
            if time.monotonic() > end or not select.select([self.terminal], [], [], 30)[0]:
                raise AssertionError(f"no answer behind {what!r}: {seen!r}")
            seen += os.read(self.terminal, 65536).decode(errors="replace")
        return found[0].strip()

    def completed(self, typed):
        self.send(typed + "\t")
        time.sleep(0.1)  # what is typed on in the meantime is not the word so far
        self.send("\n")
        return self.words_after(typed)

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


class Completion(ProgramTest):
    def script(self, shell, name):
        path = pathlib.Path(self.path(name))
        path.parent.mkdir(exist_ok=True)
        path.write_text(run("completion", shell).stdout, encoding="utf-8")
        return path

    def completes(self, words, begin):
        if not shutil.which(words[0]):
            self.skipTest(f"{words[0]} is not installed")
        pathlib.Path(self.path("city.tif")).touch()
        shell = Shell(self.path(""), words, begin)
        self.addCleanup(shell.close)
        for typed, expected in TYPED.items():
            with self.subTest(typed):
                self.assertEqual(shell.completed(typed), expected)

    def test_bash(self):
        self.completes(["bash", "--norc", "--noprofile", "-i"], f"source {self.script('bash', 'script')}")

    def test_zsh(self):
        self.completes(["zsh", "-f", "-i"], f"source {self.script('zsh', 'script')}")

    def test_zsh_finds_the_script_by_its_name(self):
        folder = self.script("zsh", "functions/_lockstep").parent
        self.completes(["zsh", "-f", "-i"], f"fpath=({folder} $fpath); autoload -U compinit; compinit -u")

    def test_fish(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")
        pathlib.Path(self.path("city.tif")).touch()
        script = self.script("fish", "script")
        asked = "".join(f"echo '<'(complete -C '{typed}' | string replace -r '\\t.*' '')'>'\n" for typed in TYPED)
        done = subprocess.run(["fish", "--no-config"], input=f"source {script}\n{asked}", text=True, capture_output=True, cwd=self.path(""),
                              env={**os.environ, "HOME": self.path("")})
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(dict(zip(TYPED, done.stdout.splitlines(), strict=True)), {typed: f"<{words.split()[-1]}>" for typed, words in TYPED.items()})

    def test_names_that_are_no_shell(self):
        self.refuses("completion", "tcsh", saying="'tcsh' [SHELL]: expected one of bash|zsh|fish|man")
        self.refuses("completion", saying="SHELL is missing")

    def test_the_manual_page_has_every_command_and_option(self):
        page = run("completion", "man").stdout
        plain = page.replace("\\-", "-").replace("\\fB", "").replace("\\fI", "").replace("\\fR", "").replace("\\e", "\\")
        sections = dict(re.findall(r"^\.S[SH] (.*)\n((?:(?!\.S[SH] ).*\n)*)", plain, re.M))
        self.assertIn(".TP\nCASE\n", plain)  # an argument has no placeholder behind its name
        for command in COMMANDS:
            names = re.findall(r"^  (?:--[\w-]+,)*(--[\w-]+)", run(*command, "--help").stdout.split("Common options:")[0], re.M)
            for name in set(names) - {"--help"}:
                self.assertIn(name, sections["lockstep " + " ".join(command)])
        for name in set(COMMON) - {"--help"}:
            self.assertEqual(len(re.findall(rf"^(?:--[\w-]+, )*{name}\b(?!-)", plain, re.M)), 1, name)
        if shutil.which("man"):
            done = subprocess.run(["man", "--warnings", "-l", "-"], input=page, text=True, capture_output=True, env={**os.environ, "MANWIDTH": "100"})
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
