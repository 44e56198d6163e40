"""Nonlinear least squares: residuals are Python functions that the engine traces, batches and differentiates.

    problem = solve.Problem()
    points = problem.add_blocks("points", positions)                      # (n, 3)
    problem.add_terms("spring", lambda p, q, d: ls.norm(p - q) - d[0], (points, points), edges, lengths)
    summary = problem.minimize()
    problem.values(points)

The cost is the sum over all instances of 1/2 rho(|r|^2), with the residuals r of an instance and the robust loss rho of its
term.
"""
import os
import re

import numpy as np

from . import _core
from ._array import real_numbers
from ._device import chosen, warn_fallbacks
from ._errors import InputError, text, whole
from ._expr import Value, Vec, where  # noqa: F401
from ._options import described
from ._terms import BlockSet, TermSet, _block_sets, _entries, _flat, _instances, _list_of, _loss_of, _number_of, _numbers, _one, _traced


class Problem:
    """Blocks of unknowns and residuals between them, in f64."""

    def __init__(self, *, _core_problem=None):
        self._core = _core_problem or _core.Problem()
        self._sets = {}  # by number

    def _own(self, handle):
        """The number of a handle, which must be of this problem."""
        return _number_of(handle, self._core, "lockstep.solve.Problem", "problem")

    def add_blocks(self, name, values, manifold="euclidean"):
        """Adds blocks of unknowns, values (count, size). manifold: euclidean, so2, so3, se2, se3, sphere2, or a product such
        as "sphere2 x euclidean:1"."""
        text(name, "a name of blocks", "lockstep.solve.Problem.add_blocks", "a string")
        text(manifold, "a manifold", "lockstep.solve.Problem.add_blocks", "euclidean, so2, so3, se2, se3 or sphere2")
        array = _numbers(values, f"blocks {name}")
        return self._known(self._core.add_blocks(name, manifold, array), name, array.shape[1])

    def _known(self, number, name, size):
        self._sets[number] = BlockSet(number, name, size, self._core)
        return self._sets[number]

    def add_terms(self, name, residual, blocks, indices, data=None, *, jacobian=None, loss="none", energy=False):
        """Adds one instance per row of `indices` (n, len(blocks)), block numbers within each set; data (n, k).

        residual(*blocks, data) receives one Vec per block and, if there is data, a Vec of it; it returns one or several
        expressions. It is traced once: write conditions with lockstep.where. loss: "none", "huber:S", "cauchy:S", "tukey:S",
        "geman_mcclure:S", "arctan:S", "soft_l1:S", "tolerant:A,B", or a function rho(s) of s = |r|^2 with rho(0) = 0 and
        rho'(0) = 1. energy: the single output is added to the cost unchanged. jacobian(*blocks, data): rows of the
        derivatives by the numbers of all blocks, used instead of automatic ones and checked by differences. Returns a TermSet.
        """
        blocks, table, numbers = _instances(name, blocks, indices, data)
        number = self._core.add_terms(name, [b.size for b in blocks], numbers.shape[1], _traced(residual, None),
                                      _loss_of(loss), energy, [self._own(b) for b in blocks], table, numbers,
                                      None if jacobian is None else _traced(lambda *a: _entries(jacobian(*a)), None))
        return TermSet(number, name, numbers.shape[1], self._core)

    def add_host_terms(self, name, residual, blocks, indices, data=None, *, residuals=1, jacobian=None, loss="none"):
        """The same for a function of numbers, such as a simulator: residual(*blocks, data) receives an array per block and, if
        there is data, one of it; it returns `residuals` numbers. It is called for one instance at a time.

        jacobian(*blocks, data): (residuals, numbers of all blocks), compared with differences when terms are added. Without
        it, derivatives are differences. Returns a TermSet.
        """
        blocks, table, numbers = _instances(name, blocks, indices, data)

        number = self._core.add_host_terms(name, [b.size for b in blocks], numbers.shape[1], _one(residuals, "residuals"),
                                           _flat(residual, f"residual of {name}"), _flat(jacobian, f"jacobian of {name}"), _loss_of(loss), [self._own(b) for b in blocks], table, numbers)
        return TermSet(number, name, numbers.shape[1], self._core)

    def add_factors(self, name, blocks, indices, measured=None, *, standard_deviations=None, covariance=None, information=None,
                    loss="none"):
        """Adds instances of a ready-made residual, such as "se3_between_log"; `factors()` lists all, docs/solve.md describes
        their slots.

        measured (n, k): one row per instance, in the order of the factor. Errors are given once for all instances, or for
        each: standard_deviations (e,) or (n, e), covariance or information (e, e) or (n, e, e), with rotations in radians.
        Returns a TermSet.
        """
        kind = _core.factor(text(name, "a factor", "lockstep.solve.Problem.add_factors", "its name, such as se3_between_log"))
        blocks, table, _ = _instances(name, blocks, indices, None)
        rows = np.zeros((len(table), 0)) if measured is None else _numbers(measured, f"factors {name}, measured", kind["measured"])
        if len(rows) != len(table):
            raise InputError(f"{len(rows)} measurements", f"factors {name}", f"{len(table)}, one for each instance")
        data = _core.factor_rows(name, rows, *_weights(name, kind["errors"], len(table), standard_deviations=standard_deviations,
                                                       covariance=covariance, information=information))
        number = self._core.add_factors(name, [self._own(b) for b in blocks], table, data, loss)
        return TermSet(number, name, data.shape[1], self._core)

    # A problem may change between minimisations; expressions that were seen before compile nothing.

    def append_blocks(self, blocks, values):
        """Appends blocks with values (n, size) to a set and returns the number of the first."""
        return self._core.append_blocks(self._own(blocks), _numbers(values, f"blocks {blocks.name}", blocks.size))

    def set_data(self, terms, data, first=0):
        """Replaces the data (n, k) of the instances from `first` on."""
        self._core.set_data(self._own(terms), _numbers(data, f"terms {terms.name}, data", terms.data), _one(first, "first instance"))

    def enable(self, terms, instances=None, enabled=True):
        """Enables or disables instances (all, or those with the given numbers); their numbers do not change."""
        if instances is None:
            self._core.enable_all(self._own(terms), enabled)
        else:
            self._core.enable(self._own(terms), [_one(i, "instance") for i in np.atleast_1d(instances)], enabled)

    def enabled(self, terms, instance):
        """True if the instance is enabled."""
        return self._core.enabled(self._own(terms), _one(instance, "instance"))

    def weigh(self, terms, weights):
        """Sets weights of instances: each contributes weight times 1/2 rho(|r|^2). One non-negative number, or one per
        instance."""
        self._core.weigh(self._own(terms), _list_of(weights, "weights"))

    def remove(self, terms):
        """Removes instances permanently."""
        self._core.remove(self._own(terms))

    def erase(self, handle, blocks=None):
        """Removes the terms of a TermSet and the set itself, or blocks of a BlockSet, by number, that no term uses. Other
        blocks keep their numbers."""
        if isinstance(handle, TermSet):
            self._core.erase_terms(self._own(handle))
        else:
            self._core.erase_blocks(self._own(handle), [_one(b) for b in np.atleast_1d([] if blocks is None else blocks)])

    def block_numbers(self, blocks):
        """The numbers of the blocks of a set in the order of `values`: 0, 1, … if none was erased."""
        return np.asarray(self._core.block_numbers(self._own(blocks)), dtype=np.int64)

    def marginalize(self, blocks, *, name="prior", first_estimates=(), device=None):
        """Removes blocks [(block set, number), …] and keeps the information of their terms about other blocks as a prior, 1/2
        |root (x - values) + offset|^2 in tangent coordinates. Terms are linearised at the current values, or at
        first_estimates [(block set, number, values), …]. Returns blocks (the remaining ones of the prior), values, root,
        offset, constant (cost that no block can reduce), free_directions, and undetermined (directions of the removed blocks
        that no term determined)."""
        device = chosen(device)
        found = Summary(self._core.marginalize(
            device._core, [(self._own(s), _one(k)) for s, k in blocks], name,
            [(self._own(s), _one(k), [float(v) for v in np.ravel(values)]) for s, k, values in first_estimates]))
        warn_fallbacks(device)
        found["blocks"] = [(self._sets[s], k) for s, k in found["blocks"]]
        found["terms"] = TermSet(found["terms"], name, 0, self._core)
        return found

    def report(self, *, named=5, device=None):
        """Diagnoses the problem at its values, as `lockstep solve doctor`: disconnected parts, gauges and other directions
        that change no residual, with their blocks, badly scaled columns of the Jacobian, instances without effect, and
        duplicates; `well` is true if there are none. Also outliers, influential instances and instances of high leverage.
        Lists contain the first `named`."""
        device = chosen(device)
        found = Summary(self._core.report(device._core, int(named)))
        warn_fallbacks(device)
        return found

    def influence(self, *, device=None):
        """The influence of each enabled instance on the estimate, in the order of adding, for the problem linearised at the
        values: terms (names), instance, leverage (0 to 1), studentized (residual in units of its standard deviation according
        to the other instances) and cook (Cook's distance) as arrays; and rank, rows, step_gain (share of the cost that a full
        step removes, 0 at a minimum)."""
        device = chosen(device)
        found = Summary(self._core.influence(device._core))
        warn_fallbacks(device)
        return found

    def block_sets(self):
        """The sets of blocks in the order of adding: rows of blocks (the handle), name, manifold, numbers and coordinates (of a
        block), and count."""
        return [Summary(row, blocks=self._sets.get(row["blocks"]) or self._known(row["blocks"], row["name"], row["numbers"]))
                for row in _core.block_sets(self._core)]

    def term_sets(self):
        """The sets of terms in the order of adding: rows of terms (the handle), name, instances, enabled (how many), residuals and
        data (of an instance), loss, energy, host and weighted."""
        return [Summary(row, terms=TermSet(row["terms"], row["name"], row["data"], self._core)) for row in _core.term_sets(self._core)]

    def instance(self, terms, number):
        """An instance: blocks [(slot, block set, number)] and data {datum: value} that its residuals use, weight, enabled."""
        found = Summary(_core.instance_content(self._core, self._own(terms), _one(number, "instance")))
        handles = {row.blocks._id: row.blocks for row in self.block_sets()}
        found["blocks"] = [(slot, handles[blocks], block) for slot, blocks, block in found["blocks"]]
        return found

    def instances_of(self, blocks, block):
        """The instances that depend on a block: [(TermSet, instance)]."""
        handles = {row.terms._id: row.terms for row in self.term_sets()}
        return [(handles[terms], instance) for terms, instance in _core.instances_of(self._core, self._own(blocks), _one(block))]

    def block(self, blocks, block):
        """Constraints of a block: fixed, held (its fixed tangent coordinates), and the bounds lower and upper of each number."""
        return Summary(_core.block_content(self._core, self._own(blocks), _one(block)))

    def instance_count(self, terms):
        """The number of instances, including disabled ones."""
        return self._core.instance_count(self._own(terms))

    def fix(self, blocks, block, fixed=True):
        """Fixes a block at its value, or frees it with fixed=False."""
        self._core.fix(self._own(blocks), _one(block), fixed)

    def fix_coordinates(self, blocks, block, coordinates):
        """Fixes these tangent coordinates of a block and frees the others."""
        self._core.fix_coordinates(self._own(blocks), _one(block), [_one(c, "coordinate") for c in coordinates])

    def column(self, blocks, block):
        """The column of the first free coordinate of a block in gradients and Jacobians; -1 if there is none."""
        return self._core.first_column(self._own(blocks), _one(block))

    def bound(self, blocks, block, component, lower=-np.inf, upper=np.inf):
        """Sets the bounds of a number that is moved by a single tangent coordinate: a Euclidean number, or an angle in
        [-pi, pi). Infinite: no bound."""
        self._core.bound(self._own(blocks), _one(block), _one(component, "component"), float(lower), float(upper))

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
        """The number of tangent coordinates of blocks that are not fixed."""
        return self._core.variable_count

    @described("solve.minimize")
    def minimize(self, *, device=None, callback=None, prepare=None, **options):
        """Minimises from the current values and stores the best point; returns a Summary. callback(row) is called after each
        iteration; returning False stops. prepare(derivatives) is called before host terms are evaluated at another point, and
        again before their derivatives are; during the call, `values` returns that point. Groups of `order` and
        `inner_groups` are names, block sets, (block set, numbers), or lists of these."""
        device = chosen(device)
        for name in ("order", "inner_groups"):
            if isinstance(options.get(name), (list, tuple)):
                options[name] = [self._group(g) for g in options[name]]
        summary = Summary(self._core.minimize(device._core, _given(options, callback=callback, prepare=prepare)))
        warn_fallbacks(device)
        return summary

    def _group(self, group):
        """A group of blocks as a text."""
        if isinstance(group, list):
            return "+".join(self._group(g) for g in group)
        blocks, numbers = group if isinstance(group, tuple) and len(group) == 2 else (group, None)
        if isinstance(blocks, str) and numbers is None:
            return blocks
        self._own(blocks)
        return blocks.name if numbers is None else "+".join(f"{blocks.name}:{_one(n)}" for n in np.atleast_1d(numbers))

    def evaluate(self, *, apply_loss=True, normal=False, device=None):
        """cost, gradient, residuals and jacobian at the current values. Rows: residuals in the order in which terms were
        added. Columns: free tangent coordinates, set after set (`column` returns the first one of a block). apply_loss:
        multiplies residuals and Jacobian by sqrt(rho'), so that J^T r is the gradient. normal: also returns J^T J. jacobian:
        scipy.sparse.csr_array, or (data, indices, indptr) if SciPy is not installed."""
        device = chosen(device)
        found = Summary(self._core.evaluate(device._core, bool(apply_loss), bool(normal)))
        warn_fallbacks(device)
        for name in ("jacobian", "normal"):
            if name in found:
                found[name] = _sparse(found[name])
        return found

    def instances(self, *, device=None):
        """All instances at the current values, in the order of adding: rows of terms, name, instance, enabled, norm (|r|
        without loss), weight (of the loss) and scale; for finding outliers."""
        return self._core.instances(chosen(device)._core)

    def covariance(self, blocks, *, free_gauge=False, device=None):
        """(J^T J)^-1 of the tangent coordinates of [(block set, number), …] at the current values, in the given order.
        free_gauge: if the problem has a gauge freedom, use the inverse on the complement of its free directions. Above 3,000
        unknowns, at most 15 free directions are supported. Raises InputError for fixed blocks, and if J^T J is singular."""
        return self._core.covariance(chosen(device)._core, [(self._own(s), _one(k)) for s, k in blocks], free_gauge)

    def marginals(self, blocks, *, free_gauge=False, device=None):
        """The covariance of each block of a set, (count, t, t); zeros for fixed blocks."""
        return self._core.marginals(chosen(device)._core, self._own(blocks), free_gauge)


def _weights(name, errors, count, **given):
    """(kind, rows of numbers): one row, or one for each instance."""
    said = [(kind, value) for kind, value in given.items() if value is not None]
    if not errors and not said:
        return "none", np.zeros((1, 0))
    if len(said) != (1 if errors else 0):
        raise InputError(f"{len(said)} of {', '.join(given)}", f"factors {name}", "one of them" if errors else "none")
    kind, value = said[0]
    array, shape = real_numbers(value, f"factors {name}, {kind}", np.float64), (errors,) if kind == "standard_deviations" else (errors, errors)
    if kind == "standard_deviations" and errors == 1 and array.ndim <= 1 and array.shape in ((), (count,)):
        array = array.reshape(-1, 1)
    if array.shape not in (shape, (count, *shape), (1, *shape)):
        raise InputError(f"{kind} of shape {array.shape}", f"factors {name}", f"{shape} or {(count, *shape)}")
    return kind, np.ascontiguousarray(array.reshape(-1, int(np.prod(shape))))


def factors():
    """Ready-made residuals by name: slots (sizes of the blocks), measured (numbers in a measurement) and errors (size of the
    weight; 1: one standard deviation)."""
    return _core.factors()


class ImuPreintegration(_core.ImuPreintegration):
    """Rates and accelerations of a body between two poses, integrated (Forster et al. 2017): rotation, velocity and position
    in the frame of the first pose, without gravity; covariance (9, 9) and bias_jacobian (9, 6).

    ImuPreintegration(gyroscope_noise, accelerometer_noise, bias=None): noise densities in rad/s/sqrt(Hz) and m/s^2/sqrt(Hz);
    bias: 6 numbers. add(gyroscope, accelerometer, seconds): (3,) or (n, 3) each, one number of seconds or n. row(gravity): the
    measurement of the factor "imu_preintegrated".
    """

    def __init__(self, gyroscope_noise, accelerometer_noise, bias=None):
        super().__init__(float(gyroscope_noise), float(accelerometer_noise), [] if bias is None else [float(b) for b in bias])

    def add(self, gyroscope, accelerometer, seconds):
        rates, forces = _numbers(gyroscope, "gyroscope", 3), _numbers(accelerometer, "accelerometer", 3)
        try:
            times = np.broadcast_to(np.asarray(seconds, dtype=np.float64), (len(rates),))
        except ValueError:
            times = ()
        if len(times) != len(rates) or len(forces) != len(rates):
            raise InputError(f"{len(rates)} rates, {len(forces)} accelerations, seconds of shape {np.shape(seconds)}",
                             "lockstep.solve.ImuPreintegration", "as many of each, or one number of seconds")
        for rate, force, time in zip(rates, forces, times):
            super().add(list(rate), list(force), float(time))

    def row(self, gravity):
        return np.array(super().row([float(g) for g in gravity]))


def _sparse(parts):
    try:
        from scipy import sparse
    except ImportError:
        return parts["data"], parts["indices"], parts["indptr"]
    return getattr(sparse, "csr_array", sparse.csr_matrix)((parts["data"], parts["indices"], parts["indptr"]),
                                                           shape=parts["shape"])


class Summary(dict):
    """Result of a minimisation: initial_cost, final_cost, iterations, termination, converged, message, trace …"""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self):
        return list(self)


def read_g2o(file, *, loss="none"):
    """Reads a pose graph: (problem, poses, landmarks); `landmarks` is None if there are none. Cost 1/2 sum e^T Omega e."""
    core, poses, landmarks = _core.read_g2o(str(file), loss)
    problem = Problem(_core_problem=core)
    return problem, _set(problem, poses, "poses"), _set(problem, landmarks, "landmarks")


def read_bal(file, *, loss="none"):
    """Reads a bundle adjustment problem: (problem, cameras (n, 9), points (m, 3))."""
    core, cameras, points = _core.read_bal(str(file), loss)
    problem = Problem(_core_problem=core)
    return problem, _set(problem, cameras, "cameras"), _set(problem, points, "points")


def read_colmap(folder, *, loss="none"):
    """Reads a model in COLMAP's text format as bundle adjustment: (problem, poses (n, 7), points (m, 3), [intrinsics of each
    camera])."""
    core, poses, points, cameras = _core.read_colmap(str(folder), loss)
    problem = Problem(_core_problem=core)
    return (problem, _set(problem, poses, "poses"), _set(problem, points, "points"),
            [_set(problem, c, f"camera {k}") for k, c in enumerate(cameras)])


def read_tum(file):
    """Reads a trajectory of the TUM RGB-D benchmark: (seconds (n,), poses (n, 7): translation, quaternion w x y z)."""
    return _core.read_tum(str(file))


def write_tum(file, seconds, poses):
    """Writes a trajectory in the shapes of read_tum."""
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
    """Fits a curve to the rows of a CSV file, as `lockstep solve fit`. model is a formula over columns and parameters. initial
    is {name: value}, bounds {name: (lower, upper)}, constraints {name: formula}, or their texts.

    file may also be a table (a pandas DataFrame or a dictionary of columns), or a list of tables or files, one per data set.
    The result has the members that the program prints, and fitted (the model by row, data set after data set); covariance,
    correlations, bands and at are arrays. at: points at which the curve and its bands are evaluated, also a file or a table.
    """
    source = _tables("fit", file, model, y, options)
    points = options.get("at")
    if points is not None and not isinstance(points, (str, os.PathLike)):
        source["points"] = [_table(points, _used(model, y, options), "lockstep.solve.fit, at")]
        options = {**options, "at": None}
    device = chosen(device)
    told, fitted = _core.solve_fit(device._core, _given(options, model=model, y=y, callback=callback, **source))
    warn_fallbacks(device)
    found, count = Summary(told, fitted=fitted), len(told["parameters"])
    for name in ("covariance", "correlations"):
        if found.get(name):
            found[name] = np.array(found[name]).reshape(count, count)
    for name in ("confidence", "prediction"):
        if "bands" in found:
            found["bands"][name] = np.array(found["bands"][name])
    for name in ("fitted", "confidence", "prediction"):
        if name in found.get("at", ()):
            found["at"][name] = np.array(found["at"][name])
    return found


def _tables(call, file, model, y, options):
    """Files or data sets as the core takes them."""
    sets = list(file) if isinstance(file, (list, tuple)) else [file]
    if all(isinstance(f, (str, os.PathLike)) for f in sets) and sets:
        others = [os.fspath(f) for f in sets[1:]] + [os.fspath(f) for f in options.pop("others", None) or ()]
        return {"file": sets[0], "others": others or None}
    used = _used(model, y, options)
    return {"tables": [_table(table, used, f"lockstep.solve.{call}, data set {k + 1}") for k, table in enumerate(sets)]}


def _used(model, y, options):
    """Names of columns that a fit may use."""
    x = options.get("x") or ()
    return {*re.findall(r"[A-Za-z_]\w*", model or ""), y, options.get("sigma"), *(x.split(",") if isinstance(x, str) else x)}


def _table(table, used, where):
    """(names, columns) of those columns of a data frame or a dictionary that a fit uses."""
    names = getattr(table, "columns", None)
    names = list(table) if names is None and hasattr(table, "keys") else names
    if names is None:
        raise InputError(f"a {type(table).__name__}", where,
                         "a file, a data frame or a dictionary of columns")
    kept = [name for name in names if name in used]
    columns = []
    for name in kept:
        try:
            columns.append(np.ascontiguousarray(real_numbers(table[name], f"{where}, column {name}", np.float64)))
        except InputError:
            raise
        except (TypeError, ValueError):
            raise InputError(f"column {name}", where, "numbers") from None
        if columns[-1].ndim != 1:
            raise InputError(f"column {name} of shape {columns[-1].shape}", where, "one axis")
    if not kept:
        raise InputError(f"columns {', '.join(map(str, names))}", where, "those that the model names")
    return kept, columns


@described("solve.posegraph")
def posegraph(file, *, device=None, callback=None, **options):
    """Optimises a g2o file, as `lockstep solve g2o`."""
    return _command("posegraph", device, options, file=file, callback=callback)


@described("solve.bundle")
def bundle(file=None, *, device=None, callback=None, **options):
    """Optimises a BAL file, or a synthetic scene with the given numbers of cameras and observations, as `lockstep solve bal`."""
    return _command("bundle", device, options, file=file, callback=callback)


@described("solve.doctor")
def doctor(file, *, device=None, **options):
    """Diagnoses the problem of a g2o or BAL file, as `lockstep solve doctor`. With a model, it diagnoses the fit of `fit`,
    with the same types of file."""
    source = _tables("doctor", file, options.get("model"), options.get("y"), options)
    return _command("doctor", device, options, **source)


@described("solve.sketch")
def sketch(file, *, device=None, callback=None, **options):
    """Solves a sketch with constraints (TOML), as `lockstep solve sketch`."""
    return _command("sketch", device, options, file=file, callback=callback)


def mesh_energies():
    """Names of the energies of `mesh`; docs/mesh.md has their formulas."""
    return _core.mesh_energies()


@described("solve.mesh")
def mesh(shape, *, energy, handles=None, device=None, callback=None, **options):
    """Minimises an energy of a triangle mesh, as `lockstep solve mesh`; returns the program's results with "positions" (n, 3)
    and "triangles" (m, 3) of the result; with parameterize the flat mesh, (u, v, 0).

    shape: an .obj, .ply or .stl file, (vertices (n, 3), triangles (m, 3)), or a text such as "icosphere:4", "grid:20x30",
    "bar:6x36". fix: fixed vertices, by number or as a text ("boundary", "z<=0"). handles: {vertex: (x, y, z)}, or a text.
    """
    if isinstance(handles, dict):
        handles = ";".join(f"{whole(v, 'handles', 'lockstep.solve.mesh', 0)}=" + ",".join(repr(float(x)) for x in to) for v, to in handles.items())
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


from ._least_squares import Result, least_squares  # noqa: E402, F401: it is made of what is above
from ._smoother import Smoother, TermKind  # noqa: E402, F401  (needs what is above)
