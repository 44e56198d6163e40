"""Nonlinear least squares: residuals written as Python functions, traced, batched and differentiated by the engine.

    problem = solve.Problem()
    points = problem.add_blocks("points", positions)                      # (n, 3)
    problem.add_terms("spring", lambda p, q, d: ls.norm(p - q) - d[0], (points, points), edges, lengths)
    summary = problem.minimize()
    problem.values(points)

The cost is the sum over all instances of 1/2 rho(|r|^2), r the instance's residuals, rho the term's robust loss.
"""
import numpy as np

from . import _core
from ._device import chosen, warn_fallbacks
from ._errors import InputError
from ._expr import Value, Vec, where  # noqa: F401


class BlockSet:
    """Blocks that were added together."""

    __slots__ = ("_id", "name", "size")

    def __init__(self, number, name, size):
        self._id, self.name, self.size = number, name, size


def _numbers(values, name, columns=None):
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim == 1:
        array = array.reshape(-1, 1 if columns is None else columns)
    if array.ndim != 2 or (columns is not None and array.shape[1] != columns):
        raise InputError(f"shape {np.shape(values)}", name, f"(n, {'columns' if columns is None else columns})")
    return array


def _traced(function, owner, shapes):
    """`function(*blocks, data)` for the core: blocks and data as Vec."""

    def call(blocks, data):
        arguments = [Vec(Value(v, owner) for v in block) for block in blocks]
        numbers = [Value(v, owner) for v in data]
        if shapes is None:
            found = function(*arguments, Vec(numbers)) if numbers else function(*arguments)
        else:
            rows, at = [], 0
            for shape in shapes:
                count = int(np.prod(shape, dtype=int))
                rows.append(numbers[at] if shape == () else Vec(numbers[at:at + count]))
                at += count
            found = function(*arguments, *rows)
        if isinstance(found, Value):
            found = (found,)
        try:
            outputs = list(found)
        except TypeError:
            raise InputError(f"a residual that gives {type(found).__name__}", "lockstep.solve",
                             "an expression, or a sequence of them") from None
        return [r._v if isinstance(r, Value) else float(r) for r in outputs]

    return call


class Problem:
    """Blocks of unknowns and residuals between them, in f64."""

    def __init__(self, *, _core_problem=None):
        self._core = _core_problem or _core.Problem()

    def add_blocks(self, name, values, manifold="euclidean"):
        """Blocks of unknowns, values (count, size); manifold: euclidean, so2, so3, se2, se3 or sphere2."""
        array = _numbers(values, f"blocks {name}")
        return BlockSet(self._core.add_blocks(name, manifold, array), name, array.shape[1])

    def add_terms(self, name, residual, blocks, indices, data=None, *, loss="none", energy=False):
        """One instance per row of `indices` (n, len(blocks)), block numbers within each set; data (n, k).

        residual(*blocks, data) gets one Vec for each block and, where there is data, a Vec of it; it gives an expression
        or several. It is traced once: conditions are lockstep.where. loss: "none", "huber:S", "cauchy:S", "tukey:S" …
        energy: the one output is added to the cost as it is.
        """
        blocks = tuple(blocks)
        table = np.ascontiguousarray(indices, dtype=np.int32)
        if table.ndim == 1:
            table = table.reshape(-1, len(blocks))
        if table.ndim != 2 or table.shape[1] != len(blocks):
            raise InputError(f"indices of shape {table.shape}", f"terms {name}", f"(n, {len(blocks)})")
        numbers = np.zeros((len(table), 0)) if data is None else _numbers(data, f"terms {name}, data")
        if len(numbers) != len(table):
            raise InputError(f"{len(numbers)} rows of data", f"terms {name}", f"{len(table)}, one for each instance")
        self._core.add_terms(name, [b.size for b in blocks], numbers.shape[1], _traced(residual, self._core, None), loss,
                             energy, [b._id for b in blocks], table, numbers)

    def fix(self, blocks, block, fixed=True):
        """Holds a block."""
        self._core.fix(blocks._id, int(block), fixed)

    def bound(self, blocks, block, component, lower=-np.inf, upper=np.inf):
        """Bounds of a component of a Euclidean block."""
        self._core.bound(blocks._id, int(block), int(component), float(lower), float(upper))

    def values(self, blocks):
        """A copy of the blocks' values, (count, size)."""
        return self._core.values(blocks._id)

    def set_values(self, blocks, values):
        self._core.set_values(blocks._id, _numbers(values, f"blocks {blocks.name}", blocks.size))

    @property
    def residual_count(self):
        return self._core.residual_count

    @property
    def variable_count(self):
        """Tangent coordinates of blocks that are not fixed."""
        return self._core.variable_count

    def minimize(self, *, device=None, callback=None, **options):
        """Minimises from the problem's values and leaves the best point there; gives a Summary.

        callback(row) is called after each iteration; False stops. Options: method (lm, gn, dogleg, lbfgs …), linear,
        precision, max_iterations, function_tolerance, gradient_tolerance, parameter_tolerance, initial_damping …
        """
        device = chosen(device)
        summary = Summary(self._core.minimize(device._core, {**options, "callback": callback}))
        warn_fallbacks(device)
        return summary

    def evaluate(self, *, device=None):
        """cost, gradient, residuals and jacobian at the problem's values, by the tangent coordinates of all blocks in the
        order in which they were added (those of fixed blocks stay 0). Residuals stand batch after batch and are corrected by
        robust losses. jacobian: scipy.sparse.csr_array, or (data, indices, indptr) where SciPy is not installed."""
        found = Summary(self._core.evaluate(chosen(device)._core))
        parts = (found.pop("data"), found.pop("indices"), found.pop("indptr"))
        shape = (len(found.residuals), found.pop("columns"))
        try:
            from scipy import sparse
        except ImportError:
            found["jacobian"] = parts
        else:
            found["jacobian"] = getattr(sparse, "csr_array", sparse.csr_matrix)(parts, shape=shape)
        return found

    def covariance(self, blocks, *, device=None):
        """(J^T J)^-1 of the tangent coordinates of [(block set, number), …] at the problem's values."""
        return self._core.covariance(chosen(device)._core, [(s._id, int(k)) for s, k in blocks])


class Summary(dict):
    """What a minimisation did: initial_cost, final_cost, iterations, termination, converged, message, trace …"""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self):
        return list(self)


class Result(Summary):
    """x, cost, status, message, nfev, success, and the Summary of the minimisation as `summary`."""


_STATUS = {"gradient_tolerance": 1, "function_tolerance": 2, "parameter_tolerance": 3, "max_iterations": 0, "stopped": -2,
           "no_descent": 4, "failure": -1}
_SCIPY_LOSSES = {"linear": "none", "huber": "huber", "cauchy": "cauchy", "arctan": "arctan"}


def least_squares(fun, x0, args=(), *, bounds=None, method="trf", ftol=1e-9, xtol=1e-12, gtol=1e-12, loss="linear",
                  f_scale=1.0, max_nfev=None, device=None, callback=None):
    """Minimises 1/2 sum of fun(p, *row)^2 over p, with SciPy's names.

    fun(p, *row) is traced once for all rows of `args`: p is a Vec of len(x0) expressions, `row` one row of each array of
    `args` (a number for (n,), a Vec for (n, k)); it gives an expression or several, of lockstep's functions (ls.exp, ls.where
    …). Without args, fun(p) gives all residuals. bounds: (lower, upper). loss: linear, huber, cauchy or arctan.
    Gives x, cost, status (SciPy's numbers; 4: no step lowers the cost), message, nfev, success and summary.
    """
    start = np.atleast_1d(np.asarray(x0, dtype=np.float64))
    if start.ndim != 1:
        raise InputError(f"x0 of shape {start.shape}", "lockstep.solve.least_squares", "one axis")
    columns = [np.asarray(a, dtype=np.float64) for a in args]
    rows = len(columns[0]) if columns else 1
    for k, column in enumerate(columns):
        if column.ndim == 0 or len(column) != rows:
            raise InputError(f"args[{k}] of shape {column.shape}", "lockstep.solve.least_squares", f"{rows} rows, as args[0]")
    if loss not in _SCIPY_LOSSES:
        raise InputError(f"loss {loss!r}", "lockstep.solve.least_squares", ", ".join(_SCIPY_LOSSES))
    problem = Problem()
    block = problem.add_blocks("x", start.reshape(1, -1))
    if bounds is not None:
        lower, upper = (np.broadcast_to(np.asarray(b, float), start.shape) for b in bounds)
        for k in range(len(start)):
            if np.isfinite(lower[k]) or np.isfinite(upper[k]):
                problem.bound(block, 0, k, lower[k], upper[k])
    data = np.concatenate([c.reshape(rows, -1) for c in columns], axis=1) if columns else np.zeros((1, 0))
    robust = _SCIPY_LOSSES[loss]
    problem._core.add_terms("fun", [len(start)], data.shape[1],
                            _traced(fun, problem._core, [c.shape[1:] for c in columns]),
                            robust if robust == "none" else f"{robust}:{f_scale}", False, [block._id],
                            np.zeros((rows, 1), np.int32), np.ascontiguousarray(data))
    names = {"trf": "lm", "lm": "lm", "dogbox": "dogleg", "dogleg": "dogleg", "gn": "gn", "lbfgs": "lbfgs"}
    if method not in names:
        raise InputError(f"method {method!r}", "lockstep.solve.least_squares", ", ".join(names))
    summary = problem.minimize(device=device, callback=callback, method=names[method], function_tolerance=float(ftol),
                               parameter_tolerance=float(xtol), gradient_tolerance=float(gtol),
                               max_iterations=int(max_nfev or 100 * (len(start) + 1)))
    status = _STATUS[summary.termination.replace(" ", "_")]
    return Result(x=problem.values(block)[0], cost=summary.final_cost, status=status, message=summary.message,
                  nfev=1 + len(summary.trace), success=status > 0, summary=summary)


def read_g2o(file, *, loss="none"):
    """A pose graph: (problem, poses, landmarks); `landmarks` is None where there are none. Cost 1/2 sum e^T Omega e."""
    core, poses, landmarks = _core.read_g2o(str(file), loss)
    problem = Problem(_core_problem=core)
    return problem, _set(problem, poses, "poses"), _set(problem, landmarks, "landmarks")


def read_bal(file, *, loss="none"):
    """Bundle adjustment: (problem, cameras (n, 9), points (m, 3))."""
    core, cameras, points = _core.read_bal(str(file), loss)
    problem = Problem(_core_problem=core)
    return problem, _set(problem, cameras, "cameras"), _set(problem, points, "points")


def read_mesh(file):
    """(vertices (n, 3), triangles (m, 3)) of an OBJ, PLY or STL file."""
    return _core.read_mesh(str(file))


read_obj = read_mesh


def _set(problem, number, name):
    return None if number < 0 else BlockSet(number, name, problem._core.values(number).shape[1])
