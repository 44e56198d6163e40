"""Bodies of kernels that are refused, with the texts of their errors."""
import inspect
import re
import traceback

import pytest

import lockstep as ls


class Refused:
    """Collects bodies by the decorator @refused(part of the message, …)."""

    def __init__(self):
        self.bodies, self._said = [], {}

    def __call__(self, *said, error=ls.InputError):
        """The body of a kernel, with x (f32, read), i (i32, read), o (f32, written) and n (i32, read and written)."""
        def add(body):
            assert body.__name__ not in [b.__name__ for b in self.bodies]
            self.bodies.append(body)
            self._said[body] = said, error
            return body
        return add

    def check(self, body):
        """The trace of the body ends with its error, which names a line of it."""
        said, error = self._said[body]

        def kernel(at, x: ls.Grid[ls.f32, 1], i: ls.Grid[ls.i32, 1], o: ls.Out[ls.f32, 1], n: ls.InOut[ls.i32, 1]):
            return body(at, x, i, o, n)

        with pytest.raises(error) as caught:
            ls.kernel(kernel).trace()
        text = str(caught.value)
        for part in said:
            assert part in text
        source, first = inspect.getsourcelines(body)
        file = inspect.getsourcefile(body)
        lines = [int(n) for n in re.findall(re.escape(file.rpartition("/")[2]) + r":(\d+)", text)]
        if not lines:  # errors of Python itself
            lines = [f.lineno for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == file]
        assert any(first <= line < first + len(source) for line in lines), text
