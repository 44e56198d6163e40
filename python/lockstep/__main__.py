"""`python -m lockstep` is the program `lockstep`, which the module contains."""
import os
import signal
import sys

from . import _core


def main():
    """Runs the program with the arguments of this process and the signal handling of a separate program."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(_core.program([b"lockstep", *map(os.fsencode, sys.argv[1:])], [sys.executable, "-m", "lockstep"]))


if __name__ == "__main__":
    main()
