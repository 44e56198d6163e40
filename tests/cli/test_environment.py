"""Environment variables as the program meets them: values that cannot be used, and names that do not exist."""
import os
import unittest

from program import ProgramTest, run

WRONG = {
    "LOCKSTEP_CHECK": ("-1", "all", "1.5", "99999999999999999999"),
    "LOCKSTEP_DUMP_PASSES": ("/nonexistent",),
    "LOCKSTEP_CPU_CODE": ("slow",),
    "LOCKSTEP_FAULT": ("x", "stage:", "stage:melt", ":launch", "stage:launch:0", "stage:launch:x"),
    "LOCKSTEP_LIBRARY_PATH": ("lib", "/usr/lib:lib", "/nonexistent"),
    "LOCKSTEP_DATA": ("/nonexistent",),
}


class Environment(ProgramTest):
    def test_values_that_cannot_be_used_are_refused_by_name(self):
        for name, values in WRONG.items():
            for value in values:
                with self.subTest(name=name, value=value):
                    result = run("devices", env={name: value})
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertIn(f"[{name}]: expected", result.stderr)
                    self.assertIn(value, result.stderr)

    def test_passes_that_do_not_exist_are_refused_by_name(self):
        for value in ("foo", "cse,foo"):
            result = run("emit", "engine.copy", "--target", "wgsl", env={"LOCKSTEP_SKIP_PASSES": value})
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn('"foo" [LOCKSTEP_SKIP_PASSES]: expected cse, dead_code, inline, licm, promote, simplify, with commas', result.stderr)

    def test_a_processor_that_does_not_exist_is_refused_by_name(self):
        for value in ("i386", "z80"):
            result = run("verify", "engine.copy", "--device", "cpu", env={"LOCKSTEP_CPU": value})
            if "not available" not in result.stderr:
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn("[LOCKSTEP_CPU]: expected", result.stderr)

    def test_values_that_can_be_used(self):
        for name, value in (("LOCKSTEP_CHECK", "0"), ("LOCKSTEP_SKIP_PASSES", "cse,,licm"), ("LOCKSTEP_CPU_CODE", "quick"),
                            ("LOCKSTEP_LIBRARY_PATH", "/usr/lib:"), ("LOCKSTEP_FAULT", "a.b:device_lost:2"), ("LOCKSTEP_DATA", ""),
                            ("LOCKSTEP_DUMP_PASSES", os.getcwd())):
            self.assertEqual(run("devices", env={name: value}).returncode, 0, name)

    def test_a_name_that_does_not_exist_is_a_warning_with_the_nearest(self):
        result = run("devices", env={"LOCKSTEP_CHEK": "1", "LOCKSTEP_TEST_ANY": "1"})
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count("no variable has this name"), 1, result.stderr)
        self.assertIn("LOCKSTEP_CHEK is set", result.stderr)
        self.assertIn("did you mean LOCKSTEP_CHECK?", result.stderr)
        self.assertIn("LOCKSTEP_ZZZZZZZZZZZZ is set, but no variable has this name\n",
                      run("devices", env={"LOCKSTEP_ZZZZZZZZZZZZ": "1"}).stderr)


if __name__ == "__main__":
    unittest.main()
