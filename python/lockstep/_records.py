"""Records of runs: the commands `reproduce` and `compare` of the program, run in a separate process."""
import sys

from ._errors import DeviceError, InputError, path


def _run(command, *words):
    import json
    import subprocess

    done = subprocess.run([sys.executable, "-m", "lockstep", command, *words, "--json", "--quiet"],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        raise DeviceError(done.stderr.strip() or f"the program ended with {done.returncode}", command) from None
    if "error" in found:
        error = found["error"]
        kind = InputError if error["code"] == 2 else DeviceError
        raise kind(error["what"], error["where"], error["expected"])
    return found


def reproduce(folder, *, device=None, keep=False):
    """Repeats the recorded run of `folder`, a folder or a file of results, in a scratch folder and compares the
    files.

    `folder` is only read. `device` overrides the recorded device; `keep` keeps the files of the second run. Returns
    the program's JSON: `identical` and `different` (numbers of files), `files` (path, verdict, differing_bits, max_abs)
    and `since`. Raises InputError if an input is missing or has changed, or if the record was edited.
    """
    words = [path(folder, "lockstep.reproduce, argument folder")] + (["--device", device if isinstance(device, str) else device.name] if device else []) + (["--keep"] if keep else [])
    return _run("reproduce", *words)


def compare(first, second):
    """Compares options, inputs and outputs of two recorded runs; returns the program's JSON."""
    return _run("compare", *(path(run, "lockstep.compare") for run in (first, second)))
