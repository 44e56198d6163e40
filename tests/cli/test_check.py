"""`--check` on a program with faulty kernels: exit code 1 where something is found, 0 where nothing is, and what is reported."""
import json
import os
import re
import unittest

import program

program.PROGRAM = os.environ.get("LOCKSTEP_CHECK_PROGRAM", os.path.join(os.path.dirname(program.PROGRAM), "check_program"))
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_cases.cpp")
FAULTS = {"race": "race", "outside": "out_of_bounds", "unwritten": "uninitialised", "claim": "not_uniform"}


def lines_of(kernel):
    """The lines of a kernel's body."""
    with open(SOURCE, encoding="utf-8") as file:
        text = file.read()
    begin = text.index(f'kernel("check.{kernel}"')
    first = text.count("\n", 0, begin) + 1
    return range(first, first + text[begin:text.index(";\n  c", begin)].split("\n  const Kernel")[0].count("\n") + 1)


class Check(unittest.TestCase):
    def verify(self, name, *options, env=None):
        return program.run("verify", "check." + name, "--device", "cpu", "--against", "reference", *options, env=env)

    def setUp(self):
        if program.run("verify", "check.right", "--device", "cpu", "--against", "reference").returncode == 3:
            self.skipTest("no code generator for the CPU")

    def test_without_check_nobody_sees_it(self):
        for name in ("right", *FAULTS):
            result = self.verify(name)
            self.assertEqual(result.returncode, 0, name + result.stdout + result.stderr)

    def test_nothing_is_found_where_nothing_is(self):
        result = self.verify("right", "--check", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["checks"], [])
        self.assertGreater(document["checked"]["launches"], 0)

    def test_findings_end_with_1_and_name_kernel_file_and_line(self):
        for name, kind in FAULTS.items():
            with self.subTest(name=name):
                result = self.verify(name, "--check", "--json")
                self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
                document = json.loads(result.stdout)
                self.assertTrue(all(row["pass"] for row in document["cases"]), document)
                self.assertEqual([(c["kernel"], c["kind"]) for c in document["checks"]], [("check." + name, kind)])
                place = re.fullmatch(r"check_cases\.cpp:(\d+)", document["checks"][0]["place"])
                self.assertIsNotNone(place, document["checks"])
                self.assertIn(int(place.group(1)), lines_of(name))
                self.assertIn(f"kernel check.{name}", result.stderr)

    def test_the_variable_does_as_the_option(self):
        self.assertEqual(self.verify("race", env={"LOCKSTEP_CHECK": "1"}).returncode, 1)
        self.assertEqual(self.verify("right", env={"LOCKSTEP_CHECK": "1"}).returncode, 0)

    def test_all_findings_of_a_run_are_told(self):
        result = program.run("verify", "check", "--device", "cpu", "--against", "reference", "--check", "--json")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(sorted(c["kind"] for c in json.loads(result.stdout)["checks"]), sorted(FAULTS.values()))


if __name__ == "__main__":
    unittest.main()
