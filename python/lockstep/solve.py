"""Nonlinear least squares: residuals written as Python functions, traced, batched and differentiated by the engine.

    problem = solve.Problem()
    points = problem.add_blocks("points", positions)                      # (n, 3)
    problem.add_terms("spring", lambda p, q, d: ls.norm(p - q) - d[0], (points, points), edges, lengths)
    summary = problem.minimize()
    problem.values(points)

The cost is the sum over all instances of 1/2 rho(|r|^2), r the instance's residuals, rho the term's robust loss.
"""
import os

import numpy as np

from . import _core
from ._device import chosen, warn_fallbacks
from ._errors import InputError, text
from ._expr import Value, Vec, where  # noqa: F401
from ._options import described


class BlockSet:
    """Blocks that were added together, of one Problem."""

    __slots__ = ("_id", "_owner", "name", "size")

    def __init__(self, number, name, size, owner=None):
        self._id, self._owner, self.name, self.size = number, owner, name, size


class TermSet:
    """Instances that were added together, by their number in the order of adding, of one Problem."""

    __slots__ = ("_id", "_owner", "name", "data")

    def __init__(self, number, name, data, owner=None):
        self._id, self._owner, self.name, self.data = number, owner, name, data


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
        self._sets = {}  # by number

    def _own(self, handle):
        """The number of a handle, which must be of this problem."""
        if handle._owner is not self._core:
            kind, source = ("blocks", "add_blocks") if isinstance(handle, BlockSet) else ("terms", "add_terms")
            raise InputError(f"{kind} {handle.name!r} of another problem", "lockstep.solve.Problem",
                             f"{kind} that this problem's {source} gave")
        return handle._id

    def add_blocks(self, name, values, manifold="euclidean"):
        """Blocks of unknowns, values (count, size); manifold: euclidean, so2, so3, se2, se3 or sphere2."""
        text(name, "a name of blocks", "lockstep.solve.Problem.add_blocks", "a string")
        text(manifold, "a manifold", "lockstep.solve.Problem.add_blocks", "euclidean, so2, so3, se2, se3 or sphere2")
        array = _numbers(values, f"blocks {name}")
        return self._known(self._core.add_blocks(name, manifold, array), name, array.shape[1])

    def _known(self, number, name, size):
        self._sets[number] = BlockSet(number, name, size, self._core)
        return self._sets[number]

    def add_terms(self, name, residual, blocks, indices, data=None, *, loss="none", energy=False):
        """One instance per row of `indices` (n, len(blocks)), block numbers within each set; data (n, k).

        residual(*blocks, data) gets one Vec for each block and, where there is data, a Vec of it; it gives an expression
        or several. It is traced once: conditions are lockstep.where. loss: "none", "huber:S", "cauchy:S", "tukey:S",
        "geman_mcclure:S", "arctan:S", "soft_l1:S", "tolerant:A,B", or a function rho(s) of s = |r|^2 with rho(0) = 0 and
        rho'(0) = 1. energy: the one output is added to the cost as it is. Gives a TermSet.
        """
        blocks, table, numbers = self._instances(name, blocks, indices, data)
        number = self._core.add_terms(name, [b.size for b in blocks], numbers.shape[1], _traced(residual, self._core, None),
                                      self._loss(loss), energy, [self._own(b) for b in blocks], table, numbers)
        return TermSet(number, name, numbers.shape[1], self._core)

    def add_host_terms(self, name, residual, blocks, indices, data=None, *, residuals=1, jacobian=None, loss="none"):
        """The same of a function of numbers, such as a simulator: residual(*blocks, data) gets an array for each block and,
        where there is data, one of it; it gives `residuals` numbers. It is called for one instance at a time.

        jacobian(*blocks, data): (residuals, numbers of all blocks); compared with differences when terms are added. Without
        it, derivatives are differences. Solvers by conjugate gradients refuse these terms. Gives a TermSet.
        """
        blocks, table, numbers = self._instances(name, blocks, indices, data)

        def flat(function):
            return None if function is None else lambda *a: np.ascontiguousarray(function(*a), dtype=np.float64).reshape(-1)

        number = self._core.add_host_terms(name, [b.size for b in blocks], numbers.shape[1], int(residuals), flat(residual),
                                           flat(jacobian), self._loss(loss), [self._own(b) for b in blocks], table, numbers)
        return TermSet(number, name, numbers.shape[1], self._core)

    def _instances(self, name, blocks, indices, data):
        blocks = tuple(blocks)
        table = np.ascontiguousarray(indices, dtype=np.int32)
        if table.ndim == 1:
            table = table.reshape(-1, len(blocks))
        if table.ndim != 2 or table.shape[1] != len(blocks):
            raise InputError(f"indices of shape {table.shape}", f"terms {name}", f"(n, {len(blocks)})")
        numbers = np.zeros((len(table), 0)) if data is None else _numbers(data, f"terms {name}, data")
        if len(numbers) != len(table):
            raise InputError(f"{len(numbers)} rows of data", f"terms {name}", f"{len(table)}, one for each instance")
        return blocks, table, numbers

    def _loss(self, loss):
        return (lambda s: loss(Value(s, self._core))._v) if callable(loss) else loss

    # A problem may change between minimisations; expressions that were seen before compile nothing.

    def append_blocks(self, blocks, values):
        """More blocks at the end of a set; gives the number of the first."""
        return self._core.append_blocks(self._own(blocks), _numbers(values, f"blocks {blocks.name}", blocks.size))

    def set_data(self, terms, data, first=0):
        """Data (n, k) of the instances from `first` on."""
        self._core.set_data(self._own(terms), _numbers(data, f"terms {terms.name}, data", terms.data), int(first))

    def enable(self, terms, instances=None, enabled=True):
        """Instances (all, or those of the numbers) count or do not; their places stay."""
        if instances is None:
            self._core.enable_all(self._own(terms), enabled)
        else:
            self._core.enable(self._own(terms), [int(i) for i in np.atleast_1d(instances)], enabled)

    def enabled(self, terms, instance):
        """Whether an instance counts."""
        return self._core.enabled(self._own(terms), int(instance))

    def weigh(self, terms, weights):
        """Each instance counts weight times 1/2 rho(|r|^2): one number of 0 or more, or one by instance."""
        self._core.weigh(self._own(terms), [float(w) for w in np.atleast_1d(weights)])

    def remove(self, terms):
        """Takes instances out for good."""
        self._core.remove(self._own(terms))

    def erase(self, handle, blocks=None):
        """Terms of a TermSet, whose handle ends; or blocks of a BlockSet, by their numbers, that no term has. Other blocks
        keep their numbers."""
        if isinstance(handle, TermSet):
            self._core.erase_terms(self._own(handle))
        else:
            self._core.erase_blocks(self._own(handle), [int(b) for b in np.atleast_1d([] if blocks is None else blocks)])

    def block_numbers(self, blocks):
        """The numbers of a set's blocks in the order of `values`: 0, 1, … where none was erased."""
        return np.asarray(self._core.block_numbers(self._own(blocks)), dtype=np.int64)

    def marginalize(self, blocks, *, name="prior", first_estimates=(), device=None):
        """Takes blocks [(block set, number), …] out; what their terms said of the others stays as a prior,
        1/2 |root (x - values) + offset|^2 in tangent coordinates. Terms are linearised where the problem stands, or at
        first_estimates [(block set, number, values), …]. Gives blocks (as given, those that stay), values, root, offset,
        constant (cost that no block takes away), free_directions and undetermined (directions of the blocks that left
        which no term held)."""
        device = chosen(device)
        found = Summary(self._core.marginalize(
            device._core, [(self._own(s), int(k)) for s, k in blocks], name,
            [(self._own(s), int(k), [float(v) for v in np.ravel(values)]) for s, k, values in first_estimates]))
        warn_fallbacks(device)
        found["blocks"] = [(self._sets[s], k) for s, k in found["blocks"]]
        found["terms"] = TermSet(found["terms"], name, 0, self._core)
        return found

    def report(self, *, named=5, device=None):
        """What the problem at its values tells of itself, as `lockstep solve doctor`: pieces that no residual connects, gauges
        and other directions that change no residual with the blocks that carry them, badly scaled columns of the Jacobian,
        instances without effect, duplicates. `well` says that there is none of it; lists have the first `named`."""
        device = chosen(device)
        found = Summary(self._core.report(device._core, int(named)))
        warn_fallbacks(device)
        return found

    def instance_count(self, terms):
        """Disabled ones too."""
        return self._core.instance_count(self._own(terms))

    def fix(self, blocks, block, fixed=True):
        """Holds a block."""
        self._core.fix(self._own(blocks), int(block), fixed)

    def fix_coordinates(self, blocks, block, coordinates):
        """Holds tangent coordinates of a block; those given before are free again."""
        self._core.fix_coordinates(self._own(blocks), int(block), [int(c) for c in coordinates])

    def column(self, blocks, block):
        """The column of the first coordinate of a block that moves, in gradients and Jacobians; -1 where none does."""
        return self._core.first_column(self._own(blocks), int(block))

    def bound(self, blocks, block, component, lower=-np.inf, upper=np.inf):
        """Bounds of a component of a Euclidean block."""
        self._core.bound(self._own(blocks), int(block), int(component), float(lower), float(upper))

    def values(self, blocks):
        """A copy of the blocks' values, (count, size)."""
        return self._core.values(self._own(blocks))

    def set_values(self, blocks, values):
        self._core.set_values(self._own(blocks), _numbers(values, f"blocks {blocks.name}", blocks.size))

    @property
    def residual_count(self):
        return self._core.residual_count

    @property
    def variable_count(self):
        """Tangent coordinates of blocks that are not fixed."""
        return self._core.variable_count

    @described("solve.minimize")
    def minimize(self, *, device=None, callback=None, **options):
        """Minimises from the problem's values and leaves the best point there; gives a Summary. callback(row) is called after
        each iteration; False stops."""
        device = chosen(device)
        summary = Summary(self._core.minimize(device._core, _given(options, callback=callback)))
        warn_fallbacks(device)
        return summary

    def evaluate(self, *, apply_loss=True, normal=False, device=None):
        """cost, gradient, residuals and jacobian at the problem's values. Rows: the residuals in the order of adding.
        Columns: the tangent coordinates that move, set after set (`column` tells where a block begins). apply_loss:
        residuals and Jacobian times sqrt(rho'), so that J^T r is the gradient; else plain ones. normal: J^T J too.
        jacobian: scipy.sparse.csr_array, or (data, indices, indptr) where SciPy is not installed."""
        device = chosen(device)
        found = Summary(self._core.evaluate(device._core, bool(apply_loss), bool(normal)))
        warn_fallbacks(device)
        for name in ("jacobian", "normal"):
            if name in found:
                found[name] = _sparse(found[name])
        return found

    def instances(self, *, device=None):
        """Every instance at the problem's values, in the order of adding: rows of terms, name, instance, enabled, norm (|r|
        without loss), weight (what the loss leaves of it) and scale, for finding outliers."""
        return self._core.instances(chosen(device)._core)

    def covariance(self, blocks, *, free_gauge=False, device=None):
        """(J^T J)^-1 of the tangent coordinates of [(block set, number), …] at the problem's values, in the order given.
        free_gauge: where the whole may move freely, the inverse within what may not (up to 3,000 unknowns)."""
        return self._core.covariance(chosen(device)._core, [(self._own(s), int(k)) for s, k in blocks], free_gauge)

    def marginals(self, blocks, *, free_gauge=False, device=None):
        """The covariance of each block of a set, (count, t, t); zeros for those that are held."""
        return self._core.marginals(chosen(device)._core, self._own(blocks), free_gauge)


def _sparse(parts):
    try:
        from scipy import sparse
    except ImportError:
        return parts["data"], parts["indices"], parts["indptr"]
    return getattr(sparse, "csr_array", sparse.csr_matrix)((parts["data"], parts["indices"], parts["indptr"]),
                                                           shape=parts["shape"])


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
    """x, cost, fun, jac, grad, optimality, active_mask, status, message, nfev, njev, success, and the Summary of the
    minimisation as `summary`."""


_STATUS = {"gradient_tolerance": 1, "function_tolerance": 2, "parameter_tolerance": 3, "max_iterations": 0, "stopped": -2,
           "time_limit": -2, "no_descent": 4, "failure": -1}
_METHODS = {"trf": "lm", "lm": "lm", "dogbox": "dogleg", "dogleg": "dogleg", "gn": "gn", "lbfgs": "lbfgs"}
# SciPy's losses of one residual, by f_scale: arctan is a^2 atan(s / a^2), which is "arctan" here with the scale a^2.
_SCIPY_LOSSES = {"linear": lambda a: "none", "huber": lambda a: f"huber:{a!r}", "soft_l1": lambda a: f"soft_l1:{a!r}",
                 "cauchy": lambda a: f"cauchy:{a!r}", "arctan": lambda a: f"arctan:{a * a!r}"}
_LEAST_SQUARES = "lockstep.solve.least_squares"


def least_squares(fun, x0, args=(), *, kwargs=None, jac="exact", bounds=None, method="trf", ftol=1e-9, xtol=1e-12, gtol=1e-12,
                  x_scale="jac", loss="linear", f_scale=1.0, max_nfev=None, verbose=0, device=None, callback=None, **unknown):
    """Minimises 1/2 sum of rho(fun(p, *row)^2) over p, with SciPy's names and losses.

    fun(p, *row, **kwargs) is traced once for all rows of `args`: p is a Vec of len(x0) expressions, `row` one row of each
    array of `args` (a number for (n,), a Vec for (n, k)); it gives an expression or several, of lockstep's functions (ls.exp,
    ls.where …). Without args, fun(p) gives all residuals. bounds: (lower, upper) or scipy.optimize.Bounds. loss: linear,
    huber, soft_l1, cauchy or arctan, of each residual by itself. method: trf and lm are Levenberg-Marquardt, dogbox is dogleg;
    also gn and lbfgs. jac: derivatives are always exact; "2-point", "3-point" and "cs" mean the same. x_scale: "jac", or 1 for
    damping by the identity. max_nfev: iterations. verbose: 0, 1 (a report at the end) or 2 (a line an iteration too).

    Gives x, cost, fun (the residuals), jac (dense, times sqrt(rho')), grad, optimality, active_mask, status (SciPy's numbers;
    4: no step lowers the cost), message, nfev, njev, success and summary.
    """
    for name in unknown:
        raise InputError(f"argument {name}", _LEAST_SQUARES, "those of its documentation: derivatives are exact, and the linear "
                         "solver is an option of Problem.minimize")
    start = np.atleast_1d(np.asarray(x0, dtype=np.float64))
    if start.ndim != 1:
        raise InputError(f"x0 of shape {start.shape}", _LEAST_SQUARES, "one axis")
    if jac not in ("exact", "2-point", "3-point", "cs"):
        raise InputError("jac as a function" if callable(jac) else f"jac {jac!r}", _LEAST_SQUARES,
                         "none: fun is traced and differentiated exactly")
    if not (isinstance(x_scale, str) and x_scale == "jac") and not (np.ndim(x_scale) == 0 and x_scale in (None, 1)):
        raise InputError(f"x_scale {x_scale!r}", _LEAST_SQUARES, '"jac", which scales by the Jacobian, or 1')
    for what, value, known in (("loss", loss, _SCIPY_LOSSES), ("method", method, _METHODS)):
        if not isinstance(value, str) or value not in known:
            raise InputError(f"{what} as a function" if callable(value) else f"{what} {value!r}", _LEAST_SQUARES, ", ".join(known))
    if not (np.isfinite(f_scale) and f_scale > 0):
        raise InputError(f"f_scale {f_scale}", _LEAST_SQUARES, "a finite number above 0")
    if verbose not in (0, 1, 2):
        raise InputError(f"verbose {verbose!r}", _LEAST_SQUARES, "0, 1 or 2")
    problem = Problem()
    block = problem.add_blocks("x", start.reshape(1, -1))
    lower, upper = _bounds(bounds, start)
    for k in range(len(start)):
        if np.isfinite(lower[k]) or np.isfinite(upper[k]):
            problem.bound(block, 0, k, lower[k], upper[k])
    rows, outputs = _add_rows(problem, block, fun, args, kwargs or {}, _SCIPY_LOSSES[loss](float(f_scale)))

    def each(row):
        if verbose == 2:
            print(f"{row['iteration']:5} cost {row['cost']:.6e} change {row['cost_change']:.2e} step {row['step_norm']:.2e}")
        return callback(row) if callback is not None else None

    damping = {"damping": "identity"} if x_scale == 1 and _METHODS[method] in ("lm", "dogleg") else {}
    summary = problem.minimize(device=device, callback=each, method=_METHODS[method], function_tolerance=float(ftol or 0),
                               parameter_tolerance=float(xtol or 0), gradient_tolerance=float(gtol or 0), **damping,
                               max_iterations=int(max_nfev or 100 * (len(start) + 1)))
    status = _STATUS[summary.termination]
    message = summary.message or summary.termination.replace("_", " ")
    x = problem.values(block)[0]
    plain = problem.evaluate(apply_loss=False, device=device)
    scaled = plain if loss == "linear" else problem.evaluate(device=device)
    order = np.arange(rows * outputs).reshape(outputs, rows).T.ravel() if loss != "linear" else np.arange(rows * outputs)
    grad = scaled.gradient
    # Coleman and Li's scaling, as SciPy's: the distance to the bound that the negative gradient points to.
    room = np.where((grad < 0) & np.isfinite(upper), upper - x, np.where((grad > 0) & np.isfinite(lower), x - lower, 1.0))
    result = Result(x=x, cost=summary.final_cost, fun=plain.residuals[order], jac=_dense(scaled.jacobian, len(start))[order],
                    grad=grad, optimality=float(np.max(np.abs(grad * room), initial=0.0)),
                    active_mask=np.where(x <= lower, -1, np.where(x >= upper, 1, 0)), status=status, message=message,
                    nfev=1 + len(summary.trace), njev=1 + sum(row["accepted"] for row in summary.trace), success=status > 0,
                    summary=summary)
    if verbose:
        print(f"{message}: {result.nfev} evaluations, cost {summary.initial_cost:.6e} to {result.cost:.6e}, "
              f"optimality {result.optimality:.2e}")
    return result


def _bounds(bounds, start):
    """Lower and upper bounds by unknown."""
    if bounds is None:
        bounds = (-np.inf, np.inf)
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        bounds = (bounds.lb, bounds.ub)
    try:
        lower, upper = (np.broadcast_to(np.asarray(b, float), start.shape) for b in bounds)
    except (TypeError, ValueError):
        raise InputError(f"bounds {bounds!r}", _LEAST_SQUARES, f"(lower, upper), numbers or {len(start)} of them each") from None
    return lower, upper


def _add_rows(problem, block, fun, args, kwargs, loss):
    """Terms of fun, a row of args each; gives (rows, residuals of a row). A loss is of one residual by itself, so each
    residual of a row is a term of its own, set after set."""
    columns = [np.asarray(a, dtype=np.float64) for a in args]
    rows = len(columns[0]) if columns and columns[0].ndim else 1
    for k, column in enumerate(columns):
        if column.ndim == 0 or len(column) != rows:
            raise InputError(f"args[{k}] of shape {column.shape}", _LEAST_SQUARES, f"{rows} rows, as args[0]")
    data = np.ascontiguousarray(np.concatenate([c.reshape(rows, -1) for c in columns], axis=1)) if columns else np.zeros((1, 0))
    whole = _traced(lambda *given: fun(*given, **kwargs), problem._core, [c.shape[1:] for c in columns])
    count = 1

    def one(number):
        def residual(blocks, data):
            nonlocal count
            found = whole(blocks, data)
            count = len(found)
            return found if number is None else found[number:number + 1]

        problem._core.add_terms("fun", [block.size], data.shape[1], residual, loss, False, [problem._own(block)],
                                np.zeros((rows, 1), np.int32), data)

    one(None if loss == "none" else 0)
    for number in range(1, count if loss != "none" else 1):
        one(number)
    return rows, count


def _dense(matrix, columns):
    """A matrix that _sparse gave, as an array."""
    if hasattr(matrix, "toarray"):
        return matrix.toarray()
    data, indices, first = matrix
    out = np.zeros((len(first) - 1, columns))
    out[np.repeat(np.arange(len(first) - 1), np.diff(first)), indices] = data
    return out


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


def read_colmap(folder, *, loss="none"):
    """Bundle adjustment of a model in COLMAP's text format: (problem, poses (n, 7), points (m, 3), [intrinsics of each
    camera])."""
    core, poses, points, cameras = _core.read_colmap(str(folder), loss)
    problem = Problem(_core_problem=core)
    return (problem, _set(problem, poses, "poses"), _set(problem, points, "points"),
            [_set(problem, c, f"camera {k}") for k, c in enumerate(cameras)])


def read_tum(file):
    """A trajectory of the TUM RGB-D benchmark: (seconds (n,), poses (n, 7): translation, quaternion w x y z)."""
    return _core.read_tum(str(file))


def write_tum(file, seconds, poses):
    """Writes a trajectory; shapes as of read_tum."""
    _core.write_tum(str(file), [float(s) for s in seconds], _numbers(poses, "poses", 7))


def _given(options, **more):
    """Options as the core takes them. A backend chosen by the number of residuals is "auto"; "automatic" means the same."""
    return {k: "auto" if (k, v) == ("backend", "automatic") else v for k, v in {**options, **more}.items() if v is not None}


def _command(name, device, options, **more):
    device = chosen(device)
    found = Summary(getattr(_core, "solve_" + name)(device._core, _given(options, **more)))
    warn_fallbacks(device)
    return found


@described("solve.fit")
def fit(file, *, model, y, device=None, callback=None, **options):
    """A curve through the rows of a CSV, as `lockstep solve fit`: model is a text over columns and parameters. initial is
    {name: start}, bounds {name: (lower, upper)}, or their texts."""
    return _command("fit", device, options, file=file, model=model, y=y, callback=callback)


@described("solve.posegraph")
def posegraph(file, *, device=None, callback=None, **options):
    """A g2o file from start to minimum, as `lockstep solve g2o`."""
    return _command("posegraph", device, options, file=file, callback=callback)


@described("solve.bundle")
def bundle(file=None, *, device=None, callback=None, **options):
    """A BAL file, or a synthetic scene of so many cameras and observations, as `lockstep solve bal`."""
    return _command("bundle", device, options, file=file, callback=callback)


@described("solve.doctor")
def doctor(file, *, device=None, **options):
    """What a g2o or BAL file's problem tells of itself, as `lockstep solve doctor`."""
    return _command("doctor", device, options, file=file)


@described("solve.sketch")
def sketch(file, *, device=None, callback=None, **options):
    """A sketch of constraints (TOML), as `lockstep solve sketch`."""
    return _command("sketch", device, options, file=file, callback=callback)


def mesh_energies():
    """Names of the energies of `mesh`; docs/mesh.md has their formulas."""
    return _core.mesh_energies()


@described("solve.mesh")
def mesh(shape, *, energy, handles=None, device=None, callback=None, **options):
    """An energy of a triangle mesh minimised, as `lockstep solve mesh`; gives what the program tells with "positions" (n, 3)
    and "triangles" (m, 3) of the mesh found: with parameterize the flat one, (u, v, 0).

    shape: an .obj, .ply or .stl file, (vertices (n, 3), triangles (m, 3)), or a text such as "icosphere:4", "grid:20x30",
    "bar:6x36". fix: vertices that stay, by their numbers or as a text ("boundary", "z<=0"). handles: {vertex: (x, y, z)},
    or a text.
    """
    if isinstance(handles, dict):
        handles = ";".join(f"{int(v)}=" + ",".join(repr(float(x)) for x in to) for v, to in handles.items())
    if isinstance(shape, (str, os.PathLike)):
        source = {"mesh": os.fspath(shape)}
    else:
        source = dict(zip(("vertices", "triangles"), _mesh_arrays(*shape)))
    device = chosen(device)
    told, positions, triangles = _core.solve_mesh(
        device._core, _given(options, energy=energy, handles=handles or None, callback=callback, **source))
    warn_fallbacks(device)
    return Summary(told, positions=positions, triangles=triangles)


def _mesh_arrays(vertices, triangles):
    vertices, faces = _numbers(vertices, "mesh, vertices", 3), np.asarray(triangles)
    if faces.ndim != 2 or faces.shape[1] != 3 or faces.dtype.kind not in "iu":
        raise InputError(f"triangles {faces.dtype} of shape {faces.shape}", "lockstep.solve.mesh", "whole numbers (m, 3)")
    return vertices, faces.astype(np.int64, copy=False)


def read_mesh(file):
    """(vertices (n, 3), triangles (m, 3)) of an OBJ, PLY or STL file."""
    return _core.read_mesh(str(file))


read_obj = read_mesh


def _set(problem, number, name):
    return None if number < 0 else problem._known(number, name, problem._core.values(number).shape[1])
