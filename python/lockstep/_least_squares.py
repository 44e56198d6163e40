"""scipy.optimize.least_squares' arguments and results, on this package's problems."""
import numpy as np

from ._errors import InputError
from ._expr import Vec
from .solve import Problem, Summary, _traced


class Result(Summary):
    """x, cost, fun, jac, grad, optimality, active_mask, status, message, nfev, njev, success, and the Summary of the
    minimisation as `summary`."""


_STATUS = {"gradient_tolerance": 1, "function_tolerance": 2, "parameter_tolerance": 3, "max_iterations": 0, "stopped": -2,
           "time_limit": -2, "no_descent": 4, "failure": -1}
_METHODS = {"trf": "lm", "lm": "lm", "dogbox": "dogleg", "dogleg": "dogleg", "gn": "gn", "lbfgs": "lbfgs"}
# SciPy's losses of one residual, by f_scale: arctan is a^2 atan(s / a^2), which is "arctan" here with the scale a^2.
_SCIPY_LOSSES = {"linear": lambda a: "none", "huber": lambda a: f"huber:{a!r}", "soft_l1": lambda a: f"soft_l1:{a!r}",
                 "cauchy": lambda a: f"cauchy:{a!r}", "arctan": lambda a: f"arctan:{a * a!r}"}
_SOLVERS = {"exact": "dense-qr", "lsmr": "pcg"}
_LEAST_SQUARES = "lockstep.solve.least_squares"


def least_squares(fun, x0, args=(), *, kwargs=None, jac="exact", bounds=None, method="trf", ftol=1e-9, xtol=1e-12, gtol=1e-12,
                  x_scale="jac", loss="linear", f_scale=1.0, max_nfev=None, diff_step=None, tr_solver=None, tr_options=None,
                  jac_sparsity=None, verbose=0, traced=True, device=None, callback=None, **unknown):
    """Minimises 1/2 sum of rho(fun(p, *row)^2) over p, with the names and losses of SciPy.

    fun(p, *row, **kwargs) is traced once for all rows of `args`: p is a Vec of len(x0) expressions, `row` one row of
    each array of `args` (a number for (n,), a Vec for (n, k)). It returns one or several expressions of lockstep's
    functions (ls.exp, ls.where …). Without args, fun(p) returns all residuals. With traced=False, or a function as
    jac, fun(x, *args, **kwargs) is called with NumPy arrays, as by SciPy, and returns all residuals on the host.
    jac(x, *args, **kwargs) is its Jacobian, dense or sparse; without it, derivatives are extrapolated differences.

    bounds: (lower, upper) or scipy.optimize.Bounds. loss: linear, huber, soft_l1, cauchy or arctan, applied to each
    residual. method: trf and lm are Levenberg-Marquardt, dogbox is dogleg; also gn and lbfgs. jac: derivatives of
    traced functions are exact; "2-point", "3-point" and "cs" are equivalent. x_scale: "jac", 1, or positive scales of
    the unknowns. tr_solver: "exact" is QR, "lsmr" conjugate gradients. jac_sparsity is checked but not needed.
    max_nfev: maximum number of iterations. verbose: 0, 1 (a report at the end) or 2 (also one line per iteration).
    diff_step, tr_options and workers are not supported.

    Returns x, cost, fun (the residuals), jac (dense, times sqrt(rho')), grad, optimality, active_mask, status
    (SciPy's numbers; 4: no step reduces the cost), message, nfev, njev, success and summary.
    """
    start = np.atleast_1d(x0)
    if start.ndim != 1 or start.dtype.kind not in "biuf":
        raise InputError(f"x0 of {start.dtype} and shape {start.shape}", _LEAST_SQUARES, "real numbers along one axis")
    start = start.astype(np.float64)
    if max_nfev is not None and not max_nfev > 0:
        raise InputError(f"max_nfev {max_nfev}", _LEAST_SQUARES, "a number above 0")
    traced = bool(traced) and not callable(jac)
    _check_arguments(unknown, jac, loss, method, f_scale, verbose, diff_step, tr_solver, tr_options, traced)
    scale = _scale(x_scale, start)
    identity = scale is not None
    units = np.ones(len(start)) if scale is None else scale
    plain_units = bool((units == 1).all())
    problem = Problem()
    block = problem.add_blocks("x", (start / units).reshape(1, -1))
    lower, upper = _bounds(bounds, start)
    for k in range(len(start)):
        if np.isfinite(lower[k]) or np.isfinite(upper[k]):
            problem.bound(block, 0, k, lower[k] / units[k], upper[k] / units[k])
    robust = _SCIPY_LOSSES[loss](float(f_scale))
    if traced:
        def scaled(p, *row, **more):
            return fun(p if plain_units else Vec([p[k] * float(units[k]) for k in range(len(units))]), *row, **more)

        rows, outputs = _add_rows(problem, block, scaled, args, kwargs or {}, robust)
    else:
        rows, outputs = _add_host_rows(problem, block, fun, jac if callable(jac) else None, args, kwargs or {}, robust, start, units)
    if jac_sparsity is not None and tuple(np.shape(jac_sparsity)) != (rows * outputs, len(start)):
        raise InputError(f"jac_sparsity of shape {np.shape(jac_sparsity)}", _LEAST_SQUARES, f"({rows * outputs}, {len(start)})")

    def each(row):
        if verbose == 2:
            print(f"{row['iteration']:5} cost {row['cost']:.6e} change {row['cost_change']:.2e} step {row['step_norm']:.2e}")
        return callback(row) if callback is not None else None

    more = {"damping": "identity"} if identity and _METHODS[method] in ("lm", "dogleg") else {}
    if tr_solver is not None and _METHODS[method] != "lbfgs":
        more["linear"] = _SOLVERS[tr_solver]
    summary = problem.minimize(device=device, callback=each, method=_METHODS[method], function_tolerance=float(ftol or 0),
                               parameter_tolerance=float(xtol or 0), gradient_tolerance=float(gtol or 0), **more,
                               max_iterations=100 * (len(start) + 1) if max_nfev is None else int(max_nfev))
    status = _STATUS[summary.termination]
    message = summary.message or summary.termination.replace("_", " ")
    x = problem.values(block)[0] * units
    if not plain_units:  # a number at a bound is the bound, regardless of rounding by its unit
        x = np.where(np.isclose(x, lower, rtol=1e-15, atol=0), lower, np.where(np.isclose(x, upper, rtol=1e-15, atol=0), upper, x))
    plain = problem.evaluate(apply_loss=False, device=device)
    weighted = plain if loss == "linear" else problem.evaluate(device=device)
    order = np.arange(rows * outputs)
    if loss != "linear" and traced:
        order = order.reshape(outputs, rows).T.ravel()
    grad = weighted.gradient / units
    # Coleman and Li's scaling, as SciPy's: the distance to the bound that the negative gradient points to.
    room = np.where((grad < 0) & np.isfinite(upper), upper - x, np.where((grad > 0) & np.isfinite(lower), x - lower, 1.0))
    result = Result(x=x, cost=summary.final_cost, fun=plain.residuals[order], jac=_dense(weighted.jacobian, len(start))[order] / units,
                    grad=grad, optimality=float(np.max(np.abs(grad * room), initial=0.0)),
                    active_mask=np.where(x <= lower, -1, np.where(x >= upper, 1, 0)), status=status, message=message,
                    nfev=1 + len(summary.trace), njev=1 + sum(row["accepted"] for row in summary.trace), success=status > 0,
                    summary=summary)
    if verbose:
        print(f"{message}: {result.nfev} evaluations, cost {summary.initial_cost:.6e} to {result.cost:.6e}, "
              f"optimality {result.optimality:.2e}")
    return result


def _check_arguments(unknown, jac, loss, method, f_scale, verbose, diff_step, tr_solver, tr_options, traced):
    for name in unknown:
        raise InputError(f"argument {name}", _LEAST_SQUARES, "those of its documentation: derivatives are exact, and the linear "
                         "solver is an option of Problem.minimize")
    if not callable(jac) and jac not in ("exact", "2-point", "3-point", "cs"):
        raise InputError(f"jac {jac!r}", _LEAST_SQUARES, "exact, 2-point, 3-point, cs or a function")
    for what, value, known in (("loss", loss, _SCIPY_LOSSES), ("method", method, _METHODS), ("tr_solver", tr_solver, _SOLVERS)):
        if value is not None or what != "tr_solver":
            if not isinstance(value, str) or value not in known:
                raise InputError(f"{what} as a function" if callable(value) else f"{what} {value!r}", _LEAST_SQUARES, ", ".join(known))
    if tr_solver == "lsmr" and not traced:
        raise InputError("tr_solver 'lsmr' of a function that is not traced", _LEAST_SQUARES, "exact")
    if not (np.isfinite(f_scale) and f_scale > 0):
        raise InputError(f"f_scale {f_scale}", _LEAST_SQUARES, "a finite number above 0")
    if verbose not in (0, 1, 2):
        raise InputError(f"verbose {verbose!r}", _LEAST_SQUARES, "0, 1 or 2")
    if diff_step is not None:
        raise InputError("argument diff_step", _LEAST_SQUARES, "none: derivatives are exact, or differences that find their own step")
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
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    known = {}

    def values(u, function):
        key = (u.tobytes(), function is jac)
        if key not in known:
            if len(known) >= 4096:
                known.clear()
            found = function(u * units, *args, **kwargs)
            found = found.toarray() if hasattr(found, "toarray") else np.asarray(found, dtype=np.float64)
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
