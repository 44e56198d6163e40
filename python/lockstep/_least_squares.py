"""The arguments and results of scipy.optimize.least_squares, computed with this package's problems."""
import inspect
import warnings

import numpy as np

from ._array import real_numbers
from ._errors import FallbackWarning, InputError
from ._expr import Value, Vec
from ._terms import _loss_of, _traced
from .solve import Problem, Summary


class Result(Summary):
    """x, cost, fun, jac, grad, optimality, active_mask, status, message, nfev, njev, success, and the Summary of the
    minimisation as `summary`."""


_STATUS = {"gradient_tolerance": 1, "function_tolerance": 2, "parameter_tolerance": 3, "max_iterations": 0, "stopped": -2,
           "time_limit": -2, "no_descent": 4, "failure": -1}
# rho'(z) + 2 z rho''(z) of SciPy's losses.
_CURVATURES = {"linear": np.ones_like, "huber": lambda z: (z <= 1) * 1.0, "soft_l1": lambda z: (1 + z) ** -1.5,
               "cauchy": lambda z: (1 - z) / (1 + z) ** 2, "arctan": lambda z: (1 - 3 * z * z) / (1 + z * z) ** 2}
_METHODS = {"trf": "lm", "lm": "lm", "dogbox": "dogleg", "dogleg": "dogleg", "gn": "gn", "lbfgs": "lbfgs"}
# SciPy's losses of one residual, by f_scale: arctan is a^2 atan(s / a^2), which is "arctan" here with the scale a^2.
_SCIPY_LOSSES = {"linear": lambda a: "none", "huber": lambda a: f"huber:{a!r}", "soft_l1": lambda a: f"soft_l1:{a!r}",
                 "cauchy": lambda a: f"cauchy:{a!r}", "arctan": lambda a: f"arctan:{a * a!r}"}
_SOLVERS = {"exact": "dense-qr", "lsmr": "pcg"}
_LEAST_SQUARES = "lockstep.solve.least_squares"


def least_squares(fun, x0, jac="exact", bounds=None, method="trf", ftol=1e-9, xtol=1e-12, gtol=1e-12, x_scale="jac", loss="linear",
                  f_scale=1.0, diff_step=None, tr_solver=None, tr_options=None, jac_sparsity=None, max_nfev=None, verbose=0, args=(),
                  kwargs=None, callback=None, workers=None, *, traced=None, device=None, **unknown):
    """Minimises 1/2 sum of rho(fun(p, *row)^2) over p, with SciPy's names, order of arguments and losses.

    fun(p, *row, **kwargs) is traced once for all rows of `args`. p is a Vec of len(x0) expressions, and `row` is one row of
    each array of `args`: a number for (n,), a Vec for (n, k). fun returns one or several expressions of lockstep's functions
    (ls.exp, ls.where …). Without args, fun(p) returns all residuals.

    With traced=False, or a function as jac, fun(x, *args, **kwargs) is called with NumPy arrays as by SciPy, on the host, and
    returns all residuals. jac(x, *args, **kwargs) returns its Jacobian, dense or sparse; without it, derivatives are
    extrapolated differences. traced=None also does this, with a warning, for a function that cannot be traced, such as one
    of np.exp.

    bounds: (lower, upper) or scipy.optimize.Bounds. loss: linear, huber, soft_l1, cauchy, arctan, or a function rho(z) of
    lockstep's functions; each residual has its own. If rho returns the three values that SciPy requires, the first is used.
    method: trf and lm are Levenberg-Marquardt, dogbox is dogleg; gn and lbfgs are additional. jac: derivatives of traced
    functions are exact, and "2-point", "3-point" and "cs" select the same. x_scale: "jac", 1, or the units of the unknowns
    (above 0). tr_solver: "exact" is QR, "lsmr" conjugate gradients. jac_sparsity is checked but not needed. max_nfev: number
    of iterations. verbose: 0, 1 (a report at the end) or 2 (also a line per iteration). callback(row) receives a row of the
    trace, callback(intermediate_result) an object as from SciPy; False or StopIteration ends the minimisation. diff_step,
    tr_options and workers are not supported.

    Returns x, cost, fun (the residuals), jac (dense; rows times sqrt(rho' + 2 z rho''), as SciPy's, so that jac^T jac is the
    Gauss-Newton Hessian of the cost), grad, optimality, active_mask, status (SciPy's numbers; 4: no step reduces the cost),
    message, nfev, njev, success and summary.
    """
    start = np.atleast_1d(x0)
    if start.ndim != 1 or start.dtype.kind not in "biuf":
        raise InputError(f"x0 of {start.dtype} and shape {start.shape}", _LEAST_SQUARES, "real numbers along one axis")
    start = start.astype(np.float64)
    if max_nfev is not None and not max_nfev > 0:
        raise InputError(f"max_nfev {max_nfev}", _LEAST_SQUARES, "a number above 0")
    _check_arguments(unknown, jac, loss, method, f_scale, verbose, diff_step, tr_solver, tr_options, workers)
    scale = _scale(x_scale, start)
    identity = scale is not None
    units = np.ones(len(start)) if scale is None else scale
    plain_units = bool((units == 1).all())
    lower, upper = _bounds(bounds, start)
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    robust = _SCIPY_LOSSES[loss](float(f_scale)) if isinstance(loss, str) else _expression_loss(loss, float(f_scale))

    def posed(traced):
        """(problem, its block, rows, residuals of a row)"""
        if tr_solver == "lsmr" and not traced:
            raise InputError("tr_solver 'lsmr' of a function that is not traced", _LEAST_SQUARES, "exact")
        problem = Problem()
        block = problem.add_blocks("x", (start / units).reshape(1, -1))
        for k in range(len(start)):
            if np.isfinite(lower[k]) or np.isfinite(upper[k]):
                problem.bound(block, 0, k, lower[k] / units[k], upper[k] / units[k])
        if not traced:
            return problem, block, *_add_host_rows(problem, block, fun, jac if callable(jac) else None, args, kwargs or {}, robust, start, units)

        def scaled(p, *row, **more):
            return fun(p if plain_units else Vec([p[k] * float(units[k]) for k in range(len(units))]), *row, **more)

        return problem, block, *_add_rows(problem, block, scaled, args, kwargs or {}, robust)

    traced, (problem, block, rows, outputs) = _posed(posed, False if callable(jac) else traced)
    if jac_sparsity is not None and tuple(np.shape(jac_sparsity)) != (rows * outputs, len(start)):
        raise InputError(f"jac_sparsity of shape {np.shape(jac_sparsity)}", _LEAST_SQUARES, f"({rows * outputs}, {len(start)})")

    def point():
        x = problem.values(block)[0] * units
        if plain_units:
            return x
        # A number at a bound is the bound, regardless of rounding by its unit.
        return np.where(np.isclose(x, lower, rtol=1e-15, atol=0), lower, np.where(np.isclose(x, upper, rtol=1e-15, atol=0), upper, x))

    def residuals(evaluation):
        return evaluation.residuals[order]

    order = np.arange(rows * outputs)
    if loss != "linear" and traced:
        order = order.reshape(outputs, rows).T.ravel()
    scipys = callback is not None and "intermediate_result" in inspect.signature(callback).parameters

    def each(row):
        if verbose == 2:
            print(f"{row['iteration']:5} cost {row['cost']:.6e} change {row['cost_change']:.2e} step {row['step_norm']:.2e}")
        if callback is None:
            return None
        try:
            if not scipys:
                return callback(row)
            plain = problem.evaluate(apply_loss=False, device=device)
            # SciPy's callbacks end a minimisation by True.
            return not callback(intermediate_result=Result(x=point(), fun=residuals(plain), cost=row["cost"], nit=row["iteration"],
                                                           nfev=1 + row["iteration"]))
        except StopIteration:
            return False

    more = {"damping": "identity"} if identity and _METHODS[method] in ("lm", "dogleg") else {}
    if tr_solver is not None and _METHODS[method] != "lbfgs":
        more["linear"] = _SOLVERS[tr_solver]
    summary = problem.minimize(device=device, callback=each, method=_METHODS[method], function_tolerance=float(ftol or 0),
                               parameter_tolerance=float(xtol or 0), gradient_tolerance=float(gtol or 0), **more,
                               update_values=scipys, max_iterations=100 * (len(start) + 1) if max_nfev is None else int(max_nfev))
    status = _STATUS[summary.termination]
    message = summary.message or summary.termination.replace("_", " ")
    x = point()
    plain = problem.evaluate(apply_loss=False, device=device)
    weighted = plain if loss == "linear" else problem.evaluate(device=device)
    grad = weighted.gradient / units
    # Coleman and Li's scaling, as SciPy's: the distance to the bound that the negative gradient points to.
    room = np.where((grad < 0) & np.isfinite(upper), upper - x, np.where((grad > 0) & np.isfinite(lower), x - lower, 1.0))
    z = (residuals(plain) / f_scale) ** 2
    curvature = _CURVATURES[loss](z) if isinstance(loss, str) else _curvature(loss, z, device)
    rows_scale = np.sqrt(np.maximum(curvature, np.finfo(float).eps))
    result = Result(x=x, cost=summary.final_cost, fun=residuals(plain),
                    jac=rows_scale[:, None] * _dense(plain.jacobian, len(start))[order] / units,
                    grad=grad, optimality=float(np.max(np.abs(grad * room), initial=0.0)),
                    active_mask=np.where(x <= lower, -1, np.where(x >= upper, 1, 0)), status=status, message=message,
                    nfev=1 + len(summary.trace), njev=1 + sum(row["accepted"] for row in summary.trace), success=status > 0,
                    summary=summary)
    if verbose:
        print(f"{message}: {result.nfev} evaluations, cost {summary.initial_cost:.6e} to {result.cost:.6e}, "
              f"optimality {result.optimality:.2e}")
    return result


def _posed(posed, traced):
    """(whether fun is traced, what `posed` made). NumPy's functions and a Vec that is used as an array raise when they are traced."""
    if traced is not None:
        return bool(traced), posed(bool(traced))
    try:
        return True, posed(True)
    except InputError as error:
        if "traced value" in error.what:
            raise InputError(error.what, error.where, f"{error.expected}; traced=False calls fun with arrays") from None
        raise
    except (TypeError, AttributeError, ValueError) as error:
        try:
            made = posed(False)
        except InputError:
            raise
        except Exception:
            raise error from None
        warnings.warn(f"fun cannot be traced ({error}); it is called on the host and derived by differences [{_LEAST_SQUARES}]: "
                      "lockstep's functions are compiled and derived exactly, traced=False needs no warning", FallbackWarning, stacklevel=3)
        return False, made


def _expression_loss(loss, scale):
    """a^2 rho(s / a^2), as Problem takes it."""
    def rho(s):
        try:
            found = loss(s / (scale * scale))
            found = found if isinstance(found, Value) else found[0]
            return found * (scale * scale)
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"loss as a function that cannot be traced ({error})", _LEAST_SQUARES,
                             "rho(z) as an expression of lockstep's functions, or a sequence that begins with it") from None
    return rho


def _curvature(loss, z, device):
    """rho'(z) + 2 z rho''(z) of a loss by expression: exact slopes, and their differences over 1e-5 of z."""
    step, rho = 1e-5, _expression_loss(loss, 1.0)
    problem = Problem()
    blocks = problem.add_blocks("z", np.concatenate([z, z * (1 + step), z * (1 - step)]).reshape(-1, 1))
    problem.add_terms("rho", lambda s: rho(s[0]), (blocks,), np.arange(3 * len(z)).reshape(-1, 1), energy=True)
    slope, above, below = problem.evaluate(device=device).gradient.reshape(3, -1)
    return slope + (above - below) / step


def _check_arguments(unknown, jac, loss, method, f_scale, verbose, diff_step, tr_solver, tr_options, workers):
    for name in unknown:
        raise InputError(f"argument {name}", _LEAST_SQUARES, "those of its documentation: other options are those of Problem.minimize")
    if not callable(jac) and (not isinstance(jac, str) or jac not in ("exact", "2-point", "3-point", "cs")):
        raise InputError(f"jac {jac!r}", _LEAST_SQUARES, "exact, 2-point, 3-point, cs or a function; rows of data are args=(…)")
    for what, value, known in (("loss", loss, _SCIPY_LOSSES), ("method", method, _METHODS), ("tr_solver", tr_solver, _SOLVERS)):
        if (value is None and what == "tr_solver") or (callable(value) and what == "loss"):
            continue
        if not isinstance(value, str) or value not in known:
            raise InputError(f"{what} {value!r}", _LEAST_SQUARES, ", ".join(known) + (" or a function" if what == "loss" else ""))
    if not (np.isfinite(f_scale) and f_scale > 0):
        raise InputError(f"f_scale {f_scale}", _LEAST_SQUARES, "a finite number above 0")
    if verbose not in (0, 1, 2):
        raise InputError(f"verbose {verbose!r}", _LEAST_SQUARES, "0, 1 or 2")
    if diff_step is not None:
        raise InputError("argument diff_step", _LEAST_SQUARES, "none: derivatives are exact, or differences that find their own step")
    if workers is not None:
        raise InputError("argument workers", _LEAST_SQUARES, "none: a device has its threads, as Device(…, threads=N)")
    if tr_options:
        raise InputError("argument tr_options", _LEAST_SQUARES, "none: tolerances of the linear solver are options of Problem.minimize")


def _scale(x_scale, start):
    """The units of the unknowns, by which steps are damped alike; None: by the Jacobian."""
    if x_scale is None or (isinstance(x_scale, str) and x_scale == "jac"):
        return None
    try:
        scale = np.broadcast_to(np.asarray(x_scale, dtype=np.float64), start.shape)
    except (TypeError, ValueError):
        scale = np.zeros(1)
    if not (np.isfinite(scale) & (scale > 0)).all():
        raise InputError(f"x_scale {x_scale!r}", _LEAST_SQUARES, f'"jac", or a number above 0, or {len(start)} of them')
    return scale


def _add_host_rows(problem, block, fun, jac, args, kwargs, loss, start, units):
    """A term of a NumPy function: one instance, or under a loss one for each residual, which share the function's values."""
    known = {}

    def values(u, function):
        key = (u.tobytes(), function is jac)
        if key not in known:
            if len(known) >= 4096:
                known.clear()
            found = function(u * units, *args, **kwargs)
            found = real_numbers(found.toarray() if hasattr(found, "toarray") else found,
                                 f"{_LEAST_SQUARES}, {'jac' if function is jac else 'fun'}", np.float64)
            known[key] = np.atleast_2d(found) * units if function is jac else np.ravel(found)
        return known[key]

    count = len(values(start / units, fun))
    if jac is not None and values(start / units, jac).shape != (count, len(start)):
        raise InputError(f"jac of shape {values(start / units, jac).shape}", _LEAST_SQUARES, f"({count}, {len(start)})")
    if loss == "none":
        problem.add_host_terms("fun", lambda u: values(u, fun), (block,), [[0]], residuals=count,
                               jacobian=None if jac is None else lambda u: values(u, jac))
    else:
        problem.add_host_terms("fun", lambda u, k: values(u, fun)[int(k[0])], (block,), np.zeros((count, 1), np.int32),
                               np.arange(count, dtype=np.float64), loss=loss,
                               jacobian=None if jac is None else lambda u, k: values(u, jac)[int(k[0])])
    return count, 1


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
    columns = [real_numbers(a, f"{_LEAST_SQUARES}, args[{k}]", np.float64) for k, a in enumerate(args)]
    rows = next((len(c) for c in columns if c.ndim), 1)
    columns = [np.full(rows, c) if c.ndim == 0 else c for c in columns]  # a number is that of every row
    for k, column in enumerate(columns):
        if len(column) != rows:
            raise InputError(f"args[{k}] of shape {column.shape}", _LEAST_SQUARES, f"{rows} rows, as the others")
    data = np.ascontiguousarray(np.concatenate([c.reshape(rows, -1) for c in columns], axis=1)) if columns else np.zeros((1, 0))
    whole = _traced(lambda *given: fun(*given, **kwargs), [c.shape[1:] for c in columns])
    count = 1

    def one(number):
        def residual(blocks, data):
            nonlocal count
            found = whole(blocks, data)
            count = len(found)
            return found if number is None else found[number:number + 1]

        problem._core.add_terms("fun", [block.size], data.shape[1], residual, _loss_of(loss), False, [problem._own(block)],
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
