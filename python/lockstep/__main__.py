"""`python -m lockstep` is the program `lockstep`."""
import os
import shutil
import sys


def program():
    """The program beside the package, of the build that the package lies in, or on the path."""
    here = os.path.dirname(os.path.abspath(__file__))
    from . import _core
    built = os.path.dirname(os.path.abspath(_core.__file__))
    for place in (os.path.join(built, "bin", "lockstep"), os.path.join(built, "..", "..", "bin", "lockstep"),
                  os.path.join(here, "bin", "lockstep")):
        if os.access(place, os.X_OK):
            return os.path.realpath(place)
    return shutil.which("lockstep")


def main():
    found = program()
    if not found:
        sys.exit("lockstep: error: the program is missing [python -m lockstep]: expected it beside the package")
    os.execv(found, ["lockstep", *sys.argv[1:]])


if __name__ == "__main__":
    main()
