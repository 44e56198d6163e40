"""A trainer that jumps in weight space, for any PyTorch model and optimiser.

    trainer = PredictiveTrainer(model, optimizer, held_out=lambda: loss_of(model(x), y))

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        return loss

    for inputs, targets in batches:
        loss = trainer.step(closure)

Between steps, the path of the parameters is extrapolated tensor by tensor from snapshots. Forward passes on held-out
examples decide whether a jump is kept; a jump without gain is reverted bit for bit. docs/forecast.md describes the
method and its results.
"""
import contextlib
import copy
import math
import time
from dataclasses import asdict, dataclass, field

import numpy as np
import torch

from .. import _core
from .._errors import InputError
from ._path import Mlp, Path, copied

CONTROLS = ("none", "zero", "random", "lr", "ema", "lawa")
MOMENTS = ("keep", "decay", "reset")
DIRECTIONS = ("ridge", "mlp")
TAUS = (0.5, 1.0, 2.0)
FEATURES = 6  # 1, share explained, cosine of the last two differences, slope, last reward, age
CALM, CAUTION, WARNING, CRITICAL = range(4)
MOST_REWARD, QUIET_SPACINGS = 8.0, 5


@dataclass
class Options:
    """control: none (jumps), zero (jumps of length 0), random (jumps of equal length in a random direction), lr (all
    steps after the warm-up at rate_factor times the rate), ema or lawa (averages, which evaluating() puts in place).
    snapshots: their number K; spacing: steps between them. horizons: lengths of jumps in steps, one arm of the bandit
    each. held_out_cost: cost of a held-out loss in gradient steps, its examples / (3 * examples of a batch). moments:
    effect of a jump on the optimiser's running means. bf16_snapshots: stores differences of snapshots in bfloat16,
    half the memory of f32; the newest snapshot is exact. directions: ridge (a linear recursion for each tensor) or
    mlp (one small network with mlp_units for all parameters, fitted at each jump to the differences of mlp_samples
    parameters).
    """
    control: str = "none"
    snapshots: int = 5
    spacing: int = 10
    order: int = 2
    ridge: float = 1e-4
    max_growth: float = 1.0
    warm_up: int = 100
    correct: int = 10
    horizons: tuple = (10, 20, 40, 80)
    exploration: float = 0.5
    doubt: float = 1.0
    moments: str = "keep"
    moment_decay: float = 0.5
    max_rollbacks: int = 5
    rate_factor: float = 2.0
    ema_decay: float = 0.99
    seed: int = 0
    held_out_cost: float = 1 / 3
    bf16_snapshots: bool = False
    directions: str = "ridge"
    mlp_units: int = 8
    mlp_samples: int = 512

    def check(self):
        def require(good, what, expected):
            if not good:
                raise InputError(what, "lockstep.forecast.torch", expected)

        require(self.control in CONTROLS, f"control {self.control!r}", ", ".join(CONTROLS))
        require(self.moments in MOMENTS, f"moments {self.moments!r}", ", ".join(MOMENTS))
        require(self.directions in DIRECTIONS, f"directions {self.directions!r}", ", ".join(DIRECTIONS))
        require(self.directions == "ridge" or self.snapshots >= 3, f"{self.snapshots} snapshots", "3 or more for an mlp")
        require(self.mlp_units >= 1, f"mlp_units {self.mlp_units}", "1 or more")
        require(self.mlp_samples >= 8, f"mlp_samples {self.mlp_samples}", "8 or more")
        require(2 <= self.snapshots <= 8, f"{self.snapshots} snapshots", "2 to 8")
        require(self.spacing >= 1, f"spacing {self.spacing}", "1 step or more")
        require(self.order >= 1, f"order {self.order}", "1 or more")
        require(self.ridge >= 0, f"ridge {self.ridge}", "0 or more")
        require(self.correct >= 1, f"correct {self.correct}", "1 step or more")
        require(self.horizons and all(0 < k <= 1000 * self.spacing for k in self.horizons),
                f"horizons {self.horizons}", "more than 0, to 1000 spacings each")
        require(self.rate_factor > 0, f"rate_factor {self.rate_factor}", "more than 0")
        require(0 <= self.ema_decay < 1, f"ema_decay {self.ema_decay}", "0 to less than 1")
        require(0 <= self.moment_decay <= 1, f"moment_decay {self.moment_decay}", "0 to 1")


@dataclass
class Totals:
    """overhead_steps: cost of fits and searches in gradient steps. gain_steps: gain of evaluated jumps in steps, without
    their cost. overhead_seconds: wall-clock time of everything except training steps.
    """
    steps: int = 0
    jumps: int = 0
    accepted: int = 0
    rollbacks: int = 0
    forwards: int = 0
    gain_steps: float = 0.0
    overhead_steps: float = 0.0
    overhead_seconds: float = 0.0


@dataclass
class _Pending:
    arm: int = 0
    horizon: float = 0.0
    before: float = 0.0
    slope: float = 0.0
    cost: float = 0.0
    uncorrected: float = 0.0
    predicted: float = 0.0
    features: list = field(default_factory=list)


def _number(loss):
    return float(loss.detach() if isinstance(loss, torch.Tensor) else loss)


_PARTS = (_core.Bandit, _core.Monitor, _core.Corrector, Path, Mlp)


class PredictiveTrainer:
    """model: a torch.nn.Module, or an iterable of parameters. optimizer: any torch.optim.Optimizer over them.
    held_out: a function without arguments that returns the mean loss (a number or a scalar tensor) of the same
    examples each time, which are not in any training batch; it is called without gradients, in the current mode of
    the model. options: fields of Options. A loss that is not finite or diverges causes a rollback; after
    max_rollbacks an InputError is raised.
    """

    def __init__(self, model, optimizer, held_out, **options):
        try:
            self.options = Options(**options)
        except TypeError as error:
            raise InputError(str(error), "lockstep.forecast.torch", "the fields of Options") from None
        self.options.check()
        self.optimizer, self.held_out = optimizer, held_out
        module = isinstance(model, torch.nn.Module)
        self.parameters = [p for p in (model.parameters() if module else model) if p.requires_grad]
        self.buffers = list(model.buffers()) if module else []
        if not self.parameters or not all(p.is_floating_point() for p in self.parameters):
            raise InputError(f"{len(self.parameters)} parameters", "lockstep.forecast.torch",
                             "one or more, of floating point")
        self.totals, self.phase = Totals(), "warm-up"
        self._bandit = _core.Bandit(len(self.options.horizons) + 1, FEATURES, self.options.exploration)
        self._monitor, self._corrector = _core.Monitor(), _core.Corrector(FEATURES, self.options.doubt)
        self._fits, self._grams, self._average, self._anchor = [], [], None, None
        self._path = None
        if self._jumps or self.options.control == "lawa":
            self._path = Path(self.parameters, self.options.snapshots, self.options.bf16_snapshots)
        self._mlp, self._scales = None, []
        if self.options.directions == "mlp":
            self._mlp = Mlp(min(self.options.order, self.options.snapshots - 2), self.options.mlp_units, self.options.ridge)
        self._pending = None
        self._since = self._left = self._quiet = self._rollbacks_in_a_row = 0
        self._held_loss, self._held_step, self._slope, self._last_reward = 0.0, -1, 0.0, 0.0
        if self._jumps:
            self._keep_anchor()

    @property
    def _jumps(self):
        return self.options.control in ("none", "zero", "random")

    # ── steps ──

    def step(self, closure):
        """Makes a training step, then a jump if one is due. closure: zeroes gradients, computes the loss, calls
        backward() and returns the loss. Returns the loss as a float.
        """
        faster = self.options.control == "lr" and self.totals.steps >= self.options.warm_up
        with torch.enable_grad():
            loss = _number(closure())
        rates = [group["lr"] for group in self.optimizer.param_groups]
        if faster:
            for group in self.optimizer.param_groups:
                group["lr"] = group["lr"] * self.options.rate_factor
        self.optimizer.step()
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self.totals.steps += 1
        begin = time.perf_counter()
        with torch.no_grad():
            if self._jumps:
                self._after_step(self._monitor.observe_loss(loss))
            else:
                if not math.isfinite(loss):
                    raise InputError(f"a loss of {loss}", f"step {self.totals.steps - 1}", "a finite one")
                self._update_average()
        self.totals.overhead_seconds += time.perf_counter() - begin
        return loss

    def _after_step(self, verdict):
        if self._monitor.calm >= 200:
            self._rollbacks_in_a_row = 0
        if verdict == CRITICAL:
            self._roll_back()
            return
        if verdict == WARNING:
            self._quiet = QUIET_SPACINGS * self.options.spacing
        self._quiet = max(self._quiet - 1, 0)
        self._since += 1
        if self.phase == "correct":
            self._left -= 1
            if self._left > 0 or self._judge():
                return
            self.phase, self._since = "full", self.options.spacing
        if self.phase == "warm-up" and self.totals.steps >= self.options.warm_up:
            self.phase, self._since = "full", self.options.spacing
        if self._since >= self.options.spacing:
            self._snapshot(verdict)

    def _snapshot(self, verdict):
        self._since = 0
        if verdict == CALM:
            self._keep_anchor()
        if self.phase == "warm-up":
            return
        self._path.push()
        if self._held_step < 0:
            self._held_loss, self._held_step = self._held(), self.totals.steps
        if self._path.count == self.options.snapshots and self._quiet == 0 and verdict == CALM:
            self.phase = "predict"
            self._decide()
            self.phase = "full" if self._pending is None else "correct"

    def _held(self):
        """The held-out loss; leaves generators and buffers (running statistics) as they were."""
        buffers = [b.clone() for b in self.buffers]
        devices = sorted({p.device.index for p in self.parameters if p.device.type == "cuda"})
        with torch.random.fork_rng(devices=devices):
            loss = _number(self.held_out())
        for buffer, kept in zip(self.buffers, buffers):
            buffer.copy_(kept)
        self.totals.forwards += 1
        self.totals.overhead_steps += self.options.held_out_cost
        return loss

    # ── jumps ──

    def _fit(self):
        self._grams = self._path.grams()
        self._fits = []
        energy = older = both = explained = 0.0
        for gram in self._grams:
            coefficients, share = _core.fit_path(gram.ravel(), len(gram), self.options.order, self.options.ridge,
                                                 self.options.max_growth)
            self._fits.append(coefficients)
            energy += gram[0, 0]
            explained += gram[0, 0] * share
            if len(gram) > 1:
                both, older = both + gram[0, 1], older + gram[1, 1]
        cosine = both / math.sqrt(energy * older) if energy > 0 and older > 0 else 0.0
        if self._mlp is not None and energy > 0:
            self._scales = self._path.scales(self._grams)
            seed = (self.options.seed << 32) + self.totals.steps
            return self._path.fit(self._mlp, self._scales, self.options.mlp_samples, seed), cosine
        return explained / energy if energy > 0 else 0.0, cosine

    def _move(self, intervals):
        """Parameters = the newest snapshot moved by the fits, or at random as far."""
        factors = [np.array(_core.extrapolate(c, len(g), intervals)) for c, g in zip(self._fits, self._grams)]
        if self.options.control == "zero":
            self._path.restore_newest()
        elif self.options.control == "random":
            lengths = [math.sqrt(max(a @ g @ a, 0.0) / max(p.numel(), 1))
                       for a, g, p in zip(factors, self._grams, self.parameters)]
            self._path.scatter(lengths, (self.options.seed << 32) + self.totals.steps)
        elif self._mlp is not None and self._scales:
            self._path.follow(self._mlp, self._scales, intervals, self.options.max_growth)
        else:
            self._path.move(factors)

    def _gain(self, before, after, slope, horizon):
        fallen = before * math.log(before / after) if before > 0 and after > 0 else before - after
        gain = fallen / max(slope, 1e-6 * abs(before) + 1e-300) - self.options.correct
        return min(max(gain, -4 * horizon), 4 * horizon) if math.isfinite(gain) else -4 * horizon

    def _decide(self):
        o, totals = self.options, self.totals
        explained, cosine = self._fit()
        relative = self._slope * o.spacing / max(abs(self._held_loss), 1e-300)
        x = np.array([1, explained, cosine, min(max(1 + math.log10(max(relative, 1e-6)) / 6, 0.0), 1.0),
                      self._last_reward / MOST_REWARD, math.log10(1 + totals.steps) / 6])
        arm = self._bandit.choose(x)
        if arm == 0:
            return
        horizon, spent = float(o.horizons[arm - 1]), totals.overhead_steps
        before = self._held()
        best, tau = before, 0.0
        for candidate in ((1.0,) if o.control == "zero" else TAUS):
            self._move(candidate * horizon / o.spacing)
            loss = self._held()
            if math.isfinite(loss) and (o.control == "zero" or loss < best or not math.isfinite(best)):
                best, tau = loss, candidate
        if totals.steps > self._held_step:
            now = (self._held_loss - before) / (totals.steps - self._held_step)
            self._slope = 0.5 * (self._slope + now) if self._slope > 0 else now
        share = max(self._slope, 0.0) / max(abs(before), 1e-300)
        uncorrected = best - (1 - math.exp(-share * o.correct)) * abs(best)
        predicted = uncorrected + self._corrector.correction(totals.steps, x) * abs(before)
        kept = tau > 0 and (o.control == "zero" or self._gain(before, predicted, self._slope, horizon) > 0)
        totals.jumps += 1
        cost = totals.overhead_steps - spent
        if not kept:
            self._path.restore_newest()
            self._last_reward = -cost / o.spacing
            self._bandit.learn(arm, x, self._last_reward)
            self._held_loss, self._held_step = before, totals.steps
            return
        self._move(tau * horizon / o.spacing)
        totals.accepted += 1
        self._change_moments()
        self._path.clear()
        self._pending = _Pending(arm, horizon, before, self._slope, cost + o.held_out_cost, uncorrected, predicted,
                                 [float(v) for v in x])
        self._left = o.correct

    def _judge(self):
        """Whether it ended in a rollback."""
        jump, x = self._pending, np.array(self._pending.features)
        measured = self._held()
        gain = self._gain(jump.before, measured, jump.slope, jump.horizon)
        reward = (gain - jump.cost) / self.options.spacing
        self._last_reward = min(max(reward, -MOST_REWARD), MOST_REWARD)
        self._bandit.learn(jump.arm, x, self._last_reward)
        self._corrector.learn(self.totals.steps, x, (measured - jump.uncorrected) / max(abs(jump.before), 1e-300))
        self.totals.gain_steps += gain
        self._pending = None
        self._held_loss, self._held_step = measured, self.totals.steps
        verdict = self._monitor.observe_prediction(jump.predicted, measured, jump.before)
        if verdict == CRITICAL:
            self._roll_back()
            return True
        if verdict == WARNING:
            self._quiet = QUIET_SPACINGS * self.options.spacing
        return False

    # ── state ──

    def _put(self, values):
        with torch.no_grad():
            for p, value in zip(self.parameters, values):
                p.copy_(value)

    def _keep_anchor(self):
        with torch.no_grad():
            self._anchor = copied((self.parameters, self.buffers, self.optimizer.state_dict()), self._anchor)

    def _roll_back(self):
        self._rollbacks_in_a_row += 1
        if self._rollbacks_in_a_row > self.options.max_rollbacks:
            raise InputError(f"the loss diverges again after {self.options.max_rollbacks} rollbacks",
                             f"step {self.totals.steps - 1}", "a lower learning rate")
        parameters, buffers, optimizer = self._anchor
        self._put(parameters)
        for buffer, kept in zip(self.buffers, buffers):
            buffer.copy_(kept)
        rates = [group["lr"] for group in self.optimizer.param_groups]
        self.optimizer.load_state_dict(copy.deepcopy(optimizer))
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate  # the schedule continues
        if self._pending is not None:
            self._bandit.learn(self._pending.arm, np.array(self._pending.features), -MOST_REWARD)
            self._last_reward, self._pending = -MOST_REWARD, None
        self._path.clear()
        self._monitor.begin_anew()
        self.phase = "warm-up" if self.phase == "warm-up" else "full"
        self._since, self._quiet, self._held_step = 0, QUIET_SPACINGS * self.options.spacing, -1
        self.totals.rollbacks += 1

    def _change_moments(self):
        if self.options.moments == "keep":
            return
        factor = self.options.moment_decay if self.options.moments == "decay" else 0.0
        for p in self.parameters:
            state = self.optimizer.state.get(p, {})
            for name, value in state.items():
                if isinstance(value, torch.Tensor) and value.shape == p.shape and value.is_floating_point() \
                        and not (name == "step" and p.dim() == 0):
                    value.mul_(factor)
                elif name == "step" and factor == 0:
                    state[name] = torch.zeros_like(value) if isinstance(value, torch.Tensor) else 0

    def _update_average(self):
        o = self.options
        if self.totals.steps < o.warm_up:
            return
        if o.control == "ema":
            if self._average is None:
                self._average = [p.detach().clone() for p in self.parameters]
            else:
                for a, p in zip(self._average, self.parameters):
                    a.lerp_(p, 1 - o.ema_decay)
        elif o.control == "lawa":
            self._since += 1
            if not self._path.count or self._since >= o.spacing:
                self._path.push()
                self._since = 0

    @contextlib.contextmanager
    def evaluating(self):
        """A context with the averaged parameters of ema and lawa; otherwise the parameters are unchanged."""
        average = self._path.average() if self.options.control == "lawa" and self._path.count else self._average
        kept = None if average is None else [p.detach().clone() for p in self.parameters]
        try:
            if kept is not None:
                self._put(average)
            yield self
        finally:
            if kept is not None:
                self._put(kept)

    def state_dict(self):
        """The state of the trainer, for load_state_dict(); those of the model and the optimiser are separate."""
        kept = {k: v for k, v in self.__dict__.items()
                if k not in ("optimizer", "held_out", "parameters", "buffers", "options")}
        state = copy.deepcopy({k: asdict(v) if isinstance(v, (Totals, _Pending)) else
                               v.state() if isinstance(v, _PARTS) else v for k, v in kept.items()})
        state["options"] = asdict(self.options)
        return state

    def load_state_dict(self, state):
        """Continues from a state. Raises InputError for other options or other parameters."""
        now = asdict(self.options)
        for name, value in state["options"].items():
            if now.get(name) != value and list(np.atleast_1d(now.get(name))) != list(np.atleast_1d(value)):
                raise InputError(f"a state of {name} {value}", "lockstep.forecast.torch", f"{now.get(name)}")
        shapes = [tuple(p.shape) for p in self.parameters]
        if state["_anchor"] and [tuple(t.shape) for t in state["_anchor"][0]] != shapes:
            raise InputError("a state of other parameters", "lockstep.forecast.torch", f"shapes {shapes}")
        for name, value in copy.deepcopy({k: v for k, v in state.items() if k != "options"}).items():
            target = getattr(self, name)
            if name == "_pending":
                self._pending = None if value is None else _Pending(**value)
            elif isinstance(target, Totals):
                self.totals = Totals(**value)
            elif isinstance(target, _PARTS):
                target.restore(value)
            else:
                setattr(self, name, value)
