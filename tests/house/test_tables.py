"""bench/tables.py: what a table says of its commit, rows of other commits, and numbers from raw results."""
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import tables  # noqa: E402


class Tables(unittest.TestCase):
    def test_a_row_of_another_commit_names_it(self):
        table = {"device": "two cores", "commit": "abc1234", "columns": ["operation", "median"],
                 "rows": [{"cells": ["sum", "1 ms"]}, {"cells": ["copy", "2 ms"], "commit": "def5678"}]}
        self.assertEqual(tables.markdown("t", table), "Two cores; commit abc1234. Rows of other commits name theirs.\n\n"
                         "| operation | median | commit |\n|---|---|---|\n| sum | 1 ms | |\n| copy | 2 ms | def5678 |\n")
        del table["rows"][1]
        self.assertEqual(tables.markdown("t", table),
                         "Two cores; commit abc1234.\n\n| operation | median |\n|---|---|\n| sum | 1 ms |\n")

    def test_raw_results_win(self):
        reference = ["nvidia-h200.json", "bench_engine.json", "engine.copy", "16384x16384", "f32"]
        row = {"cells": ["copy", "7 ms", "7"], "raw": [reference, reference]}
        self.assertEqual(tables.cell(row, "operation", "copy"), "copy")
        self.assertEqual(tables.cell(row, "median", "7 ms"), "0.504 / 0.504 ms")
        self.assertEqual(tables.cell(row, "p95", "7"), "0.506 / 0.506")
        self.assertEqual(tables.cell({**row, "unit": "µs"}, "median", "7 ms"), "504 / 504 µs")
        with self.assertRaisesRegex(LookupError, "bench_engine.json: 0 rows engine.copy 16384x16384 f64"):
            tables.cell({**row, "raw": [reference[:4] + ["f64"]]}, "median", "7 ms")

    def test_each_table_has_its_columns(self):
        for name, table in json.loads((tables.RESULTS / "tables.json").read_text(encoding="utf-8")).items():
            for row in table["rows"]:
                self.assertEqual(len(row["cells"]), len(table["columns"]), (name, row))


if __name__ == "__main__":
    unittest.main()
