"""The suite is as broad as the language: its entries are counted by kind, and every mistake of findings.txt is held by a test."""
import os
import re
import sys
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEAST = {"does not compile": 150, "throws": 55, "equals C++": 140, "numbers": 90, "Python raises": 100, "Python equals NumPy": 60}


def text_of(*path):
    with open(os.path.join(TESTS, *path), encoding="utf-8") as file:
        return file.read()


def counted():
    own = {name: text_of("misuse", name) for name in os.listdir(os.path.join(TESTS, "misuse")) if name.endswith(("_test.cpp", ".txt"))}
    cpp = "".join(text for name, text in own.items() if name.endswith(".cpp"))
    python = "".join(text_of("python", name) for name in os.listdir(os.path.join(TESTS, "python")) if name.startswith("test_misuse"))
    return {
        "does not compile": len(re.findall(r"^# .*\n[^#\n]", own["wrong.txt"].split("\n\n", 1)[1], re.M)),
        "throws": len(re.findall(r"\b(?:REFUSED|said)\(\"", cpp, re.M)),
        "equals C++": len(re.findall(r"^SAME\(", cpp, re.M)),
        "numbers": len(re.findall(r"^ *(?:NUMBERS|ALIKE)\(", cpp, re.M)),
        "Python raises": len(re.findall(r"^@refused\(", python, re.M)),
        "Python equals NumPy": len(re.findall(r"^@same\(", python, re.M)),
    }


def names_of_tests():
    names = set()
    for folder, _, files in os.walk(TESTS):
        for file in files:
            if file.endswith("_test.cpp"):
                text = text_of(os.path.relpath(os.path.join(folder, file), TESTS))
                names |= {f"{suite}.{test}" for suite, test in re.findall(r"^TEST(?:_F|_P)?\((\w+), *(\w+)\)", text, re.M)}
                names |= set(re.findall(r"^SAME\((\w+)\)", text, re.M))
            elif file.endswith(".py"):
                text = text_of(os.path.relpath(os.path.join(folder, file), TESTS))
                names |= set(re.findall(r"^ *def (test_\w+)\(", text, re.M))
    return names


class Count(unittest.TestCase):
    def test_entries_by_kind(self):
        found = counted()
        print(", ".join(f"{kind}: {n}" for kind, n in found.items()), file=sys.stderr)
        for kind, least in LEAST.items():
            self.assertGreaterEqual(found[kind], least, kind)

    def test_every_mistake_is_held_by_tests_that_exist(self):
        rows = re.findall(r"^(\d+) [^:\n]+:((?: \S+)+)$", text_of("misuse", "findings.txt"), re.M)
        self.assertEqual([int(number) for number, _ in rows], list(range(1, 20)))
        known = names_of_tests()
        for number, names in rows:
            self.assertEqual(set(names.split()) - known, set(), number)


unittest.main()
