"""Losses of residuals of partial differential equations on structured grids, with exact gradients.

    heat = pde.System(2)
    t = heat.field("t")
    heat.residual("heat", heat.dt(t) - 0.1 * heat.laplacian(t))
    loss = pde.Loss(heat, pde.Mesh((64, 64), spacing=(h, h), dt=dt, boundary="clamp"))
    value, gradients = loss.value_and_gradients({"t": (t0, t1, t2)})

A field consists of the time levels -1, 0, +1 that the residuals use, as arrays (nz, ny, nx), or (components, nz, ny,
nx) with component 0 = x; leading axes of one cell may be omitted. The loss is sum_k w_k / N sum_i m_i R_k,i^2 over
the N cells. Mathematics: docs/pde.md.
"""
import contextlib
import itertools
import math
import weakref

from . import _core
from ._array import Array, asarray
from ._device import Device, chosen, warn_fallbacks
from ._errors import InputError, UnsupportedError, whole
from ._expr import Value, Vec
from ._numpy import np
from ._options import described


class Field:
    """A field of a System: a scalar or a vector of components."""

    __slots__ = ("_core", "name", "components")

    def __init__(self, core, name):
        self._core, self.name, self.components = core, name, core.components


class System:
    """Residuals as expressions over fields and difference operators; `dimensions` is 1, 2 or 3.

    Levels are -1, 0, +1; axes 0 = x, 1 = y, 2 = z.
    """

    def __init__(self, dimensions, *, _core_system=None):
        self._core = _core_system or _core.System(whole(dimensions, "dimensions", "lockstep.pde.System", 1, 3))
        self._fields = {}

    def __reduce__(self):
        """Copies and pickles are the same system; expressions that were made before belong to the first one."""
        return _system_of, (self._core.text(), {n: None if f is None else (f._core.index, f.components)
                                                for n, f in self._fields.items()})

    @property
    def dimensions(self):
        return self._core.dimensions

    @property
    def fields(self):
        """Components of each field, by name."""
        return {name: self._core.components(name) for name in self._fields}

    def _keep(self, core, name):
        self._fields[name] = field = Field(core, name)
        return field

    def _value(self, core):
        return Value(core, self._core)

    def field(self, name, components=1, boundary=""):
        """Declares a field. `boundary` overrides that of the mesh: a text for all components, or one text per component."""
        for given in (boundary,) if isinstance(boundary, str) else boundary:
            _refuse_other_axes(given, self.dimensions, f"field {name}")
        if not isinstance(boundary, str):
            boundaries = list(boundary)
            if len(boundaries) != components:
                raise InputError(f"{len(boundaries)} boundaries", f"field {name}", f"{components}, one for each component")
            return self._keep(self._core.field_of_components(name, boundaries), name)
        return self._keep(self._core.field(name, components, boundary), name)

    def vector(self, name):
        """A field with one component for each axis, reflected as a vector by free_slip and no_slip."""
        return self._keep(self._core.vector(name), name)

    def parameter(self, name):
        """A number whose value is passed with the data."""
        return self._value(self._core.parameter(name))

    def profile(self, name):
        """Values along a boundary that are passed with the data; boundaries refer to them by name:
        "x-=dirichlet_face:@name".
        """
        self._core.profile(name)

    def at(self, f, component=0, level=0):
        """The value of the field in the cell."""
        return self._value(self._core.at(f._core, component, level))

    def dt(self, f, component=0):
        """(f[+1] - f[-1]) / (2 dt)."""
        return self._value(self._core.dt(f._core, component))

    def dt_forward(self, f, component=0):
        """(f[+1] - f[0]) / dt."""
        return self._value(self._core.dt_forward(f._core, component))

    def dtt(self, f, component=0):
        """(f[+1] - 2 f[0] + f[-1]) / dt^2."""
        return self._value(self._core.dtt(f._core, component))

    def d(self, f, axis, component=0, level=0):
        """Central first difference along `axis`, of the order of the mesh."""
        return self._value(self._core.d(f._core, axis, component, level))

    def d2(self, f, axis, component=0, level=0):
        """Central second difference along `axis`, of the order of the mesh."""
        return self._value(self._core.d2(f._core, axis, component, level))

    def dx(self, f, component=0): return self.d(f, 0, component)
    def dy(self, f, component=0): return self.d(f, 1, component)
    def dz(self, f, component=0): return self.d(f, 2, component)

    def forward(self, f, axis, component=0, level=0):
        """(f[i+1] - f[i]) / h."""
        return self._value(self._core.forward(f._core, axis, component, level))

    def backward(self, f, axis, component=0, level=0):
        """(f[i] - f[i-1]) / h."""
        return self._value(self._core.backward(f._core, axis, component, level))

    def upwind(self, velocity, f, axis, component=0):
        """velocity times the upwind difference."""
        return self._value(self._core.upwind(velocity._v, f._core, axis, component))

    def grad(self, f, component=0):
        return Vec(self._value(v) for v in self._core.grad(f._core, component))

    def div(self, f):
        return self._value(self._core.div(f._core))

    def laplacian(self, f, component=0):
        return self._value(self._core.laplacian(f._core, component))

    def advect(self, velocity, f, component=0, upwind=False):
        """Advection u . grad f: sum over the axes of the velocity component times the central (or upwind) difference."""
        return self._value(self._core.advect(velocity._core, f._core, component, upwind))

    def residual(self, name, r, weight=1.0):
        """Adds weight / N sum m r^2 to the loss; residuals with the same name are one term."""
        if not isinstance(r, Value):
            raise InputError(f"residual {name} of type {type(r).__name__}", "System.residual", "an expression of this system")
        self._core.residual(name, r._v, float(weight))


def _system_of(text, fields):
    system = System(0, _core_system=_core.System.of_text(text))
    for name, field in fields.items():
        system._fields[name] = field and Field(_core.Field(*field), name)
    return system


def transport(dimensions, **options):
    """The transport loss of docs/pde.md: a density sigma and a velocity u. Options: weight_sigma, weight_u,
    sigma_transport, sigma_divergence, momentum, upwind, viscosity, pressure, forcing, weight_divergence, weight_speed."""
    system = System(dimensions, _core_system=_core.transport(whole(dimensions, "dimensions", "lockstep.pde.transport", 1, 3), {k: float(v) for k, v in options.items()}))
    system._fields = {"sigma": None, "u": None}
    for name in ("p", "force"):
        if options.get("pressure" if name == "p" else "forcing"):
            system._fields[name] = None
    return system


def _refuse_other_axes(boundary, dimensions, where):
    for part in boundary.split(","):
        if "=" in part and part.startswith(tuple("xyz"[dimensions:])):
            raise InputError(f"boundary {part} of {dimensions} axes", where, "rules of " + ", ".join("xyz"[:dimensions]))


class Mesh:
    """A grid of cells. cells and spacing along x, y, z (one number per axis of the system); dt: time between levels;
    boundary: "periodic", "x=clamp,y=no_slip", "x-=dirichlet_face:1.0", or "y+=dirichlet_face:@lid" with the name of a
    parameter or profile; order: 2, 4, 6 or 8.
    """

    def __init__(self, cells, spacing=1.0, dt=1.0, boundary="", order=2):
        def three(given, rest):
            given = tuple(given) if np.ndim(given) else (given,)
            if not 1 <= len(given) <= 3:
                raise InputError(f"{given}", "lockstep.pde.Mesh", "one to three numbers, x first")
            return given + (rest,) * (3 - len(given))

        self.cells = tuple(whole(n, "cells", "lockstep.pde.Mesh", 1) for n in three(cells, 1))
        if not np.ndim(spacing):
            spacing = (spacing,) * 3
        elif np.size(spacing) != np.size(cells):
            raise InputError(f"{np.size(spacing)} numbers of spacing", "lockstep.pde.Mesh", f"one, or one for each axis of cells, {np.size(cells)}")
        self.spacing = tuple(float(h) for h in three(spacing, 1.0))
        self.dt, self.boundary, self.order = float(dt), boundary, whole(order, "order", "lockstep.pde.Mesh", 2)

    @property
    def shape(self):
        """(nz, ny, nx)."""
        return self.cells[::-1]


class Loss:
    """A system on a mesh: `loss(fields)` returns the loss, `value_and_gradients(fields)` also its gradients.

    Kernels are traced on first use. Arrays may be those of NumPy or of a framework, of f32, f64, f16 or bf16, all on
    one device; CUDA tensors are used in place, in the order of their framework's stream.

    ranks: ranks of lockstep.parallel. The mesh is the whole grid, of three axes. Each rank passes the fields of its
    planes along z (`planes`), and every rank makes the calls that evaluate the loss. The loss is that of the whole
    grid, the gradients are those of the rank's planes, bit-identical for any number of ranks. Profiles cover whole
    boundaries.
    """

    def __init__(self, system, mesh, ranks=None):
        _refuse_other_axes(mesh.boundary, system.dimensions, "lockstep.pde.Mesh")
        self.system, self.mesh, self.ranks = system, mesh, ranks
        self._number = next(_numbers)
        _losses[self._number] = self
        given = (system._core, list(mesh.cells), list(mesh.spacing), mesh.dt, mesh.boundary, mesh.order)
        self._own = _core.Loss(*given) if ranks is None else _core.DividedLoss(*given, ranks._group)
        self._planes = (0, mesh.shape[0]) if ranks is None else self._own.planes()

    @property
    def planes(self):
        """The range of planes along z of this rank's fields; without ranks all planes."""
        return range(*self._planes)

    @property
    def _core(self):
        """The loss of a whole grid, which knows more than one over ranks."""
        if self.ranks is not None:
            raise UnsupportedError("this call of a loss over ranks", "lockstep.pde.Loss",
                                   "bind, value_and_gradients, trajectory, residuals, boundary_gradients, number_gradients or lockstep.torch, or a loss without ranks")
        return self._own

    def _evaluated(self):
        """The loss of a whole grid or over ranks, whose group is in use."""
        if self.ranks is not None:
            self.ranks._group
        return self._own

    def _in_agreement(self):
        """Around what a rank checks by itself before a call that evaluates the loss."""
        return contextlib.nullcontext() if self.ranks is None else self.ranks._in_agreement()

    def __reduce__(self):
        return Loss, (self.system, self.mesh, self.ranks)

    def __deepcopy__(self, memo):
        return self  # nothing changes it

    @property
    def _cells(self):
        """(nz, ny, nx) of the arrays of this rank."""
        return (self._planes[1] - self._planes[0], *self.mesh.shape[1:])

    def _shape(self, name):
        components = self.system._core.components(name)
        return self._cells if components == 1 else (components, *self._cells)

    def _array(self, value, name, shape, device, members=1):
        array = asarray(value, device, copy=False, name=name)
        if members == 1 and array.shape == shape:
            return array
        whole = shape if members == 1 else (members * shape[0], *shape[1:]) if len(shape) == 4 else (members, *shape)
        fits = members != 1 or [n for n in array.shape if n != 1] == [n for n in shape if n != 1]
        if not (fits and array._buffer.contiguous and array.size == math.prod(whole)):
            raise InputError(f"shape {array.shape}", name, (f"{shape}" if members == 1 else f"({members}, *{shape})") + self._of_rank())
        return Array(array._buffer.reshape(list(whole)), array.device, array.readonly)

    def _of_rank(self):
        """What an error says of the planes of a rank."""
        first, end = self._planes
        return "" if self.ranks is None else f", planes {first} to {end - 1} of {self.mesh.shape[0]} on rank {self.ranks.rank}"

    def _arrays(self, fields, device, members=1, in_time=False):
        """Arrays by field and level, and their device. members: consecutive grids in each, components next to members.
        in_time: any number of levels, all of them given."""
        device, arrays = None if device is None else Device(device), {}
        for name, levels in fields.items():
            if not in_time and not isinstance(levels, (tuple, list)):
                levels = (None, levels, None)
            if not in_time and len(levels) != 3:
                raise InputError(f"{len(levels)} levels", f"field {name}", "3: -1, 0, +1 (None for one that no residual mentions)")
            row, shape = [], self._shape(name)
            for level, value in zip(itertools.count() if in_time else ("-1", "+0", "+1"), levels):
                array = None
                if in_time or value is not None:
                    array = self._array(value, f"field {name}, level {level}", shape, device, members)
                    device = device or array.device
                row.append(array)
            arrays[name] = row
        return arrays, chosen(device)

    def _given(self, fields, parameters, profiles, mask, device, **how):
        """What every call hands to the core, the device, and what must stay alive. Profiles are values along a side, of any shape
        that has as many."""
        with self._in_agreement():
            arrays, device = self._arrays(fields, device, **how)
            mask = None if mask is None else self._array(mask, "mask", self._cells, device)
            profiles = {n: asarray(p, device, copy=False, name=f"profile {n}") for n, p in (profiles or {}).items()}
            core = (_buffers(arrays), numbers_of(parameters), {n: p._buffer for n, p in profiles.items()}, mask and mask._buffer)
        return core, device, (arrays, mask, profiles)

    def bind(self, fields, *, parameters=None, profiles=None, mask=None, gradients="all", path="auto", wanted=(), seed=1.0,
             members=1, device=None):
        """Binds the loss to buffers on a device: run() may be called whenever their contents have changed. profiles:
        values along boundaries by name. members: number of grids stored one after the other in every array (members,
        nz, ny, nx); the loss is their mean.
        """
        if members != 1 and (mask is not None or profiles):
            raise InputError("members with a mask or profiles", "lockstep.pde.Loss.bind", "fields alone")
        loss = self._evaluated()
        core, device, keep = self._given(fields, parameters, profiles, mask, device, members=members)
        bound = loss.bind(device._core, core, float(seed), members, gradients, path, list(wanted))
        return BoundLoss(bound, device, keep)

    def __call__(self, fields, *, parameters=None, profiles=None, mask=None, path="auto", device=None):
        """The loss, a float."""
        bound = self.bind(fields, parameters=parameters, profiles=profiles, mask=mask, gradients="none", path=path,
                          device=device)
        return bound.run().loss

    def value_and_gradients(self, fields, *, parameters=None, profiles=None, mask=None, gradients="all", path="auto",
                            wanted=(), seed=1.0, device=None):
        """(loss, {field: [gradient at level -1, 0, +1]}). Levels that no residual uses, or that `gradients` ("all",
        "t1": level 0, "t1t2") excludes, are None. Gradients are lockstep.Array in the shape of the mesh.
        """
        bound = self.bind(fields, parameters=parameters, profiles=profiles, mask=mask, gradients=gradients, path=path,
                          wanted=wanted, seed=seed, device=device)
        bound.run()
        found = {name: [bound.gradient(name, level) for level in (-1, 0, 1)] for name in fields}
        return bound.loss, found

    def bind_trajectory(self, fields, *, parameters=None, profiles=None, parameters_in_time=None, profiles_in_time=None,
                        mask=None, gradients="all", path="auto", wanted=(), seed=1.0, device=None):
        """Binds the sum of the losses centred at the interior levels of T levels: fields {name: [T arrays]}, or one
        array (T, …). parameters_in_time, profiles_in_time: T values instead of one. Gradients: all or none;
        BoundLoss.gradient(name, level) with levels 0 to T - 1.
        """
        loss = self._evaluated()
        core, device, keep = self._given(fields, parameters, profiles, mask, device, in_time=True)
        with self._in_agreement():
            in_time = {n: [asarray(p, device, copy=False, name=f"profile {n}") for p in row]
                       for n, row in (profiles_in_time or {}).items()}
            numbers = {n: [float(v) for v in row] for n, row in (parameters_in_time or {}).items()}
        bound = loss.bind_trajectory(device._core, core, numbers, {n: [p._buffer for p in row] for n, row in in_time.items()},
                                     float(seed), gradients, path, list(wanted))
        return BoundLoss(bound, device, (keep, in_time))

    def trajectory(self, fields, **options):
        """(loss, {field: [gradient at each of the T levels]}) of a trajectory; options as of bind_trajectory."""
        bound = self.bind_trajectory(fields, **options)
        bound.run()
        return bound.loss, {name: [bound.gradient(name, level) for level in range(len(levels))]
                            for name, levels in fields.items()}

    def residuals(self, fields, *, parameters=None, profiles=None, mask=None, device=None):
        """The residuals of all terms, (K, nz, ny, nx)."""
        loss = self._evaluated()
        core, device, keep = self._given(fields, parameters, profiles, mask, device)
        return Array(loss.residuals(device._core, core), device)

    def vjp(self, fields, cotangents, *, parameters=None, profiles=None, mask=None, device=None):
        """{field: [gradient at level -1, 0, +1]} for cotangents (K, nz, ny, nx) of the residuals."""
        loss = self._core
        core, device, keep = self._given(fields, parameters, profiles, mask, device)
        given = asarray(cotangents, device, copy=False, name="cotangents")
        found = loss.vjp(device._core, core, given._buffer)
        return {name: [None if g is None else Array(g, device) for g in levels] for name, levels in found.items()}

    def jvp(self, fields, tangents, *, parameters=None, profiles=None, mask=None, device=None, parameter_tangents=None,
            profile_tangents=None):
        """The derivative of the residuals (K, nz, ny, nx) along tangents of the fields, in their shapes, and of
        parameters and profiles.
        """
        loss = self._core
        core, device, keep = self._given(fields, parameters, profiles, mask, device)
        along, _ = self._arrays(tangents, device)
        return Array(loss.jvp(device._core, core, _buffers(along), numbers_of(parameter_tangents),
                              _flat(profile_tangents)), device)

    def hessian_product(self, fields, tangents, *, parameters=None, profiles=None, mask=None, device=None,
                        parameter_tangents=None, profile_tangents=None):
        """The Hessian of the loss with respect to all fields, parameters and profiles, times tangents of these:
        ({field: [level -1, 0, +1]}, {parameter: number}, {profile: numbers}).
        """
        loss = self._core
        core, device, keep = self._given(fields, parameters, profiles, mask, device)
        along, _ = self._arrays(tangents, device)
        found, by_parameter, by_profile = loss.hessian_product(
            device._core, core, _buffers(along), numbers_of(parameter_tangents), _flat(profile_tangents))
        return ({n: [None if g is None else Array(g, device) for g in row] for n, row in found.items()}, by_parameter,
                by_profile)

    def number_gradients(self, fields, *, parameters=None, profiles=None, mask=None, cotangents=None, device=None):
        """({parameter: derivative of the loss}, {profile: derivatives with respect to its numbers}). With cotangents
        (K, nz, ny, nx) of the residuals, the derivatives of their product.
        """
        loss = self._evaluated() if cotangents is None else self._core
        core, device, keep = self._given(fields, parameters, profiles, mask, device)
        if cotangents is None:
            return loss.number_gradients(device._core, core)
        return loss.number_vjp(device._core, core, asarray(cotangents, device, copy=False, name="cotangents")._buffer)

    def check(self, fields, *, parameters=None, profiles=None, mask=None, path="auto", seed=1, device=None):
        """Compares residuals, loss, gradients and Jacobian products at these data with complex steps of plain C++ and
        with each other, along random directions: {"passed", "checks": [{"what", "error", "bound", "passed"}]}.
        """
        loss = self._core
        core, device, keep = self._given(fields, parameters, profiles, mask, device)
        return _core.pde_check(self.system._core, loss, device._core, core, int(seed), path)

    def boundary_gradients(self, fields, *, parameters=None, profiles=None, mask=None, device=None):
        """Derivatives of the loss with respect to the value of each dirichlet_face and ghost boundary: rows of field,
        component, axis, end (0 low, 1 high), value, parameter (its name, or "") and cells (for profiles).
        """
        loss = self._evaluated()
        core, device, keep = self._given(fields, parameters, profiles, mask, device)
        return loss.boundary_gradients(device._core, core)


_numbers = itertools.count()
_losses = weakref.WeakValueDictionary()  # by the number that compiled programs know them by


def loss_of(number):
    """The loss of a number, for compiled programs."""
    found = _losses.get(number)
    if found is None:
        raise InputError("a call of a loss that is gone", "lockstep.pde",
                         "a Loss that lives as long as the programs that call it")
    return found


def numbers_of(parameters):
    """Parameters as numbers, by name."""
    found = {}
    for name, value in (parameters or {}).items():
        try:
            found[name] = float(value)
        except (TypeError, ValueError):
            raise InputError(f"{type(value).__name__} {value!r}", f"parameter {name}", "one number") from None
    return found


def check(system, mesh, fields, **options):
    """Loss(system, mesh).check(fields, …)."""
    return Loss(system, mesh).check(fields, **options)


def examples():
    """Names of the equations that Lockstep contains as examples."""
    return _core.pde_examples()


@described("pde.study")
def study(*, device=None, progress=None, **options):
    """Measures losses over sizes, boundaries, kernels and orders, relative to the copy rate: system, copy_gbps,
    results (one row each). progress: called with the completed and the total number of rows.
    """
    return _core.pde_study(chosen(device)._core, {**options, "progress": progress})


@described("pde.convergence")
def convergence(*, device=None, **options):
    """Computes residuals of exact solutions for several cell sizes: results and observed orders."""
    device = chosen(device)
    found = _core.pde_convergence(device._core, options)
    warn_fallbacks(device)
    return found


@described("pde.example")
def example(name, *, out, device=None, progress=None, **options):
    """Solves one of the examples() by minimising its loss, writes fields and a picture to the folder `out`, and returns
    the program's result with "fields" {name: (components, ny, nx)}. progress: called with the completed and the total
    number of windows.
    """
    device = chosen(device)
    found = _core.pde_example(device._core, {**options, "name": name, "out": out, "progress": progress})
    warn_fallbacks(device)
    return found


class BoundLoss:
    """A loss bound to buffers on a device. run() computes it for their current contents."""

    def __init__(self, core, device, keep):
        self._core, self.device, self._keep = core, device, keep

    def run(self):
        self._core.run()
        return self

    @property
    def terms(self):
        """Weighted loss of each term; waits for the device."""
        return dict(zip(self._core.term_names(), self._core.terms()))

    @property
    def loss(self):
        return float(sum(self._core.terms()))

    @property
    def path(self):
        return self._core.path

    def gradient(self, field, level):
        """Gradient of a field at level -1, 0 or +1 (0 to T - 1 of a trajectory), or None."""
        buffer = self._core.gradient(field, level)
        return None if buffer is None else Array(buffer, self.device)


def _flat(profiles):
    """Each profile's numbers, one after the other."""
    return {n: [float(x) for x in np.asarray(p, np.float64).ravel()] for n, p in (profiles or {}).items()}


def _buffers(arrays):
    return {name: [None if a is None else a._buffer for a in levels] for name, levels in arrays.items()}
