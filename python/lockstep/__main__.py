"""`python -m lockstep` is the program `lockstep`, which the module holds."""
import os
import signal
import sys

from . import _core


def main():
    """Runs the program on this process's arguments, with the signals that a program of its own would have."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(_core.program([b"lockstep", *map(os.fsencode, sys.argv[1:])], [sys.executable, "-m", "lockstep"]))


if __name__ == "__main__":
    main()
