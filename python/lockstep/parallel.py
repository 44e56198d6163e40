"""Ranks: processes that work on one problem, with bit-identical results for any number of them.

    ranks = parallel.world()                           # the processes of mpirun or srun, else one rank
    loss = pde.Loss(system, mesh, ranks=ranks)         # each rank has its planes of the fields

lockstep.torch.ranks() returns the ranks of torch.distributed. Collective calls (barrier, sum, losses over ranks) must
be made by every rank, in the same order. If a rank has ended or does not respond for `wait_limit` seconds, an error
names it. docs/cluster.md is the guide.
"""
import atexit
import contextlib
import sys

from . import _core
from ._array import asarray, empty
from ._device import Device
from ._errors import Error, InputError, UnsupportedError, text, whole
from ._numpy import np


class Ranks:
    """This process as one of several ranks; created by world() and lockstep.torch.ranks(). close(), or leaving
    `with`, ends it.
    """

    def __init__(self, core, messages=None):
        self._core, self._messages, self._open = core, messages, True
        _all.add(self)

    def __reduce__(self):
        raise UnsupportedError("a copy of ranks", "lockstep.parallel.Ranks", "world() or lockstep.torch.ranks() in each process")

    def __deepcopy__(self, memo):
        return self

    @property
    def _group(self):
        if not self._open:
            raise InputError("a group that has ended", self._core.transport, "one that is in use")
        return self._core

    @contextlib.contextmanager
    def _in_agreement(self):
        """Around what each rank checks by itself before a call in which all agree: an error reaches the others too."""
        try:
            yield
        except Exception as error:
            with contextlib.suppress(Error):
                self._core.fail(str(error))
            raise

    @property
    def rank(self):
        """The number of this rank, from 0."""
        return self._core.rank

    @property
    def size(self):
        """The number of ranks."""
        return self._core.size

    @property
    def transport(self):
        """The transport of messages: "one process", "MPI (…)" or "torch.distributed"."""
        return self._core.transport

    def share(self, parts):
        """The range of parts of this rank: `parts` are distributed evenly, in order."""
        parts = whole(parts, "parts", "lockstep.parallel.Ranks.share", 1)
        return range(parts * self.rank // self.size, parts * (self.rank + 1) // self.size)

    def barrier(self):
        """Waits until every rank has called it."""
        self._group.barrier()

    def sum(self, array, parts=None):
        """The sum over all ranks, a lockstep.Array of f32 or f64 on the device of `array`. With `parts`, the first
        axis contains the parts of share(parts), which are added along a tree over their numbers: the bits depend on
        `parts` only. Without it every rank is one part.
        """
        where = "lockstep.parallel.Ranks.sum"
        group = self._group
        with self._in_agreement():
            array = asarray(np.float64(array) if isinstance(array, (int, float)) else array)
            mine = 1 if parts is None else len(self.share(parts))
            shape = array.shape if parts is None else array.shape[1:] or (1,)
            if array.dtype.name not in ("f32", "f64") or not array._buffer.contiguous:
                raise InputError(f"{array.dtype.name} of shape {array.shape}", where, "a contiguous array of f32 or f64")
            if parts is not None and array.shape[0] != mine:
                raise InputError(f"{array.shape[0]} parts", where, f"the {mine} of rank {self.rank}, share({parts})")
            total = empty(shape, array.dtype, array.device)
        group.expect_same("types, shapes or parts of sums", f"{array.dtype.name} {shape} {parts}")
        group.sum(array.device._core, parts or self.size, array._buffer if mine else None, total._buffer)
        return total

    def device(self, name="auto", *, share=False):
        """The device of this rank: several ranks on one host use different CUDA devices (auto, cuda). Every rank
        calls it. More ranks than devices is an error unless `share` is set.
        """
        text(name, "a device", "lockstep.parallel.Ranks.device", "auto, cpu, cuda[:N], webgpu[:N] or interp")
        return Device(self._group.device(name, bool(share)))

    def close(self):
        """Ends the group after its messages have been sent; later collective calls are errors."""
        if not self._open:
            return
        self._open = False
        if self._messages is not None:
            self._messages.close()
        self._core.end()
        _all.discard(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"<rank {self.rank} of {self.size}, {self.transport}>"


_all = set()  # not closed yet: what they have sent may not have left
_world = None


def _wait_limit(seconds):
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < float("inf"):
        raise InputError(f"wait_limit={seconds!r}", "lockstep.parallel", "a number of seconds above 0")
    return float(seconds)


def world(*, wait_limit=600.0):
    """The ranks of mpirun or srun, through Open MPI, which is loaded by the first call; one rank if no launcher
    started the process. All calls of a process return the same object; the first call sets `wait_limit`. An uncaught
    error of one rank ends the others, which would otherwise wait for it.
    """
    global _world
    if _world is None:
        _world = Ranks(_core.launched_group(_wait_limit(wait_limit)))
        if _world.size > 1:
            _end_others_with(sys.excepthook)
    return _world


def _end_others_with(hook):
    def report(kind, error, trace):
        hook(kind, error, trace)
        sys.stderr.flush()
        if not getattr(error, "on_every_rank", False):
            _core.abort_launch(1)

    sys.excepthook = report


@atexit.register
def _close_all():
    for ranks in list(_all):
        ranks.close()
