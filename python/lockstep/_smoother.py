"""Incremental smoothing: lockstep.solve.Smoother."""
import numpy as np

from . import _core
from ._device import chosen, warn_fallbacks
from ._errors import InputError, text, whole
from ._terms import BlockSet, TermSet, _block_sets, _flat, _instances, _list_of, _loss_of, _number_of, _numbers, _one, _traced
from .solve import Problem, Summary

_WHERE = "lockstep.solve.Smoother"
_SIZES = {"so2": 1, "so3": 4, "se2": 3, "se3": 7, "sphere2": 3}


class TermKind:
    """A residual over sets of blocks, of one Smoother."""

    __slots__ = ("_id", "_owner", "name", "blocks", "data")

    def __init__(self, number, name, blocks, data, owner=None):
        self._id, self._owner, self.name, self.blocks, self.data = number, owner, name, blocks, data


class Smoother:
    """A growing problem whose minimiser is kept up to date. An update relinearises blocks that moved and eliminates only the
    affected part of the square-root factor (Kaess et al. 2012). A call that raises leaves the smoother unchanged.

    lag: age at which blocks are removed; a prior keeps the information of their terms. relinearize: a block is relinearised if
    a coordinate of its step exceeds this number times the unit of its set. propagate: smaller changes of steps, in the same
    units, are not propagated to further blocks.
    """

    def __init__(self, *, lag=np.inf, relinearize=0.05, propagate=1e-5, device=None):
        self._device = chosen(device)
        self._core = _core.Smoother(self._device._core, float(lag), float(relinearize), float(propagate))
        self._sets = []

    def _own(self, handle):
        return _number_of(handle, self._core, _WHERE, "smoother")

    def add_set(self, name, manifold="euclidean", *, size=None, unit=1.0):
        """Adds an empty set of blocks. manifold: euclidean (of `size` numbers), so2, so3, se2, se3 or sphere2. unit: unit of a
        coordinate, for the thresholds."""
        text(name, "a name of blocks", f"{_WHERE}.add_set", "a string")
        text(manifold, "a manifold", f"{_WHERE}.add_set", "euclidean, so2, so3, se2, se3 or sphere2")
        width = _SIZES.get(manifold, size)
        if width is None or (size is not None and size != width):
            raise InputError(f"size {size} of {manifold}", f"{_WHERE}.add_set",
                             "the numbers of a block" if manifold not in _SIZES else str(width))
        width = whole(width, "size", f"{_WHERE}.add_set", 1)
        number = self._core.add_set(name, manifold, width, float(unit))
        self._sets.append(BlockSet(number, name, width, self._core))
        return self._sets[-1]

    def append_blocks(self, blocks, values, time=None):
        """Appends blocks with initial values (n, size) to a set and returns the number of the first. Times must not decrease;
        None is the latest time so far."""
        array = _numbers(np.atleast_2d(values), f"blocks {blocks.name}", blocks.size)
        return self._core.append_blocks(self._own(blocks), array, float("nan") if time is None else float(time))

    def touch(self, blocks, block, time):
        """Assigns a later time to a block, so that it is removed later."""
        self._core.touch(self._own(blocks), _one(block), float(time))

    def fix(self, blocks, block):
        """Fixes a block that no update has processed yet."""
        self._core.fix(self._own(blocks), _one(block))

    def fix_coordinates(self, blocks, block, coordinates):
        """Fixes these tangent coordinates of a block at its estimate and frees the others."""
        self._core.fix_coordinates(self._own(blocks), _one(block), [_one(c, "coordinate") for c in coordinates])

    def bound(self, blocks, block, component, lower=-np.inf, upper=np.inf):
        """Bounds of a number, as in Problem.bound. If a block is at a bound when it is removed, the prior keeps it there."""
        self._core.bound(self._own(blocks), _one(block), _one(component, "component"), float(lower), float(upper))

    def add_kind(self, name, residual, blocks, data=0, *, loss="none"):
        """A residual for add_terms(): residual and loss as in Problem.add_terms, `data` numbers per instance."""
        blocks = _block_sets(name, blocks)
        number = self._core.add_kind(name, [b.size for b in blocks], _one(data, "data"), _traced(residual, None),
                                     _loss_of(loss), [self._own(b) for b in blocks])
        return TermKind(number, name, blocks, _one(data, "data"), self._core)

    def add_host_kind(self, name, residual, blocks, data=0, *, residuals=1, jacobian=None, loss="none"):
        """The same for a function of numbers, as in Problem.add_host_terms."""
        blocks = _block_sets(name, blocks)
        number = self._core.add_host_kind(name, [b.size for b in blocks], _one(data, "data"), _one(residuals, "residuals"),
                                          _flat(residual, f"residual of {name}"), _flat(jacobian, f"jacobian of {name}"), _loss_of(loss), [self._own(b) for b in blocks])
        return TermKind(number, name, blocks, _one(data, "data"), self._core)

    def add_terms(self, kind, indices, data=None):
        """Adds one instance per row of `indices` (n, blocks of the kind); data (n, k). Returns a TermSet."""
        own = self._own(kind)
        if data is not None and np.ndim(data) == 1:
            data = np.reshape(data, (-1, max(kind.data, 1)))
        _, table, numbers = _instances(kind.name, kind.blocks, indices, data)
        return TermSet(self._core.add_terms(own, table, numbers), kind.name, kind.data, self._core)

    def erase(self, terms):
        """Removes the instances; information already in the prior remains."""
        self._core.erase(self._own(terms))

    def weigh(self, terms, weights):
        """Sets weights of instances: each contributes weight times 1/2 rho(|r|^2). One non-negative number, or one per
        instance. Instances in the prior keep their weight."""
        self._core.weigh(self._own(terms), _list_of(weights, "weights"))

    def update(self):
        """Processes the changes since the last update. Returns the numbers of relinearised and eliminated blocks, of cliques,
        and of removed blocks. Raises InputError for blocks that the terms do not determine."""
        found = Summary(self._core.update())
        warn_fallbacks(self._device)
        return found

    def solve(self, max_iterations=100):
        """Processes the changes and iterates until steps reach rounding level. Returns the number of iterations."""
        found = self._core.solve(whole(max_iterations, "max_iterations", f"{_WHERE}.solve", 1))
        warn_fallbacks(self._device)
        return found

    def value(self, blocks, block):
        """The estimate of a block."""
        return self._core.value(self._own(blocks), _one(block))

    def values(self, blocks):
        """The estimates of the blocks of a set by number, (count, size)."""
        return self._core.values(self._own(blocks), blocks.size)

    def block_numbers(self, blocks):
        """The numbers of the blocks of a set in the order of `values`."""
        return np.asarray(self._core.block_numbers(self._own(blocks)), dtype=np.int64)

    def instance_count(self):
        """The number of instances, including priors of removed blocks."""
        return self._core.instance_count()

    def cost(self):
        """The cost at the estimates."""
        return self._core.cost()

    def covariance(self, blocks):
        """The joint covariance of the tangent coordinates of [(block set, number), …], as of the last update."""
        return self._core.covariance([(self._own(s), _one(k)) for s, k in blocks])

    def problem(self):
        """(problem, [its block sets]): the problem as a Problem, with blocks by number."""
        problem = Problem(_core_problem=self._core.problem())
        return problem, [problem._known(s._id, s.name, s.size) for s in self._sets]
