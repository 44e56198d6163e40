"""Runs the program under test and checks what every command promises."""
import json
import os
import re
import shutil
import subprocess
import struct
import tempfile
import unittest

PROGRAM = os.environ.get("LOCKSTEP_PROGRAM") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "bin", "lockstep")
ERROR_LINE = re.compile(r"^lockstep: error: .+ \[.+\]: expected .+$")
STAGE_MEMBERS = {"stage", "device", "seconds", "bytes_to_device", "bytes_from_device", "launches", "fallbacks"}


def run(*arguments, env=None, timeout=300):
    full = dict(os.environ)
    full.update(env or {})
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, env=full, timeout=timeout,
                          stdin=subprocess.DEVNULL)


def later(arguments):
    """The arguments with only the last of each option's values, since two that differ are refused."""
    words, k = [], 0
    while k < len(arguments):
        pair = arguments[k].startswith("--") and k + 1 < len(arguments) and not arguments[k + 1].startswith("--")
        words.append(list(arguments[k:k + 1 + pair]))
        k += 1 + pair
    return [word for n, own in enumerate(words) for word in own
            if not (len(own) == 2 and any(len(other) == 2 and other[0] == own[0] for other in words[n + 1:]))]


def npy(path, rows):
    """Writes a float32 grid as .npy without NumPy."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
    header += " " * ((64 - (len(header) + 11) % 64) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for row in rows:
            file.write(struct.pack("<%df" % len(row), *row))
    return path


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<H", data[8:10])
    header = eval(data[10:10 + length])  # The program's own output.
    rows, cols = header["shape"]
    assert header["descr"] == "<f4" and not header["fortran_order"]
    values = struct.unpack("<%df" % (rows * cols), data[10 + length:])
    return [list(values[r * cols:(r + 1) * cols]) for r in range(rows)]


class ProgramTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lockstep-cli-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    @staticmethod
    def contents(folder):
        """All files of a folder by name."""
        found = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as file:
                found[name] = file.read()
        return found

    def refuses(self, *arguments, saying="", code=2, env=None):
        """The command ends with `code` and one error line that has `saying`; nothing comes on stdout."""
        done = run(*arguments, env=env)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.splitlines()
        errors = [line for line in lines if line.startswith("lockstep: error:")]
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertRegex(errors[0], ERROR_LINE)
        for line in lines:
            self.assertTrue(line.startswith(("lockstep: error: ", "hint: ")), done.stderr)
        self.assertIn(saying, errors[0])
        return done

    def json_of(self, *arguments, code=0, env=None):
        done = run(*arguments, "--json", env=env)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def check_summary(self, document):
        for member in ("device", "numerics", "stages", "fallbacks", "peak_device_bytes", "seconds"):
            self.assertIn(member, document)
        for stage in document["stages"]:
            self.assertEqual(set(stage), STAGE_MEMBERS)
        self.assertIsInstance(document["fallbacks"], dict)
        self.assertGreater(document["seconds"], 0)
