"""The predictive trainer for PyTorch models."""
import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from lockstep._errors import InputError  # noqa: E402
from lockstep.forecast._path import Path  # noqa: E402
from lockstep.forecast.torch import PredictiveTrainer  # noqa: E402

QUICK = dict(snapshots=5, spacing=4, order=3, ridge=1e-8, warm_up=20, correct=4, horizons=(8, 16, 32),
             held_out_cost=1 / 6)


class Bowl:
    """1/2 sum of curvature (x - target)^2 of two tensors and a number, by a few modes, under momentum."""

    def __init__(self, rate=0.3, optimizer="sgd", dtype=torch.float64, noise=0.0):
        self.x = [torch.nn.Parameter(torch.cos(3.0 * torch.arange(n, dtype=dtype)) + 2) for n in (30, 1, 11)]
        self.x[1] = torch.nn.Parameter(self.x[1].detach().reshape(()))
        self.curvature = [0.01 * 10 ** (torch.arange(x.numel(), dtype=dtype) * 7 % 3) for x in self.x]
        self.noise, self.calls, self.break_at = noise, 0, None
        self.optimizer = torch.optim.SGD(self.x, lr=rate, momentum=0.5) if optimizer == "sgd" else \
            torch.optim.Adam(self.x, lr=rate)

    def loss(self):
        return sum((c * (x.reshape(-1) - 0.3) ** 2).sum() / 2 for c, x in zip(self.curvature, self.x))

    def closure(self):
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        for k, x in enumerate(self.x):
            x.grad += self.noise * torch.sin(torch.arange(x.numel(), dtype=x.dtype) * 31 + self.calls * 97 + k).reshape(x.shape)
        self.calls += 1
        if self.calls == self.break_at:
            loss = loss * float("nan")
            with torch.no_grad():
                for x in self.x:
                    x.fill_(float("nan"))
        return loss

    def trainer(self, **options):
        return PredictiveTrainer(self.x, self.optimizer, lambda: self.loss(), **{**QUICK, **options})

    def values(self):
        return [x.detach().clone() for x in self.x]


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a, b))


def steps_to(run, trainer, target):
    for k in range(1000):
        if float(run.loss().detach()) < target:
            return k
        trainer.step(run.closure)
    return 1000


@pytest.mark.parametrize("directions", ["ridge", "mlp"])
def test_gains_steps_on_a_quadratic(directions):
    plain, jumping = Bowl(), Bowl()
    walked = steps_to(plain, plain.trainer(warm_up=10 ** 6), 1e-3)
    trainer = jumping.trainer(directions=directions)
    jumped = steps_to(jumping, trainer, 1e-3)
    assert trainer.totals.accepted > 0
    assert jumped + trainer.totals.overhead_steps < 0.8 * walked
    assert trainer.totals.gain_steps > trainer.totals.overhead_steps


def test_linear_dynamics_are_extrapolated():
    run = Bowl()
    run.optimizer = torch.optim.SGD(run.x, lr=0.5)
    trainer = run.trainer(ridge=1e-14, snapshots=6)
    with torch.no_grad():
        for k in range(6):
            trainer._path.push()
            for _ in range(2 if k < 5 else 0):
                with torch.enable_grad():
                    run.closure()
                run.optimizer.step()
        explained, cosine = trainer._fit()
        start = run.values()
        trainer._move(4.0)
    moved = run.values()
    trainer._put(start)
    for _ in range(8):
        run.closure()
        run.optimizer.step()
    assert explained == pytest.approx(1, abs=1e-6) and cosine > 0.9
    for a, b in zip(moved, run.values()):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


def test_a_shared_network_learns_a_nonlinear_recursion():
    """Every parameter's difference follows d' = 0.5 d + 0.2 tanh(2 d): slopes from 0.9 near 0 to 0.5 far from it. Moves
    are the recursion's own; a linear fit cannot follow both."""
    draws = np.random.default_rng(3)
    first = draws.uniform(-1.5, 1.5, 400)
    misses = {}
    for directions in ("ridge", "mlp"):
        x = [torch.nn.Parameter(torch.zeros(400, dtype=torch.float64))]
        trainer = PredictiveTrainer(x, torch.optim.SGD(x, lr=0.1), lambda: 0.0, snapshots=6, order=1, spacing=1,
                                    directions=directions, ridge=1e-8)
        d, trainer.totals.steps = first.copy(), 1
        for _ in range(6):
            trainer._path.push()
            with torch.no_grad():
                x[0] += torch.from_numpy(d)
            d = 0.5 * d + 0.2 * np.tanh(2 * d)
        with torch.no_grad():  # the last push came before the last move: take it back
            trainer._path.restore_newest()
            for _ in range(8):
                explained, _ = trainer._fit()
            trainer._move(3.0)
            moved = (x[0] - trainer._path.parts[0].views(trainer._path.parts[0].newest)[0]).numpy()
        d = first.copy()
        for _ in range(5):
            d = 0.5 * d + 0.2 * np.tanh(2 * d)
        exact = np.zeros(400)
        for _ in range(3):
            exact += d
            d = 0.5 * d + 0.2 * np.tanh(2 * d)
        misses[directions] = np.abs(moved - exact).max() / np.abs(exact).max()
        assert explained > 0.98
    assert misses["mlp"] < 0.005 < misses["ridge"], misses


def test_zero_jumps_touch_nothing():
    zero, plain = Bowl(), Bowl()
    a, b = zero.trainer(control="zero"), plain.trainer(warm_up=10 ** 6)
    for _ in range(150):
        a.step(zero.closure)
        b.step(plain.closure)
    assert a.totals.jumps > 0 and same(zero.values(), plain.values())


def test_refused_jumps_leave_parameters_buffers_and_generators():
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x = torch.randn(8, 3)
    worse = iter(range(10 ** 6))
    trainer = PredictiveTrainer(model, optimizer, lambda: model(x).sum() * 0 + next(worse), warm_up=1, spacing=1,
                                snapshots=3, horizons=(2,))
    state = torch.get_rng_state()

    def closure():
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        return loss

    twin = copy.deepcopy(model)
    twin_optimizer = torch.optim.Adam(twin.parameters(), lr=1e-2)
    for _ in range(12):
        trainer.step(closure)
    after = torch.get_rng_state()
    torch.set_rng_state(state)
    for _ in range(12):
        twin_optimizer.zero_grad()
        (twin(x) ** 2).mean().backward()
        twin_optimizer.step()
    assert trainer.totals.jumps > 0 and trainer.totals.accepted == 0
    assert torch.equal(after, torch.get_rng_state())
    for a, b in zip(model.state_dict().values(), twin.state_dict().values()):
        assert torch.equal(a, b)


@pytest.mark.parametrize("rule,factor", [("keep", 1.0), ("decay", 0.25), ("reset", 0.0)])
def test_moments(rule, factor):
    run, twin = Bowl(0.01, "adam"), Bowl(0.01, "adam")
    trainer = run.trainer(control="zero", moments=rule, moment_decay=0.25)
    other = twin.trainer(warm_up=10 ** 6)
    while trainer.totals.accepted == 0:
        trainer.step(run.closure)
        other.step(twin.closure)
    for x, y in zip(run.x, twin.x):
        a, b = run.optimizer.state[x], twin.optimizer.state[y]
        for name in ("exp_avg", "exp_avg_sq"):
            assert torch.equal(a[name], factor * b[name])
        assert float(a["step"]) == (0 if rule == "reset" else float(b["step"]))


@pytest.mark.parametrize("control,directions", [("none", "ridge"), ("none", "mlp"), ("random", "ridge"), ("ema", "ridge"),
                                                 ("lawa", "ridge")])
def test_resumed_is_uninterrupted(control, directions):
    whole = Bowl(0.1, noise=0.05)
    trainer = whole.trainer(control=control, directions=directions)
    saved = None
    for k in range(120):
        if k == 61:
            saved = copy.deepcopy((trainer.state_dict(), whole.values(), whole.optimizer.state_dict(), whole.calls))
        trainer.step(whole.closure)
    part = Bowl(0.1, noise=0.05)
    resumed = part.trainer(control=control, directions=directions)
    with torch.no_grad():
        for x, value in zip(part.x, saved[1]):
            x.copy_(value)
    part.optimizer.load_state_dict(saved[2])
    part.calls = saved[3]
    resumed.load_state_dict(saved[0])
    for _ in range(61, 120):
        resumed.step(part.closure)
    assert same(whole.values(), part.values())
    assert (trainer.totals.jumps, trainer.totals.gain_steps) == (resumed.totals.jumps, resumed.totals.gain_steps)
    with trainer.evaluating(), resumed.evaluating():
        assert same(whole.values(), part.values())
    with pytest.raises(InputError, match="spacing"):
        part.trainer(control=control, directions=directions, spacing=5).load_state_dict(saved[0])


def test_divergence_is_rolled_back():
    run = Bowl()
    run.break_at = 100
    trainer = run.trainer()
    for _ in range(200):
        trainer.step(run.closure)
    assert trainer.totals.rollbacks == 1 and float(run.loss().detach()) < 1
    hopeless = Bowl(1e6)
    with pytest.raises(InputError, match="rollbacks"):
        trainer = hopeless.trainer()
        for _ in range(2000):
            trainer.step(hopeless.closure)


def test_rate_and_averages():
    fast, plain = Bowl(0.2), Bowl(0.4)
    a, b = fast.trainer(control="lr", warm_up=0), plain.trainer(warm_up=10 ** 6)
    for _ in range(30):
        a.step(fast.closure)
        b.step(plain.closure)
    assert same(fast.values(), plain.values()) and fast.optimizer.param_groups[0]["lr"] == 0.2
    run = Bowl(0.2)
    trainer = run.trainer(control="lawa", warm_up=4, spacing=2, snapshots=3)
    path = []
    for _ in range(11):
        trainer.step(run.closure)
        path.append(run.values())
    before = run.values()
    with trainer.evaluating():
        for k, x in enumerate(run.values()):
            torch.testing.assert_close(x, (path[5][k] + path[7][k] + path[9][k]) / 3)
    assert same(before, run.values())


def test_bad_options_are_named():
    for wrong in (dict(control="more"), dict(snapshots=1), dict(moments="lose"), dict(horizons=()), dict(colour=3), dict(directions="up"),
                  dict(directions="mlp", snapshots=2)):
        with pytest.raises(InputError):
            Bowl().trainer(**wrong)
    with pytest.raises(InputError, match="parameters"):
        PredictiveTrainer([], None, None)


@pytest.mark.parametrize("narrow", [False, True])
def test_paths_of_unlike_tensors(narrow):
    """Gram matrices, moves and averages of tensors of several sizes and types, by the ring's rows in every rotation."""
    torch.manual_seed(5)
    tensors = [torch.randn(n, dtype=kind) for n, kind in ((9000, torch.float32), (3, torch.float64), (1, torch.float32))]
    path, history = Path(tensors, 4, narrow), []
    for count in range(1, 8):
        for x in tensors:
            x += 0.01 * torch.randn_like(x)
        history.insert(0, [x.clone() for x in tensors])
        path.push()
        d = [[(a[k] - b[k]).double() for a, b in zip(history[:4], history[1:4])] for k in range(3)]
        if count < 3:
            continue
        bound = 2 ** -8 if narrow else 1e-6  # of each difference
        for gram, of_tensor in zip(path.grams(), d):
            stacked = torch.stack(of_tensor)
            exact = (stacked @ stacked.T).numpy()
            assert abs(gram - exact).max() <= 3 * bound * abs(exact).max()
        factors = [np.cos(np.arange(len(of_tensor)) + k) for k, of_tensor in enumerate(d)]
        path.move(factors)
        for x, newest, of_tensor, a in zip(tensors, history[0], d, factors):
            delta = sum(float(c) * t for c, t in zip(a, of_tensor))
            most = sum(abs(float(c)) * t.abs() for c, t in zip(a, of_tensor))
            assert ((x.double() - newest.double() - delta).abs() <= bound * most + 1e-6).all()
        path.restore_newest()
        assert same(tensors, history[0])
        for mean, *snapshots in zip(path.average(), *history[:4]):
            assert (mean.double() - sum(s.double() for s in snapshots) / len(snapshots)).abs().max() <= 0.05 * bound + 1e-6
