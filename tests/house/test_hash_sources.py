"""cmake/HashSources.cmake: the hash of the code generator's sources follows them."""
import os
import subprocess
import sys
import tempfile
import unittest

CMAKE = sys.argv.pop(1) if len(sys.argv) > 1 else "cmake"
SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "cmake", "HashSources.cmake")


class HashSources(unittest.TestCase):
    def test_follows_the_sources(self):
        with tempfile.TemporaryDirectory() as root:
            out = os.path.join(root, "hash.hpp")

            def put(name, text):
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as file:
                    file.write(text)

            def header():
                subprocess.run([CMAKE, "-DROOT=" + root, "-DFOLDERS=a,b", "-DOUT=" + out, "-P", SCRIPT], check=True)
                with open(out) as file:
                    return file.read()

            put("a/x.cpp", "1")
            put("b/deep/y.hpp", "2")
            put("c/other.cpp", "3")
            wrong = subprocess.run([CMAKE, "-DROOT=" + root, "-DFOLDERS=a,none", "-DOUT=" + out, "-P", SCRIPT],
                                   capture_output=True, text=True)
            self.assertNotEqual(wrong.returncode, 0)
            self.assertIn("none", wrong.stderr)
            first = header()
            self.assertRegex(first, r'"[0-9a-f]{32}"')
            kept = os.stat(out).st_mtime_ns
            put("c/other.cpp", "4")
            self.assertEqual(header(), first)
            self.assertEqual(os.stat(out).st_mtime_ns, kept, "an unchanged header must not cause a build")
            seen = {first}
            for name, text in (("a/x.cpp", "5"), ("b/deep/y.hpp", "6"), ("a/new.def", "")):
                put(name, text)
                seen.add(header())
            self.assertEqual(len(seen), 4)


if __name__ == "__main__":
    unittest.main()
