"""Runs the tests of the Python module; exit code 77, with the reason, where something they need is not installed."""
import importlib.util
import sys

missing = [name for name in ("numpy", "pytest") if importlib.util.find_spec(name) is None]
if missing:
    print(f"skipped: {' and '.join(missing)} not installed (Debian: python3-numpy, python3-pytest)")
    sys.exit(77)
import pytest  # noqa: E402

if __name__ == "__main__":  # processes that a test spawns import this file
    sys.exit(pytest.main(["-q", "-rs", "-p", "no:cacheprovider", "-W", "error::pytest.PytestUnraisableExceptionWarning", *sys.argv[1:]]))
