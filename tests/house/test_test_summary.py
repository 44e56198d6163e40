"""The summary of ./test reports what passed, failed, was skipped and did not run."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import test_summary

SKIPPED_CASE = """[ RUN      ] Loss.Reported
/a/loss_test.cpp:9: Skipped
no CUDA driver
[  SKIPPED ] Loss.Reported (0 ms)
"""


def read(output, verdict="Test Passed."):
    return test_summary.Test("unit", output, verdict)


class Verdicts(unittest.TestCase):
    def test_a_program_that_skipped_each_of_its_tests_was_skipped(self):
        test = read(SKIPPED_CASE + "[  PASSED  ] 0 tests.\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] Loss.Reported\n")
        self.assertTrue(test.skipped_whole)
        self.assertFalse(test.passed)
        self.assertEqual(test.skips, [("unit: Loss.Reported", "no CUDA driver")])

    def test_a_program_that_skipped_one_test_passed(self):
        test = read(SKIPPED_CASE + "[  PASSED  ] 3 tests.\n[  SKIPPED ] 1 test, listed below:\n")
        self.assertTrue(test.passed)
        self.assertFalse(test.skipped_whole)

    def test_a_program_whose_filter_left_nothing_failed(self):
        for output in ("[  PASSED  ] 0 tests.\n", "Ran 0 tests in 0.000s\n\nOK\n", "no tests ran in 0.01s\n"):
            test = read(output)
            self.assertFalse(test.passed or test.skipped_whole, output)

    def test_a_failure_stays_one_beside_skips(self):
        test = read(SKIPPED_CASE + "[  PASSED  ] 0 tests.\n[  FAILED  ] 1 test\n", "Test Failed.")
        self.assertFalse(test.passed or test.skipped_whole)

    def test_a_test_of_printed_text_passes_or_fails_by_its_reason(self):
        self.assertTrue(read("8.972\n", "Test Pass Reason:\nRequired regular expression found. Regex=[8.972]").passed)
        self.assertFalse(read("8.9\n", "Test Fail Reason:\nRequired regular expression not found. Regex=[8.972]").passed)

    def test_a_test_that_says_that_it_did_not_run_was_skipped(self):
        self.assertTrue(read("skipped: no clang-tidy\n").skipped_whole)

    def test_a_lane_misses_a_test_that_was_skipped(self):
        skipped = read(SKIPPED_CASE + "[  PASSED  ] 0 tests.\n")
        ran, of, why = test_summary.lane_finding("any", ["unit"], ["unit"], {"unit": skipped})
        self.assertEqual((ran, of), (0, 1))
        self.assertIn("no CUDA driver", why)


if __name__ == "__main__":
    unittest.main()
