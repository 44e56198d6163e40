"""A root folder with the C and C++ run-time libraries and nothing else, and programs that run in it."""
import os
import re
import shutil
import subprocess

RUN_TIME = re.compile(r"(/\S*/(?:ld-linux[^/\s]*|lib(?:c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so[^/\s]*)) ")


def make(root, program):
    """The libraries of the system that `program` may count on, at their places."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for path in RUN_TIME.findall(listed):
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(path), target)
    for folder in ("tmp", "dev", "proc"):
        (root / folder).mkdir(exist_ok=True)
    (root / "dev/null").touch()


def entry(root):
    """The words before a command that make `root` its root; empty where this system does not allow it. The loader finds $ORIGIN by /proc."""
    loader = next(root.glob("lib*/ld-linux*")).relative_to(root)
    enter = ["sh", "-c", 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"', root]
    for words in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        if shutil.which("unshare") and subprocess.run([*words, *enter, f"/{loader}", "--help"], capture_output=True, check=False).returncode == 0:
            return [*words, *enter]
    return []
