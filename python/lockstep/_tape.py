"""Gradients through many launches without a framework."""

from . import _kernel
from ._array import Array, asarray, empty, zeros
from ._errors import InputError
from ._expr import where
from ._gradient import FLOATS, Derivatives, wide
from ._language import At, Grid, InOut, Out

_WHERE = "lockstep.Tape"


@_kernel.kernel
def _add(at: At, x: InOut, y: Grid):
    x[at] = x[at] + y[at]


@_kernel.kernel
def _set_ones(at: At, x: Out):
    x[at] = 1


@_kernel.kernel
def _keep(at: At, cotangent: InOut, zeros: Grid, ones: Grid):
    """Leaves the cotangents of elements that launches into zeros and into ones did not write."""
    cotangent[at] = where((zeros[at] == 0) & (ones[at] == 1), cotangent[at], 0)


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


def _filled(like, number):
    own = zeros(like.shape, like.dtype, like.device)
    if number:
        _set_ones._launch(own.device, [own.size], [_flat(own)])
    return own


class _Record:
    __slots__ = ("kernel", "device", "extent", "keys", "values", "numbers", "outputs", "others", "kept")

    def __init__(self, kernel, device, extent):
        self.kernel, self.device, self.extent = kernel, device, extent
        self.keys, self.values, self.numbers, self.outputs, self.others = {}, {}, {}, [], {}
        self.kept = []  # outputs whose old contents a derivative depends on, which the launch may not write everywhere


class Tape:
    """Records the launches of kernels by this thread in its block, to compute gradients through all of them.

        with ls.Tape() as tape:
            a = tape.number(0.1)
            heat[device, n](t0, t1, a)
            heat[device, n](t1, t2, a)
        by_t0, by_a = tape.gradient({t2: seed}, (t0, a))

    Arguments are lockstep.Array. Memory that a later launch of the block overwrites is copied first. Changes of the
    arrays by other code between the block and `gradient` are not detected. Elements that a launch does not write pass
    their derivatives on, also of arrays that the kernel only writes (Out).
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
            record.kept = []
            for n in record.outputs:
                key = record.keys[n]
                if n not in record.values and key in active:
                    if self._overwrites(record, n):
                        active.discard(key)
                    else:
                        record.kept.append(n)
                if names:
                    active.add(key)
        return flows

    def _derivatives(self, record):
        device = record.device or self._arrays[record.keys[record.outputs[0]]].device
        return Derivatives(record.kernel, device, record.extent, memory_bytes=self._memory_bytes)

    def _overwrites(self, record, name):
        return self._derivatives(record).overwrites(name, {n: self._arrays[key] for n, key in record.keys.items()})

    def _pass_on(self, record, cotangents):
        """{memory: cotangents of the elements that the launch did not write}, by two launches into known contents."""
        kept = {n: cotangents[record.keys[n]] for n in record.kept if record.keys[n] in cotangents}
        if not kept:
            return {}
        fills, of = [], [self._arrays.get(record.keys.get(n)) for n, _ in record.kernel._parameters]
        for number in (0, 1):
            fills.append([record.values[n].copy() if n in record.values and hint.access == "read_write" else
                          record.values[n] if n in record.values else _filled(a, number)
                          for (n, hint), a in zip(record.kernel._parameters, of)])
            record.kernel._launch(record.device, record.extent, fills[-1])
        names, found = [n for n, _ in record.kernel._parameters], {}
        for n, cotangent in kept.items():
            k, own = names.index(n), cotangent.copy()
            _keep._launch(own.device, [own.size], [_flat(own), _flat(fills[0][k]), _flat(fills[1][k])])
            found[record.keys[n]] = own
        return found

    def _back(self, record, names, cotangents, numbers):
        passed = self._pass_on(record, cotangents)
        self._through(record, names, cotangents, numbers)
        for key, cotangent in passed.items():
            self._add(cotangents, key, cotangent)

    @staticmethod
    def _add(cotangents, key, more):
        earlier = cotangents.setdefault(key, more)
        if earlier is not more:
            _add._launch(earlier.device, [earlier.size], [_flat(earlier), _flat(more)])

    def _through(self, record, names, cotangents, numbers):
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
        found = self._derivatives(record).reverse({**record.values, **scratch}, seeds, names)
        for n, gradient in found.items():
            if n in record.numbers:
                numbers[id(record.numbers[n])] += float(gradient.numpy()[0])
                continue
            self._add(cotangents, record.keys[n], gradient)
