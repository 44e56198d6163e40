"""Two-dimensional turbulence on a doubly periodic box: simulations, codec, learned surrogate, rollouts.

    simulation = flow.Simulation(256, closure="smagorinsky", dt=1e-3)
    simulation.set_vorticity(flow.initial_field(256, "mcwilliams", seed=7))
    simulation.advance(1000)
    simulation.vorticity(), simulation.budget()

Vorticity w = dv/dx - du/dy is (ny, nx), y slowest, in the units of the box (lengths lx, ly, default 2 pi) and of its
time. With paths instead of arrays, the functions run the program's commands of the same names and return their
results. Mathematics: docs/flow.md.
"""
import os
import warnings

import numpy as np

from . import _core
from ._array import empty, real_numbers
from ._device import chosen, warn_fallbacks
from ._errors import path as _path
from ._errors import InputError, whole
from ._options import described


def _box(n, box):
    """Points and lengths as the core takes them."""
    ny, nx = (whole(k, "n", "lockstep.flow", 1) for k in ((n, n) if np.ndim(n) == 0 else tuple(n)))
    given = {"nx": nx, "ny": ny}
    if box is not None:
        lx, ly = (box, box) if isinstance(box, (int, float)) else tuple(box)
        given.update(lx=float(lx), ly=float(ly))
    return given


def _options(options, n=None, box=None):
    given = {k: os.fspath(v) if isinstance(v, os.PathLike) else v for k, v in options.items() if v is not None}
    if n is not None:
        given.update(_box(n, box))
    elif box is not None:
        raise InputError("box without n", "lockstep.flow", "n=points along each axis, or (ny, nx)")
    return given


def _command(work, device, *given):
    device = chosen(device)
    found = work(device._core, *given)
    warn_fallbacks(device)
    return found


def _is_path(value):
    return isinstance(value, (str, os.PathLike))


def _host(values, name):
    return np.ascontiguousarray(real_numbers(values, f"lockstep.flow.{name}"))


_SIMULATION = "lockstep.flow.Simulation"


def _exact(values):
    """Numbers in f32 or f64, whichever holds them."""
    return values.astype(np.float32 if values.dtype in (np.float16, np.float32) else np.float64, copy=False)


def initial_field(n, initial="mcwilliams", seed=0, *, box=None):
    """Vorticity (ny, nx), f64, zero mean: mcwilliams, vortices, noise, taylor-green or shear. n: points along each
    axis, or (ny, nx). box: length, or (lx, ly).
    """
    return _core.flow_initial({**_box(n, box), "initial": initial, "seed": whole(seed, "seed", "lockstep.flow.initial_field", 0, 2**64 - 1)})


class Simulation:
    """Flows (members) of one model on a device, advanced together. Each is bit-identical to a simulation of it alone.

    n: points along each axis, or (ny, nx). box: length, or (lx, ly).
    """

    @described("flow.simulation")
    def __init__(self, n, *, box=None, members=1, precision="f32", device=None, **options):
        self.device = chosen(device)
        self.members, self._shape, self._precision = whole(members, "members", _SIMULATION, 1), _box(n, box), precision
        given = {**options, **self._shape, "members": self.members, "precision": precision}
        self._core, self._settings = _core.FlowSolver(self.device._core, given), _core.flow_settings(given)

    @property
    def shape(self):
        """(members, ny, nx)."""
        return (self.members, self._shape["ny"], self._shape["nx"])

    def set_vorticity(self, vorticity):
        """Sets the state: (ny, nx) for all members, or (members, ny, nx), f32 or f64. The mean and truncated modes
        are dropped. The time is reset to 0.
        """
        self._core.set_vorticity(_host(vorticity, "Simulation, argument vorticity"))
        return self

    def advance(self, steps):
        """Queues steps on the device; functions that read the state wait for them."""
        steps = int(steps) if isinstance(steps, float) and steps.is_integer() else steps
        self._core.advance(whole(steps, "steps", "lockstep.flow.Simulation.advance", 0))
        return self

    def set_end(self, time):
        """With cfl: sets the time at which members stop."""
        self._core.set_end(float(time))
        return self

    def _warn(self):
        for member, step in self.blown_up():
            warnings.warn(f"member {member} of the flow blew up by step {step}: a smaller dt, more viscosity or a closure; "
                          "last_sound_vorticity() is at most ten steps older", RuntimeWarning, stacklevel=3)

    def vorticity(self, out=None):
        """(members, ny, nx) as a NumPy array, with a RuntimeWarning if a member blew up. `out`: a lockstep.Array of
        f32 on the simulation's device that receives the result without waiting or copying to the host (True creates
        one).
        """
        if out is None:
            self._warn()
            return self._core.vorticity()
        if out is True:
            out = empty(self.shape, "f32", self.device)
        self._core.vorticity_into(out._buffer)
        return out

    def last_sound_vorticity(self):
        """Vorticity (members, ny, nx) of the last state before a blow-up that was found finite, at most ten steps earlier."""
        return self._core.last_sound_vorticity()

    def budget(self):
        """Means of each member: energy <|u|^2> / 2, enstrophy <w^2> / 2, palinstrophy <|grad w|^2> / 2. Emits a
        RuntimeWarning if a member blew up.
        """
        self._warn()
        return self._core.budget()

    def spectra(self):
        """Spectra of each member by rings of wavenumbers: energy, enstrophy, energy_flux, enstrophy_flux."""
        return self._core.spectra()

    @property
    def times(self):
        """Times of the members."""
        return self._core.times()

    @property
    def steps(self):
        """Steps completed by each member."""
        return self._core.steps()

    @property
    def smallest_dt(self):
        return self._core.smallest_dt()

    @property
    def courant(self):
        """Current Courant number (max|u| / dx + max|v| / dy) dt of each member."""
        return self._core.courant()

    def blown_up(self):
        """[(member, step)] of members whose speed is not finite or whose Courant number exceeds twice the stability limit."""
        return self._core.blown_up()

    def state_dict(self):
        """The complete state by name, for load_state_dict, and the settings (JSON, uint8)."""
        return {**self._core.state(), "settings": np.frombuffer(self._settings.encode(), np.uint8)}

    def load_state_dict(self, state, strict=True):
        """Continues from a state of a simulation with the same settings, bit for bit. Rejects others, naming what differs;
        strict=False continues with these settings from another one's state, which includes its time step.
        """
        if strict and "settings" in state:
            saved = np.asarray(state["settings"], np.uint8).tobytes().decode(errors="replace")
            _core.flow_expect_settings(saved, self._settings)
        self._core.set_state({name: _host(values, f"Simulation, state {name}") for name, values in state.items()
                              if name != "settings"})
        return self


class Encoded:
    """Encoded fields, as returned by `encode` and `read`."""

    def __init__(self, core, device):
        self._core, self.device = core, device

    @property
    def frames(self):
        return self._core.frames

    @property
    def shape(self):
        """(frames, ny, nx) of the fields."""
        return (self._core.frames, *self._core.grid)

    @property
    def max_error(self):
        """The bound on the error at any point, or None."""
        return self._core.max_error

    def latents(self, *, device=None):
        """(frames, numbers) float32."""
        return _command(_core.flow_latents, device or self.device, self._core)

    def decode(self, *, decoder="mean", device=None):
        """The fields (frames, ny, nx), float32. decoder: mean, or stochastic (only without a bound on the error)."""
        device = chosen(device or self.device)
        found = _core.flow_decode(device._core, self._core, {"decoder": decoder})
        warn_fallbacks(device)
        return found

    def write(self, path):
        """Writes a file as `lockstep flow encode`; returns its size in bytes."""
        return self._core.write(_path(path, "lockstep.flow.Encoded.write, argument path"))


def read(path, *, device=None):
    """Reads a file of encoded fields."""
    return Encoded(_core.flow_read(_path(path, "lockstep.flow.read, argument path")), chosen(device))


@described("flow.encode")
def encode(fields, out=None, *, max_error=None, time=None, box=None, device=None, **options):
    """Encodes fields (frames, ny, nx), f32, as short latents, or with max_error as compressed bytes whose decoded
    points differ by at most that much (0: lossless). time: time of each frame, by default 0, 1, 2 …. With a path:
    encodes the file of a run to the file `out`.
    """
    given = _options({**options, "max_error": max_error})
    if _is_path(fields):
        return _command(_core.flow_encode_file, device, {**given, "fields": fields, "out": _required(out, "encode")})
    if box is not None:
        given.update({k: v for k, v in _box(2, box).items() if k in ("lx", "ly")})
    device, values = chosen(device), _host(fields, "encode, argument fields")
    if values.ndim == 2:
        values = values[None]
    if values.ndim != 3:
        raise InputError(f"shape {values.shape}", "lockstep.flow.encode, argument fields", "(frames, ny, nx)")
    if time is not None:
        given["time"] = [float(t) for t in time]
        if not all(np.diff(given["time"]) > 0) or not np.isfinite(given["time"]).all():
            raise InputError(f"times {given['time']}", "lockstep.flow.encode, argument time", "increasing numbers")
    found = Encoded(_core.flow_encode(device._core, _exact(values), given), device)
    warn_fallbacks(device)
    return found


def decode(encoded, out=None, *, decoder="mean", original=None, device=None):
    """Decodes fields of `encode`. With a path: decodes to the file `out` and compares with the file `original`."""
    if isinstance(encoded, Encoded):
        return encoded.decode(decoder=decoder, device=device)
    return _command(_core.flow_decode_file, device, _options({"encoded": encoded, "out": _required(out, "decode"),
                                                              "decoder": decoder, "original": original}))


class Surrogate:
    """A linear model of latents that predicts the next frame from the last `delays` ones. Created by `learn`."""

    def __init__(self, core):
        self._core = core

    latent_size = property(lambda self: self._core.latent_size, doc="Numbers of a frame.")
    rank = property(lambda self: self._core.rank, doc="Singular vectors kept.")
    delays = property(lambda self: self._core.delays, doc="Frames in a state.")
    train_frames = property(lambda self: self._core.train_frames, doc="The first frames, which it was learnt from.")
    basis = property(lambda self: self._core.basis, doc="(rank, numbers), orthonormal rows.")
    step = property(lambda self: self._core.step, doc="(delays rank, delays rank): states are rows, oldest frame first.")
    climatology = property(lambda self: self._core.climatology, doc="Mean of the training frames.")
    last = property(lambda self: self._core.last, doc="The last training frames (delays, numbers).")

    def eigenvalues(self):
        """Complex eigenvalues of the operator from one frame to the next, in descending order of magnitude."""
        return np.array([complex(re, im) for re, im in self._core.eigenvalues()])

    def rollout(self, steps, start=None, *, mode="doubling", precision="f32", device=None):
        """(steps, numbers) from `start` (delays, numbers), oldest first; by default from the end of the training
        frames. Starting points of several members, one after the other, give (steps * members, numbers), step by
        step. mode: doubling or steps.
        """
        device = chosen(device)
        begin = self.last if start is None else _host(start, "Surrogate.rollout, argument start")
        if begin.ndim != 2 or begin.shape[1] != self.latent_size or len(begin) == 0 or len(begin) % self.delays:
            raise InputError(f"shape {begin.shape}", "lockstep.flow.Surrogate.rollout, argument start",
                             f"(members * {self.delays}, {self.latent_size})")
        steps = whole(steps, "steps", "lockstep.flow.Surrogate.rollout", 1)
        found = _core.flow_rollout(device._core, self._core, begin, steps, {"precision": precision, "rollout": mode})
        warn_fallbacks(device)
        return found

    def state_dict(self):
        """The model as arrays by name."""
        return self._core.arrays()

    @classmethod
    def from_state_dict(cls, arrays):
        return cls(_core.flow_surrogate({n: _host(a, f"Surrogate, {n}") for n, a in arrays.items()}, "lockstep.flow.Surrogate"))


@described("flow.learn")
def learn(latents, out=None, *, device=None, **options):
    """Learns a Surrogate from latents (frames, numbers). With a path: from a file of `encode`, to the file `out`,
    with its scores; `rollout` selects how they are predicted.
    """
    if _is_path(latents):
        return _command(_core.flow_learn_file, device, _options({**options, "latents": latents, "out": _required(out, "learn")}))
    values = latents.latents(device=device) if isinstance(latents, Encoded) else latents
    values = _host(values, "learn, argument latents")
    return Surrogate(_core.flow_learn(values, _options(options)))


def rollout(model, steps, out=None, *, start=None, device=None, **options):
    """Predicts frames with a Surrogate; options are those of Surrogate.rollout. With a path: with the model of a file, to
    the file `out`.
    """
    if isinstance(model, Surrogate):
        return model.rollout(steps, start, device=device, **options)
    return _command(_core.flow_rollout_file, device, _options({**options, "model": model, "steps": steps,
                                                               "out": _required(out, "rollout")}))


@described("flow.run")
def run(out, *, n=None, box=None, progress=None, device=None, **options):
    """Runs a simulation and writes the results to the folder `out`, as `lockstep flow run`. progress: a function of
    (done, total).
    """
    return _command(_core.flow_run, device, {**_options(options, n, box), "progress": progress, "out": out})


@described("flow.pipeline")
def pipeline(out, *, n=None, box=None, device=None, **options):
    """Simulates, encodes, learns, rolls out and decodes in one process, as `lockstep flow pipeline`. sizes, strides,
    precisions and places run several combinations.
    """
    return _command(_core.flow_pipeline, device, {**_options(options, n, box), "out": out})


def compare(a, b):
    """Differences between two saved runs: rows by time, drifts of energy and enstrophy, spectra."""
    return _core.flow_compare(*(_path(run, "lockstep.flow.compare") for run in (a, b)))


def _required(out, command):
    if out is None:
        raise InputError("a path without out", f"lockstep.flow.{command}", "out=FILE")
    return out
