"""Runs the program on hostile inputs, each time under limits of memory and of time that a right program never meets."""
import os
import resource
import stat
import struct
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import program  # noqa: E402

PROGRAM = os.path.abspath(program.PROGRAM)
MEMORY = 8 << 30
CPU_SECONDS = 300


def run(*arguments, env=None, cwd=None, before=(), data=MEMORY, seconds=CPU_SECONDS):
    """`data`: bytes that the program may have of its own, unlike those of its libraries. `seconds`: of the processor."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_DATA, (data, data))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    full = dict(os.environ, LOCKSTEP_CPU_CODE="quick")
    full.update(env or {})
    return subprocess.run([*before, PROGRAM, *map(str, arguments)], capture_output=True, env=full, cwd=cwd, timeout=600,
                          stdin=subprocess.DEVNULL, preexec_fn=limit)


def npy_bytes(shape, data=None, descr="<f4", header=None):
    if header is None:
        header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    header = header.encode() if isinstance(header, str) else header
    header += b" " * ((64 - (len(header) + 11) % 64) % 64) + b"\n"
    if data is None:
        count = 1
        for side in shape:
            count *= side
        data = b"\0\0\x80\x3f" * count
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def zip_bytes(members):
    """An archive of (name, data, changes) with fields of the headers changed at will: the liar's zip."""
    body, central = b"", b""
    count = 0
    for member in members:
        name, data, change = (*member, {})[:3]
        name = name if isinstance(name, bytes) else name.encode()
        method = change.get("method", 0)
        packed = data
        if method == 8 and "raw" not in change:
            pack = zlib.compressobj(9, zlib.DEFLATED, -15)
            packed = pack.compress(data) + pack.flush()
        packed = change.get("raw", packed)
        crc = change.get("crc", zlib.crc32(data))
        size, packed_size = change.get("size", len(data)), change.get("packed_size", len(packed))
        offset = change.get("offset", len(body))
        flags = change.get("flags", 0)
        if "offset" not in change:
            body += struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, flags, method, 0, 0, crc, change.get("local_packed", packed_size),
                                change.get("local_size", size), change.get("local_name_length", len(name)), 0)
            body += change.get("local_name", name) + packed
        central += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, flags, method, 0, 0, crc, packed_size, size,
                               change.get("name_length", len(name)), change.get("extra_length", 0), 0, 0, 0, 0, offset) + name
        count += 1
    return body + central + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, min(count, 65535), min(count, 65535), len(central), len(body), 0)


class Attack(program.ProgramTest):
    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        return self.path(name)

    def clean(self, done):
        """The output of a command has no control character that a terminal would obey, and no sign of an internal fault."""
        for stream in (done.stdout, done.stderr):
            obeyed = [byte for byte in stream if byte < 32 and byte not in b"\n\t" or byte == 127]
            self.assertEqual(obeyed, [], stream)
            for fault in (b"fault of Lockstep", b"AddressSanitizer", b"terminate called", b"bad_alloc", b"std::"):
                self.assertNotIn(fault, stream)

    def refuses(self, *arguments, names=None, env=None, cwd=None, **limits):
        done = run(*arguments, env=env, cwd=cwd, **limits)
        self.assertEqual(done.returncode, 2, done.stderr[-2000:] + done.stdout[-2000:])
        self.clean(done)
        self.assertIn(b"lockstep: error:", done.stderr)
        self.assertIn(b"expected", done.stderr)
        if names:
            self.assertIn(os.fsencode(names), done.stderr)
        return done

    def survives(self, *arguments, env=None, cwd=None, codes=(0, 2), **limits):
        done = run(*arguments, env=env, cwd=cwd, **limits)
        self.assertIn(done.returncode, codes, done.stderr[-2000:] + done.stdout[-2000:])
        self.clean(done)
        return done


def snapshot(folder, without=()):
    """Names, kinds, modes, times of change and contents of all below a folder."""
    found = {}
    for base, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if os.path.join(base, name) not in without]
        for name in [*folders, *files]:
            path = os.path.join(base, name)
            status = os.lstat(path)
            content = b""
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            elif stat.S_ISLNK(status.st_mode):
                content = os.fsencode(os.readlink(path))
            found[path] = (status.st_mode, status.st_size if stat.S_ISREG(status.st_mode) else 0, content)
    return found
