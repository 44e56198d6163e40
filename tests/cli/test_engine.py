"""devices, verify, bench, emit."""
import csv
import json
import os
import re
import stat
import unittest

from program import PROGRAM, ProgramTest, run

ROW = {"case", "size", "dtype", "elements", "differing_bits", "differing_elements", "max_abs", "mean_abs", "rel_l2",
       "max_ulp", "finite_equal", "relative_max", "bound", "pass"}
RESULT = {"case", "size", "dtype", "median_ms", "p95_ms", "mean_ms", "min_ms", "bytes", "gbps", "share_of_copy", "gflops", "iterations"}


class Devices(ProgramTest):
    def test_all_kinds_are_listed_with_a_reason_or_limits(self):
        devices = self.json_of("devices")["devices"]
        self.assertEqual({d["kind"] for d in devices}, {"cpu", "cuda", "webgpu", "interp"})
        for device in devices:
            self.assertLessEqual({"name", "kind", "available", "reason", "description", "limits"}, set(device))
            self.assertEqual(device["available"], device["reason"] == "", device)
            self.assertEqual(device["available"], bool(device["limits"]), device)

    def test_a_device_that_is_not_there_ends_with_3(self):
        missing = [d for d in self.json_of("devices")["devices"] if not d["available"]]
        if not missing:
            self.skipTest("every kind of device is there")
        said = self.refuses("verify", "engine.copy", "--device", missing[0]["kind"], code=3).stderr
        self.assertEqual(said.count("`lockstep devices`"), 1, said)


class Check(ProgramTest):
    def test_launches_are_checked_and_counted(self):
        for options in (["--check"], ["--check=1"]):
            document = self.json_of("verify", "engine.copy", "--device", "cpu", *options)
            self.assertEqual(document["checks"], [])
            self.assertEqual(document["checked"]["every"], 1)
            self.assertGreater(document["checked"]["launches"], 0)
        self.assertNotIn("checks", self.json_of("verify", "engine.copy", "--device", "cpu"))

    def test_counts_that_are_none_are_refused(self):
        for text in ("0", "-1", "all"):
            self.refuses("verify", "engine.copy", "--device", "cpu", "--check=" + text, code=2)


class Verify(ProgramTest):
    def test_rows_and_counts(self):
        document = self.json_of("verify", "engine.copy", "--device", "interp", "--against", "reference")
        self.check_summary(document)
        self.assertEqual((document["device"], document["against"]), ("interp", "reference"))
        self.assertGreater(document["passed"], 0)
        self.assertEqual(document["failed"], 0)
        for row in document["cases"]:
            self.assertEqual(set(row), ROW)
            self.assertTrue(row["pass"])
            self.assertTrue(row["case"].startswith("engine.copy"))
        self.assertEqual(document["passed"], len(document["cases"]))

    def test_generated_code_calls_the_system_s_mathematics_alone(self):
        """No function of Lockstep is called by CPU code, so a sanitizer of the host code misses none (docs/design/cpu.md)."""
        kernels = self.json_of("emit", "--list")["kernels"]
        calls = set()
        for kernel in kernels[::max(1, len(kernels) // 12)]:
            self.assertEqual(re.findall(r"^declare [^@]*@(?!llvm\.)(\S+)\(", run("emit", kernel, "--target", "llvm").stdout, re.M), [], kernel)
            for processor in ("", "x86-64"):
                done = run("emit", kernel, "--target", "asm", env={"LOCKSTEP_CPU": processor})
                self.assertEqual(done.returncode, 0, done.stderr)
                calls |= set(re.findall(r"^\s+(?:callq?|jmp)\s+\*?([A-Za-z_%]\S*)", done.stdout, re.M))
        allowed = r"(fma|roundeven|rint|nearbyint|floor|ceil|trunc)f?|mem(cpy|set|move)|__(extendhfsf2|truncsfhf2|truncdfhf2)"
        self.assertEqual([call for call in calls if not re.fullmatch(f"({allowed})(@PLT)?", call)], [])

    def test_gradients_of_the_kernels_that_cases_launch(self):
        document = self.json_of("verify", "engine.heat", "engine.heat_f64", "engine.copy", "engine.control", "--gradients", "--device", "cpu")
        self.check_summary(document)
        self.assertEqual((document["against"], document["failed"]), ("interp", 0))
        self.assertEqual(document["passed"], len(document["kernels"]))
        self.assertEqual({row["kernel"] for row in document["kernels"]},
                         {"engine.copy", "engine.heat", "engine.heat_f64"})
        for row in document["kernels"]:
            self.assertTrue(row["pass"] and row["same_bits"], row)
            self.assertLess(row["modes"], 1e-6)
        self.assertEqual([row["kernel"] for row in document["rejected"]], ["engine.control"])
        self.refuses("verify", "engine.copy", "--gradients", "--against", "reference", saying="cpu or interp")

    def test_bad_use(self):
        self.refuses("verify", "no.such.case", saying="no.such.case")
        self.refuses("verify", "--against", "cuda", saying="[--against]: expected one of cpu|interp|reference")
        self.refuses("verify", "--sizes", "huge", saying="[--sizes]: expected one of small|full")
        self.refuses("verify", "--seed", "-1", saying="[--seed]")


class Bench(ProgramTest):
    def bench(self, *more, code=0):
        return self.json_of("bench", "engine.copy", "--device", "cpu", "--sizes", "4096", "--iterations", "2", "--warmup", "1", *more, code=code)

    def test_rows_files_and_comparison(self):
        document = self.bench("--out", self.path("a.json"), "--csv", self.path("a.csv"))
        self.check_summary(document)
        self.assertGreater(document["copy_gbps"], 0)
        for row in document["results"]:
            self.assertLessEqual(RESULT, set(row))
            self.assertEqual(row["iterations"], 2)
        with open(self.path("a.json")) as file:
            kept = json.load(file)
        with open(self.path("a.csv")) as file:
            self.assertEqual(len(file.read().splitlines()), 1 + len(document["results"]))
        # A file that claims to have been a thousand times faster makes this run a regression, and the reverse does not.
        for factor, code in ((1e-3, 1), (1e3, 0)):
            changed = json.loads(json.dumps(kept))
            for row in changed["results"]:
                row["median_ms"] *= factor
            with open(self.path("b.json"), "w") as file:
                json.dump(changed, file)
            compared = self.bench("--against", self.path("b.json"), code=code)
            self.assertTrue(all(row["regression"] == bool(code) for row in compared["comparison"]))
            self.assertEqual(len(compared["comparison"]), len(kept["results"]))

    def test_against_results_without_a_partner_fails(self):
        document = self.bench()
        for row in document["results"]:
            row["median_ms"] *= 1e3
        arguments = ["engine.copy", "--device", "cpu", "--sizes", "4096", "--iterations", "2", "--warmup", "1",
                     "--against", self.path("c.json")]

        def keep(**changes):
            with open(self.path("c.json"), "w") as file:
                json.dump({**document, **changes}, file)
        keep(results=document["results"][1:])
        compared = self.json_of("bench", *arguments, code=1)
        self.assertEqual(len(compared["unmatched"]), 1)
        self.assertEqual(len(compared["comparison"]), len(document["results"]) - 1)
        keep(device="cuda:0")
        self.refuses("bench", *arguments, saying="results of cuda:0 [%s]: expected those of cpu" % self.path("c.json"))
        keep(numerics="fast")
        self.refuses("bench", *arguments, saying="expected those of exact numerics")

    def test_names_and_element_types(self):
        def rows(*more):
            document = self.json_of("bench", "primitives.matmul", "--device", "cpu", "--sizes", "8x8x8", "--iterations", "2",
                                    "--warmup", "1", *more)
            return {(row["case"], row["dtype"], "reference_ms" in row) for row in document["results"]}
        self.assertEqual(rows("--whole-names"), {("primitives.matmul", "f32", True)})
        chosen = rows("--dtype", "f64,bf16", "--no-reference")
        self.assertEqual({dtype for _, dtype, _ in chosen}, {"f64", "bf16"})
        self.assertFalse(any(timed for _, _, timed in chosen))
        self.refuses("bench", "primitives.matmul", "--dtype", "i8", saying="element type i8 [--dtype]: expected one of these cases': bf16, f16, f32, f64")
        self.refuses("bench", "primitives", "--whole-names", saying="[--whole-names]")

    def test_a_size_beyond_the_machine_is_bad_input(self):
        self.refuses("bench", "engine.copy", "--sizes", "2000000000x2000000000", "--device", "cpu",
                     saying='size "2000000000x2000000000" [--sizes]: expected at most 2^40 elements')

    def test_against_another_program_runs_both_in_turn(self):
        log = self.path("calls")
        other = self.path("other")
        with open(other, "w") as file:
            file.write('#!/bin/sh\necho call >> "%s"\nexec "%s" "$@"\n' % (log, PROGRAM))
        os.chmod(other, os.stat(other).st_mode | stat.S_IXUSR)
        compared = self.bench("--against", other, "--rounds", "3", "--tolerance", "1000000")
        self.assertTrue(compared["comparison"])
        with open(log) as file:
            self.assertEqual(len(file.readlines()), 3)

    def test_bad_use(self):
        self.refuses("bench", "engine.copy", "--iterations", "0", saying="[--iterations]: expected a whole number from 1")
        self.refuses("bench", "engine.copy", "--tolerance", "-1", saying="[--tolerance]")
        self.refuses("bench", "engine.copy", "--sizes", "12y", "--device", "interp", saying="12y")
        self.refuses("bench", "engine.copy", "--sizes", "1,,2", "--device", "interp", saying="[--sizes]")
        self.refuses("bench", "engine.copy", "--sizes", "64x0", "--device", "interp", saying='size "64x0" [--sizes]: expected numbers above 0')
        # The fused path needs a larger grid.
        small = self.json_of("bench", "pde.scale", "pde.fused.order4", "--sizes", "8x8x8,64", "--iterations", "1", "--no-reference", "--device", "cpu")
        self.assertTrue(any("too small" in row["reason"] for row in small["skipped"]), small["skipped"])
        self.refuses("bench", "engine.copy", "--against", self.path("none.json"), saying="none.json")
        with open(self.path("bad.json"), "w") as file:
            file.write("[]")
        self.refuses("bench", "engine.copy", "--against", self.path("bad.json"), saying="bad.json]: expected the JSON that `lockstep bench --out` writes")

    def test_startup(self):
        document = self.json_of("bench", "startup", "--device", "interp", "--out", self.path("s.json"), "--csv", self.path("s.csv"))
        rows = document["startup"]
        with open(self.path("s.json")) as file:
            self.assertEqual(json.load(file), document)
        with open(self.path("s.csv"), newline="") as file:
            self.assertEqual(list(csv.DictReader(file))[0]["device"], "interp")
        self.refuses("bench", "startup", "--device", "interp", "--sizes", "17", saying="--sizes with bench startup")
        self.assertEqual([row["device"] for row in rows], ["interp"])
        self.assertGreater(rows[0]["cold_seconds"], 0)
        self.assertGreater(rows[0]["warm_seconds"], 0)


class Emit(ProgramTest):
    def test_list_and_single_kernels(self):
        kernels = self.json_of("emit", "--list")["kernels"]
        self.assertEqual(kernels, run("emit", "--list").stdout.split())
        self.assertIn("engine.copy", kernels)
        for target, mark in (("ir", "engine.copy"), ("cuda", "__global__"), ("wgsl", "@compute")):
            done = run("emit", "engine.copy", "--target", target)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(mark, done.stdout)
        self.assertEqual(run("emit", "engine.copy", "--target", "cuda", "--out", self.path("k.cu")).returncode, 0)
        with open(self.path("k.cu")) as file:
            self.assertIn("__global__", file.read())

    def test_every_kernel_as_wgsl(self):
        document = self.json_of("emit", "--all", "--target", "wgsl", "--out", self.path("wgsl"))
        self.assertEqual(document["failed"], 0)
        self.assertEqual(len(os.listdir(self.path("wgsl"))), document["written"])
        self.assertEqual(len(document["kernels"]), len(self.json_of("emit", "--list")["kernels"]))

    def test_bad_use(self):
        self.refuses("emit", saying="no kernel [emit]")
        self.refuses("emit", "no.such", saying="unknown kernel 'no.such'")
        self.refuses("emit", "engine.copy", "--all", saying="more than one")
        self.refuses("emit", "engine.copy", "--target", "metal", saying="[--target]")
        self.refuses("emit", "engine.copy", "--target", "cuda", "--arch", "sm_x", saying="'sm_x' [--arch]")
        self.refuses("emit", "--all", "--target", "wgsl", saying="expected --out DIR")
        self.refuses("emit", "engine.copy", "--target", "cubin", saying="expected --out FILE")


if __name__ == "__main__":
    unittest.main()
