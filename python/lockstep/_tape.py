"""Gradients through many launches without a framework."""

from . import _kernel
from ._array import Array, asarray, empty, zeros
from ._errors import InputError
from ._gradient import FLOATS, Derivatives, wide
from ._language import At, Grid, InOut

_WHERE = "lockstep.Tape"


@_kernel.kernel
def _add(at: At, x: InOut, y: Grid):
    x[at] = x[at] + y[at]


class Number(float):
    """A number of launches on a tape with respect to which derivatives are computed: `Tape.number`."""

    __slots__ = ("__weakref__",)


def _is_float(dtype):
    return dtype.name in FLOATS


def _key(array):
    """The memory of an array; that of WebGPU has no address."""
    return (array.device.name, array._buffer.native or id(array), array.nbytes)


def _flat(array):
    return Array(array._buffer.reshape([array.size]), array.device)


class _Record:
    __slots__ = ("kernel", "device", "extent", "keys", "values", "numbers", "outputs", "others")

    def __init__(self, kernel, device, extent):
        self.kernel, self.device, self.extent = kernel, device, extent
        self.keys, self.values, self.numbers, self.outputs, self.others = {}, {}, {}, [], {}


class Tape:
    """Records the launches of kernels by this thread in its block, to compute gradients through all of them.

        with ls.Tape() as tape:
            a = tape.number(0.1)
            heat[device, n](t0, t1, a)
            heat[device, n](t1, t2, a)
        by_t0, by_a = tape.gradient({t2: seed}, (t0, a))

    Arguments are lockstep.Array. Memory that a later launch of the block overwrites is copied first. Changes of the
    arrays by other code between the block and `gradient` are not detected. An array that a kernel only writes (Out)
    has no derivative with respect to its old contents: kernels that write a part of an array must take it as InOut.
    """

    def __init__(self, *, memory_bytes=0):
        self._records, self._memory_bytes = [], memory_bytes
        self._live = {}  # memory: (record, parameter) that still refer to it
        self._arrays = {}  # by their memory: kept, so that no address is used twice

    def __enter__(self):
        _kernel.tapes.open.append(self)
        return self

    def __exit__(self, *error):
        _kernel.tapes.open.remove(self)

    def number(self, value):
        """`value` as an argument of launches for which `gradient` can compute a derivative. Results of Python
        arithmetic with it are plain numbers.
        """
        return Number(value)

    @staticmethod
    def _launch(kernel, device, extent, arguments):
        """Launches a kernel, on each tape that is open."""
        kept = [(tape, tape._record(kernel, device, extent, arguments)) for tape in _kernel.tapes.open]
        kernel._launch(device, extent, [float(a) if isinstance(a, Number) else a for a in arguments])
        for tape, record in kept:
            record.kernel = kernel._as_launched()
            tape._records.append(record)

    def _record(self, kernel, device, extent, arguments):
        """A launch that follows, with copies of what it overwrites."""
        record = _Record(kernel, device, extent)
        for (name, hint), value in zip(kernel._parameters, arguments):
            where = f"{_WHERE}, kernel {kernel.name}, argument {name}"
            if hint.access == "number":
                record.values[name] = float(value) if isinstance(value, Number) else value
                if isinstance(value, Number):
                    record.numbers[name] = value
                continue
            if not isinstance(value, Array):
                raise InputError(f"a {type(value).__name__}", where, "a lockstep.Array: lockstep.asarray(x)")
            key = _key(value)
            if key not in self._arrays:
                self._expect_whole(key, where)
                self._arrays[key] = value
            record.keys[name] = key
            if hint.written:
                self._copy_before(key, value)
                if _is_float(value.dtype):
                    record.outputs.append(name)
                elif hint.access == "write":
                    record.others[name] = (value.shape, value.dtype)
            if hint.access != "write":
                record.values[name] = value.copy() if hint.access == "read_write" else value
                if hint.access == "read":
                    self._live.setdefault(key, []).append((record, name))
        return record

    def _expect_whole(self, key, where):
        for device, address, size in self._arrays:
            if device == key[0] and address < key[1] + key[2] and key[1] < address + size:
                raise InputError("a part of an array that the tape has as a whole", where, "arrays that do not overlap")

    def _copy_before(self, key, array):
        """Records that read this memory get a copy of it as it is now."""
        copy = None
        for record, name in self._live.pop(key, ()):
            copy = copy or array.copy()
            record.values[name] = copy

    def gradient(self, seeds, by):
        """Derivatives of a loss with respect to the contents of the arrays `by` before the first launch, and to
        numbers.

        seeds: {array: derivative of the loss with respect to it at the end}, arrays of its shape. by: arrays, and
        numbers of `Tape.number`. Returns a list with an array of f32 or f64 for each array and a float for each
        number.
        """
        wanted = {_key(a) for a in by if isinstance(a, Array)}
        numbers = {id(n): 0.0 for n in by if isinstance(n, Number)}
        taken = {id(n) for r in self._records for n in r.numbers.values()}
        for a in by:
            if not isinstance(a, (Array, Number)):
                raise InputError(f"a {type(a).__name__} in by", f"{_WHERE}.gradient", "arrays, and numbers of Tape.number")
            if isinstance(a, Number) and id(a) not in taken:
                raise InputError(f"number {float(a)!r}, which no launch took", f"{_WHERE}.gradient",
                                 "a number that is itself an argument of a launch: what Python computes from it has no derivative")
        cotangents = {}
        for array, seed in seeds.items():
            own = asarray(seed, array.device, copy=True, name=f"{_WHERE}.gradient, seed")
            if own.shape != array.shape or own.dtype.name != wide(array.dtype).name:
                raise InputError(f"a seed of {own.dtype.name} and shape {own.shape}", f"{_WHERE}.gradient",
                                 f"{wide(array.dtype).name} and shape {array.shape}")
            cotangents[_key(array)] = own
        flows = self._flows(wanted, numbers)
        for record, names in zip(reversed(self._records), reversed(flows)):
            self._back(record, names, cotangents, numbers)
        return [numbers[id(a)] if isinstance(a, Number) else
                cotangents.get(_key(a)) or zeros(a.shape, wide(a.dtype), a.device) for a in by]

    def _flows(self, wanted, numbers):
        """For each launch the arguments that depend on the inputs of the derivatives."""
        active, flows = set(wanted), []
        for record in self._records:
            names = [n for n, key in record.keys.items()
                     if n in record.values and key in active and _is_float(record.values[n].dtype)]
            names += [n for n, value in record.numbers.items() if id(value) in numbers]
            flows.append(names)
            for n in record.outputs:
                key = record.keys[n]
                if names:
                    active.add(key)
                elif n not in record.values:
                    active.discard(key)
        return flows

    def _back(self, record, names, cotangents, numbers):
        seeds = {n: cotangents.pop(record.keys[n], None) for n in record.outputs}
        given = [s for s in seeds.values() if s is not None]
        if not given or not names:
            # An update in place without influence on a requested derivative has no cotangent.
            return
        device = record.device or given[0].device
        for n in record.outputs:
            if seeds[n] is None:
                like = self._arrays[record.keys[n]]
                seeds[n] = zeros(like.shape, wide(like.dtype), device)

        scratch = {n: empty(shape, dtype, device) for n, (shape, dtype) in record.others.items()}
        found = Derivatives(record.kernel, device, record.extent, memory_bytes=self._memory_bytes).reverse(
            {**record.values, **scratch}, seeds, names)
        for n, gradient in found.items():
            if n in record.numbers:
                numbers[id(record.numbers[n])] += float(gradient.numpy()[0])
                continue
            earlier = cotangents.get(record.keys[n])
            if earlier is None:
                cotangents[record.keys[n]] = gradient
            else:
                _add._launch(device, [earlier.size], [_flat(earlier), _flat(gradient)])
