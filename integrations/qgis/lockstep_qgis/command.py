"""Commands of the program: parameters out of the generated reference, the command line, the run. No QGIS in here."""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import threading

with open(os.path.join(os.path.dirname(__file__), "options.json"), encoding="utf-8") as _file:
    #: Name of a command to its options, as the library declares them: name, flag, kind, choices, low, high, default, help …
    COMMANDS = json.load(_file)

DEVICE = {"name": "device", "flag": "--device", "kind": "text", "default": "auto", "required": False, "advanced": True,
          "positional": False, "help": "auto, cpu, cuda or webgpu"}
_PERCENT = re.compile(r"(\d+) %")


class Failed(Exception):
    """The program ended with an error, which is the text."""


class Cancelled(Exception):
    pass


def program():
    """The program: $LOCKSTEP_PROGRAM, else `lockstep` of PATH."""
    found = os.environ.get("LOCKSTEP_PROGRAM") or shutil.which("lockstep")
    if not found:
        raise Failed("the program lockstep was not found: install it, or set LOCKSTEP_PROGRAM to its path")
    return found


def options_of(command):
    return COMMANDS[command] + [DEVICE]


def words_of(command, values):
    """The command line of a command with values by option name; None and defaults are left out."""
    words, positional = ["urban", command], []
    for option in options_of(command):
        value = values.get(option["name"])
        if value is None or value == "" or value == option["default"]:
            continue
        if option["positional"]:
            positional.append(str(value))
        elif option["kind"] == "flag":
            words.append(option["flag"])  # given, it turns the default over
        else:
            words.append(f"{option['flag']}={value}")
    return words + positional


def run(command, values, progress=lambda percent: None, say=lambda line: None, cancelled=lambda: False, every=0.2):
    """Runs a command; its JSON. progress(percent) and say(line) are called from this thread; cancelled() ends the program as
    Ctrl-C does."""
    master, slave = pty.openpty()  # the program draws its progress on terminals alone
    done = subprocess.Popen([program(), *words_of(command, values), "--json"], stdout=subprocess.PIPE, stderr=slave,
                            stdin=subprocess.DEVNULL, start_new_session=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # ignored where a shell started QGIS with &
    os.close(slave)
    out, lines = [], []
    readers = [threading.Thread(target=lambda: out.append(done.stdout.read())),
               threading.Thread(target=_read_terminal, args=(master, lines))]
    for reader in readers:
        reader.start()
    stopped = shown = False
    texts = []
    while done.poll() is None or any(reader.is_alive() for reader in readers) or lines:
        shown = False
        while lines:
            line = lines.pop(0)
            percent = not line.startswith("[lockstep]") and _PERCENT.search(line)  # a warning may have a share in it
            if percent:
                progress(int(percent.group(1)))
            elif line:
                texts.append(line)
                say(line)
            shown = True
        if cancelled() and not stopped and done.poll() is None:
            stopped = True
            done.send_signal(signal.SIGINT)
        if not shown:
            try:
                done.wait(every)
            except subprocess.TimeoutExpired:
                pass
            if done.poll() is not None:
                for reader in readers:
                    reader.join(every)
    os.close(master)
    done.stdout.close()
    if stopped:
        raise Cancelled
    try:
        found = json.loads(b"".join(out))
    except ValueError:
        raise Failed("\n".join(texts[-5:]) or f"lockstep ended with {done.returncode}") from None
    if "error" in found:
        error = found["error"]
        raise Failed(f"{error['what']} [{error['where']}]: expected {error['expected']}")
    return found


def _read_terminal(master, lines):
    rest = ""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:  # the program has closed it
            part = b""
        if not part:
            break
        pieces = re.split(r"[\r\n]+|\x1b\[[0-9;]*[A-Za-z]", rest + part.decode("utf-8", "replace"))
        rest = pieces.pop()
        lines.extend(piece.strip() for piece in pieces if piece.strip())
    if rest.strip():
        lines.append(rest.strip())


def kind_of(path):
    """Mesh, Vector or Raster, of a layer of layers_of()."""
    return "Mesh" if path.endswith(".nc") else "Vector" if "|layername=" in path or path.endswith(".csv") else "Raster"


def layers_of(found):
    """Layers of a result that a map shows, (path, name): grids with a style next to them, NetCDF, shapes of GeoPackages."""
    grids = [(grid["file"], grid["name"]) for key in ("outputs", "summaries")
             for grid in found.get(key, []) if isinstance(grid, dict) and str(grid.get("file", "")).endswith(".tif")]
    if found.get("netcdf"):
        grids.append((found["netcdf"], os.path.splitext(os.path.basename(found["netcdf"]))[0]))
    if found.get("facades"):
        grids.append((found["facades"]["file"] + "|layername=facades", "facades"))
    if found.get("places"):
        grids.append((found["places"] + "|layername=trees", "trees"))
    if found.get("cdsm", "").endswith(".tif"):
        grids.append((found["cdsm"], "cdsm"))
    table = found.get("file", "")  # of areas
    if table.endswith(".gpkg"):
        grids.append((table + "|layername=statistics", "statistics"))
    elif table.endswith(".csv"):
        grids.append((table, "statistics"))
    return grids


def findings_of(found):
    """Lines of the table of `urban check`, (text, whether it is a warning or an error)."""
    for finding in found.get("checks", []):
        value = " ".join(str(finding[key]) for key in ("value", "unit", "text") if finding.get(key) not in (None, ""))
        yield f"{finding['verdict']} {finding['check']}: {value}", finding["verdict"] != "ok"
