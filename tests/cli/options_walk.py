"""The options of a command, one after the other: each changes something or is rejected."""
import hashlib
import json
import os
import re
import shutil

from program import ProgramTest, later, run

COMMON = {"--help", "--device", "--threads", "--no-fallback", "--numerics", "--json", "--quiet", "--check", "--config", "--input-memory", "--telemetry", "--trace", "--no-record",
          "--ranks", "--share-devices", "--wait-limit"}
# Members of a document that say what was requested, not what came of it; names of those that hold times.
ASKED = {"command", "inputs", "options"}
TIMES = re.compile(r"seconds|_s$|_ms$|time|peak|kernels_compiled|cache_hits|^bytes|predicted|per_second|speed|date|gbps|share_of_copy")


def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if not TIMES.search(k)}
    return [without_times(v) for v in value] if isinstance(value, list) else value


class OptionsWalk(ProgramTest):
    """Names in braces of the arguments stand for `places`; {out} is a folder that is empty before each run."""

    # Endings of files that hold times or other things that no option should be seen by.
    VOLATILE = (".lock", ".json", ".jsonl")

    def setUp(self):
        super().setUp()
        self.places = {"{out}": self.path("out")}
        self.known = {}

    def outcome(self, *arguments):
        """Exit code, result without times, files, stderr."""
        if arguments in self.known:
            return self.known[arguments]
        out = self.path("out")
        shutil.rmtree(out, ignore_errors=True)
        os.mkdir(out)
        done = run(*[next((a.replace(k, v) for k, v in self.places.items() if k in a), a) for a in later(arguments)], "--json")
        document = ""
        if done.stdout:
            # A study launches until its times are steady.
            left_out = ASKED | {"stages"} if arguments[:2] == ("pde", "study") else ASKED
            document = json.dumps({k: v for k, v in without_times(json.loads(done.stdout)).items() if k not in left_out})
        self.known[arguments] = (done.returncode, document, self.contents_below(out), done.stderr)
        return self.known[arguments]

    def contents_below(self, folder):
        found = {}
        for place, _, names in os.walk(folder):
            for name in names:
                if name.endswith(self.VOLATILE) or "resume" in place:
                    found[name] = None
                    continue
                with open(os.path.join(place, name), "rb") as file:
                    found[os.path.relpath(os.path.join(place, name), folder)] = hashlib.sha256(file.read()).hexdigest()
        return found

    def walk(self, command, base, table, leave_out=(), same=()):
        """`table`: option -> what is given with it in both runs, and the option with its value. `base` makes the arguments
        of both from them. `same`, or None in the table: options that change nothing here."""
        text = run(*command, "--help").stdout
        options = set(re.findall(r"^ +(?:-\w,)?(?:--[a-z-]+,)?(--[a-z-]+)", text, re.M)) - COMMON - set(leave_out)
        self.assertEqual(options ^ set(table), set(), "options that no one tests, and tests of none")
        self.repeats(command, base("", []))
        for option, entry in table.items():
            if option in same or not entry:
                continue
            beside, value = entry
            with self.subTest(command=command, option=option):
                plain = base(option, beside or [])
                changed = self.outcome(*command, *base(option, (beside or []) + value))
                if changed[0] == 2:
                    self.assertRegex(changed[3], r"(?m)^lockstep: error: ")
                    continue
                self.assertIn(changed[0], (0, 1), changed[3])  # 1: not converged
                self.assertNotEqual(self.outcome(*command, *plain)[:3], changed[:3])

    def repeats(self, command, arguments):
        """The same run twice is the same: else no difference would say anything."""
        first = self.outcome(*command, *arguments)
        del self.known[(*command, *arguments)]
        self.assertEqual(first[:3], self.outcome(*command, *arguments)[:3])

    def walk_flat(self, command, needs, table, leave_out=(), same=(), contradict={}):
        """The same where an option of `needs` gives way to one of the table, and to those it contradicts."""
        def base(option, more):
            gone = set(more) | {o for word in more for o in contradict.get(word, ())}
            kept = []
            k = 0
            while k < len(needs):
                pair = needs[k].startswith("--") and k + 1 < len(needs) and not needs[k + 1].startswith("--")
                if needs[k] not in gone or not needs[k].startswith("--"):
                    kept += needs[k:k + 1 + pair]
                k += 1 + pair
            return kept + more
        self.walk(command, base, table, leave_out, same)

    def refuses_all(self, command, needs, cases):
        """Each case: options, and what the error says."""
        for arguments, saying in cases:
            with self.subTest(command=command, refused=arguments):
                done = self.outcome(*command, *needs, *arguments)
                self.assertEqual(done[0], 2, done[3])
                self.assertIn(saying, done[3])
