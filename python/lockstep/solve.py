"""Nonlinear least squares: residuals written as Python functions, traced, batched and differentiated by the engine.

    problem = solve.Problem()
    points = problem.add_blocks("points", positions)                      # (n, 3)
    problem.add_terms("spring", lambda p, q, d: ls.norm(p - q) - d[0], (points, points), edges, lengths)
    summary = problem.minimize()
    problem.values(points)

The cost is the sum over all instances of 1/2 rho(|r|^2), r the instance's residuals, rho the term's robust loss.
"""
import os
import re

import numpy as np

from . import _core
from ._device import chosen, warn_fallbacks
from ._errors import InputError, text
from ._expr import Value, Vec, where  # noqa: F401
from ._options import described
from ._terms import BlockSet, TermSet, _block_sets, _entries, _flat, _instances, _loss_of, _number_of, _numbers, _one, _traced


class Problem:
    """Blocks of unknowns and residuals between them, in f64."""

    def __init__(self, *, _core_problem=None):
        self._core = _core_problem or _core.Problem()
        self._sets = {}  # by number

    def _own(self, handle):
        """The number of a handle, which must be of this problem."""
        return _number_of(handle, self._core, "lockstep.solve.Problem", "problem")

    def add_blocks(self, name, values, manifold="euclidean"):
        """Blocks of unknowns, values (count, size); manifold: euclidean, so2, so3, se2, se3 or sphere2, or several one after the
        other, as "sphere2 x euclidean:1"."""
        text(name, "a name of blocks", "lockstep.solve.Problem.add_blocks", "a string")
        text(manifold, "a manifold", "lockstep.solve.Problem.add_blocks", "euclidean, so2, so3, se2, se3 or sphere2")
        array = _numbers(values, f"blocks {name}")
        return self._known(self._core.add_blocks(name, manifold, array), name, array.shape[1])

    def _known(self, number, name, size):
        self._sets[number] = BlockSet(number, name, size, self._core)
        return self._sets[number]

    def add_terms(self, name, residual, blocks, indices, data=None, *, jacobian=None, loss="none", energy=False):
        """One instance per row of `indices` (n, len(blocks)), block numbers within each set; data (n, k).

        residual(*blocks, data) gets one Vec for each block and, where there is data, a Vec of it; it gives an expression
        or several. It is traced once: conditions are lockstep.where. loss: "none", "huber:S", "cauchy:S", "tukey:S",
        "geman_mcclure:S", "arctan:S", "soft_l1:S", "tolerant:A,B", or a function rho(s) of s = |r|^2 with rho(0) = 0 and
        rho'(0) = 1. energy: the one output is added to the cost as it is. jacobian(*blocks, data): rows of the derivatives to
        the numbers of all blocks, in place of those that are derived; compared with differences. Gives a TermSet.
        """
        blocks, table, numbers = _instances(name, blocks, indices, data)
        number = self._core.add_terms(name, [b.size for b in blocks], numbers.shape[1], _traced(residual, None),
                                      _loss_of(loss), energy, [self._own(b) for b in blocks], table, numbers,
                                      None if jacobian is None else _traced(lambda *a: _entries(jacobian(*a)), None))
        return TermSet(number, name, numbers.shape[1], self._core)

    def add_host_terms(self, name, residual, blocks, indices, data=None, *, residuals=1, jacobian=None, loss="none"):
        """The same of a function of numbers, such as a simulator: residual(*blocks, data) gets an array for each block and,
        where there is data, one of it; it gives `residuals` numbers. It is called for one instance at a time.

        jacobian(*blocks, data): (residuals, numbers of all blocks); compared with differences when terms are added. Without
        it, derivatives are differences. Solvers by conjugate gradients refuse these terms. Gives a TermSet.
        """
        blocks, table, numbers = _instances(name, blocks, indices, data)

        number = self._core.add_host_terms(name, [b.size for b in blocks], numbers.shape[1], _one(residuals, "residuals"), _flat(residual),
                                           _flat(jacobian), _loss_of(loss), [self._own(b) for b in blocks], table, numbers)
        return TermSet(number, name, numbers.shape[1], self._core)

    def add_factors(self, name, blocks, indices, measured=None, *, standard_deviations=None, covariance=None, information=None,
                    loss="none"):
        """Instances of a ready-made residual, such as "se3_between_log"; `factors()` lists all, docs/solve.md has their slots.

        measured (n, k): a row for each instance, the numbers in the factor's order. What is known of its errors is given once
        for all, or for each instance: standard_deviations (e,) or (n, e), covariance or information (e, e) or (n, e, e), of
        rotations in radians. Gives a TermSet.
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
        """More blocks at the end of a set; gives the number of the first."""
        return self._core.append_blocks(self._own(blocks), _numbers(values, f"blocks {blocks.name}", blocks.size))

    def set_data(self, terms, data, first=0):
        """Data (n, k) of the instances from `first` on."""
        self._core.set_data(self._own(terms), _numbers(data, f"terms {terms.name}, data", terms.data), _one(first, "first instance"))

    def enable(self, terms, instances=None, enabled=True):
        """Instances (all, or those of the numbers) count or do not; their places stay."""
        if instances is None:
            self._core.enable_all(self._own(terms), enabled)
        else:
            self._core.enable(self._own(terms), [_one(i, "instance") for i in np.atleast_1d(instances)], enabled)

    def enabled(self, terms, instance):
        """Whether an instance counts."""
        return self._core.enabled(self._own(terms), _one(instance, "instance"))

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
            self._core.erase_blocks(self._own(handle), [_one(b) for b in np.atleast_1d([] if blocks is None else blocks)])

    def block_numbers(self, blocks):
        """The numbers of a set's blocks in the order of `values`: 0, 1, … where none was erased."""
        return np.asarray(self._core.block_numbers(self._own(blocks)), dtype=np.int64)

    def marginalize(self, blocks, *, name="prior", first_estimates=(), device=None):
        """Takes blocks [(block set, number), …] out; what their terms said of the others stays as a prior,
        1/2 |root (x - values) + offset|^2 in tangent coordinates. Terms are linearised at the current values, or at
        first_estimates [(block set, number, values), …]. Gives blocks (as given, those that stay), values, root, offset,
        constant (cost that no block takes away), free_directions and undetermined (directions of the blocks that left
        which no term held)."""
        device = chosen(device)
        found = Summary(self._core.marginalize(
            device._core, [(self._own(s), _one(k)) for s, k in blocks], name,
            [(self._own(s), _one(k), [float(v) for v in np.ravel(values)]) for s, k, values in first_estimates]))
        warn_fallbacks(device)
        found["blocks"] = [(self._sets[s], k) for s, k in found["blocks"]]
        found["terms"] = TermSet(found["terms"], name, 0, self._core)
        return found

    def report(self, *, named=5, device=None):
        """Diagnoses the problem at its values, as `lockstep solve doctor`: disconnected parts, gauges
        and other directions that change no residual with the blocks that carry them, badly scaled columns of the Jacobian,
        instances without effect, duplicates; `well` says that there is none of it. Also outliers, influential instances and
        those of high leverage. Lists have the first `named`."""
        device = chosen(device)
        found = Summary(self._core.report(device._core, int(named)))
        warn_fallbacks(device)
        return found

    def influence(self, *, device=None):
        """What each instance that counts does to the estimate, in the order of adding, in the linear problem at the values:
        terms (names), instance, leverage (0 to 1), studentized (residual in units of its standard deviation, which the
        other instances give) and cook (Cook's distance) as arrays; and rank, rows, step_gain (share of the cost that a
        full step removes: 0 at a minimum)."""
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
        """The instances that have a block: [(TermSet, instance)]."""
        handles = {row.terms._id: row.terms for row in self.term_sets()}
        return [(handles[terms], instance) for terms, instance in _core.instances_of(self._core, self._own(blocks), _one(block))]

    def block(self, blocks, block):
        """What holds a block: fixed, held (tangent coordinates), lower and upper (by number)."""
        return Summary(_core.block_content(self._core, self._own(blocks), _one(block)))

    def instance_count(self, terms):
        """Disabled ones too."""
        return self._core.instance_count(self._own(terms))

    def fix(self, blocks, block, fixed=True):
        """Holds a block."""
        self._core.fix(self._own(blocks), _one(block), fixed)

    def fix_coordinates(self, blocks, block, coordinates):
        """Holds tangent coordinates of a block; those given before are free again."""
        self._core.fix_coordinates(self._own(blocks), _one(block), [_one(c, "coordinate") for c in coordinates])

    def column(self, blocks, block):
        """The column of the first coordinate of a block that moves, in gradients and Jacobians; -1 where none does."""
        return self._core.first_column(self._own(blocks), _one(block))

    def bound(self, blocks, block, component, lower=-np.inf, upper=np.inf):
        """Bounds of a number that one tangent coordinate moves by itself: of Euclidean blocks and parts, and angles in [-pi, pi)."""
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
        Columns: the tangent coordinates that move, set after set (`column` gives the first one of a block). apply_loss:
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
        return self._core.covariance(chosen(device)._core, [(self._own(s), _one(k)) for s, k in blocks], free_gauge)

    def marginals(self, blocks, *, free_gauge=False, device=None):
        """The covariance of each block of a set, (count, t, t); zeros for those that are held."""
        return self._core.marginals(chosen(device)._core, self._own(blocks), free_gauge)


def _weights(name, errors, count, **given):
    """(kind, rows of numbers): one row, or one for each instance."""
    said = [(kind, value) for kind, value in given.items() if value is not None]
    if not errors and not said:
        return "none", np.zeros((1, 0))
    if len(said) != (1 if errors else 0):
        raise InputError(f"{len(said)} of {', '.join(given)}", f"factors {name}", "one of them" if errors else "none")
    kind, value = said[0]
    array, shape = np.asarray(value, dtype=np.float64), (errors,) if kind == "standard_deviations" else (errors, errors)
    if kind == "standard_deviations" and errors == 1 and array.ndim <= 1 and array.shape in ((), (count,)):
        array = array.reshape(-1, 1)
    if array.shape not in (shape, (count, *shape), (1, *shape)):
        raise InputError(f"{kind} of shape {array.shape}", f"factors {name}", f"{shape} or {(count, *shape)}")
    return kind, np.ascontiguousarray(array.reshape(-1, int(np.prod(shape))))


def factors():
    """Ready-made residuals by name: slots (numbers of each block), measured (numbers of a measurement) and errors (numbers that a
    weight is of; 1: one standard deviation)."""
    return _core.factors()


class ImuPreintegration(_core.ImuPreintegration):
    """What rates and accelerations of a body add up to between two poses (Forster et al. 2017): rotation, velocity and position
    in the frame of the first, without gravity; covariance (9, 9) and bias_jacobian (9, 6).

    ImuPreintegration(gyroscope_noise, accelerometer_noise, bias=None): densities in rad/s/sqrt(Hz) and m/s^2/sqrt(Hz); bias: 6
    numbers. add(gyroscope, accelerometer, seconds): (3,) or (n, 3) each, a number of seconds or n. row(gravity): what the factor
    "imu_preintegrated" takes as `measured`.
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
    """What a minimisation did: initial_cost, final_cost, iterations, termination, converged, message, trace …"""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self):
        return list(self)


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
    {name: start}, bounds {name: (lower, upper)}, constraints {name: formula}, or their texts.

    file may also be a table: a pandas DataFrame, or a dictionary of columns; and a list of tables or of files, one for each
    data set. The result has what the program prints, and fitted (the model by row, data set after data set); covariance,
    correlations, bands and at are arrays. at: points where the curve and its bands are evaluated, a file or a table too.
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
            columns.append(np.ascontiguousarray(table[name], dtype=np.float64))
        except (TypeError, ValueError):
            raise InputError(f"column {name}", where, "numbers") from None
        if columns[-1].ndim != 1:
            raise InputError(f"column {name} of shape {columns[-1].shape}", where, "one axis")
    if not kept:
        raise InputError(f"columns {', '.join(map(str, names))}", where, "those that the model names")
    return kept, columns


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
    """Diagnoses the problem of a g2o or BAL file, as `lockstep solve doctor`. With a model the problem is that of
    `fit`, and file may be what it takes."""
    source = _tables("doctor", file, options.get("model"), options.get("y"), options)
    return _command("doctor", device, options, **source)


@described("solve.sketch")
def sketch(file, *, device=None, callback=None, **options):
    """A sketch of constraints (TOML), as `lockstep solve sketch`."""
    return _command("sketch", device, options, file=file, callback=callback)


def mesh_energies():
    """Names of the energies of `mesh`; docs/mesh.md has their formulas."""
    return _core.mesh_energies()


@described("solve.mesh")
def mesh(shape, *, energy, handles=None, device=None, callback=None, **options):
    """An energy of a triangle mesh minimised, as `lockstep solve mesh`; returns the program's results with "positions" (n, 3)
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


from ._least_squares import Result, least_squares  # noqa: E402, F401: it is made of what is above
from ._smoother import Smoother, TermKind  # noqa: E402, F401  (needs what is above)
