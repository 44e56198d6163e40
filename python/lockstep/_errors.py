"""Errors and warnings. Every message states what is wrong, where, and what was expected."""
import os
import re

_FORM = re.compile(r"(?P<what>.*?) \[(?P<where>[^\]]*)\](?:: expected (?P<expected>.*))?$", re.S)


class Error(RuntimeError):
    """Base class of all errors. `what`, `where` and `expected` are the parts of the message."""

    def __init__(self, message="", where=None, expected=None):
        if where is not None:
            self.what, self.where, self.expected = message, where, expected or ""
            message = f"{message} [{where}]" + (f": expected {expected}" if expected else "")
        else:
            parts = _FORM.match(message)
            self.what = parts["what"] if parts else message
            self.where = parts["where"] if parts else ""
            self.expected = (parts["expected"] or "") if parts else ""
        self.hint = ""
        super().__init__(message)


class InputError(Error, ValueError):
    """Invalid usage or input; also a ValueError."""


class UnsupportedError(Error):
    """The device or this build does not support the request."""


class DeviceError(Error):
    """A device failed during execution."""


class CheckError(Error):
    """A checked launch found an error in its kernel. `where` contains the kernel and the source line."""


def text(value, what, where, expected):
    """A string, or an InputError."""
    if not isinstance(value, str):
        raise InputError(f"{what} {value!r}", where, expected)
    return value


def path(value, where):
    """A path as a string, or an InputError."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise InputError(type(value).__name__, where, "a path")
    return os.fsdecode(value)


def whole(value, what, where, low, high=2**31 - 1):
    """A whole number of a range, or an InputError."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or not low <= value.__index__() <= high:
        raise InputError(f"{what} {value!r}", where, f"a whole number from {low} to {high}")
    return value.__index__()


class FallbackWarning(RuntimeWarning):
    """A stage failed on its device and was repeated on the CPU."""
