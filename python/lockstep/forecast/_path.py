"""Snapshots of PyTorch parameters, what follows from them, and copies of states: parts of lockstep.forecast.torch."""
import copy
import math

import numpy as np
import torch

from .._errors import InputError


def copy_all(to, values):
    if hasattr(torch, "_foreach_copy_"):  # one launch for many; from PyTorch 2.1 on
        if to:
            torch._foreach_copy_(to, values)
        return
    for target, value in zip(to, values):
        target.copy_(value)


def _tensors(value):
    """Those in nested dictionaries, lists and tuples, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _tensors(inner)


def copied(value, old):
    """A deep copy whose tensors are those of the earlier copy `old` where they fit: no allocation, few launches."""
    pool, pairs = _tensors(old), []

    def copy_of(v):
        if isinstance(v, dict):
            return {k: copy_of(inner) for k, inner in v.items()}
        if isinstance(v, (list, tuple)):
            return type(v)(copy_of(inner) for inner in v)
        if not isinstance(v, torch.Tensor):
            return copy.deepcopy(v)
        kept = next(pool, None)
        if kept is None or (kept.shape, kept.dtype, kept.device) != (v.shape, v.dtype, v.device):
            return v.detach().clone()
        pairs.append((kept, v.detach()))
        return kept

    made = copy_of(value)
    for kind in {(k.dtype, k.device) for k, _ in pairs}:
        alike = [pair for pair in pairs if (pair[0].dtype, pair[0].device) == kind]
        copy_all([k for k, _ in alike], [v for _, v in alike])
    return made


class Mlp:
    """The next difference of any parameter from its last `taps`, newest first, in units of its tensor's differences:
    a x + v tanh(B x + b). Fitted by Levenberg-Marquardt, from where the last fit ended."""
    STEPS, DAMPING = 6, 1e-3

    def __init__(self, taps, units, ridge):
        draws = np.random.default_rng(1)
        self.taps, self.units, self.ridge, self.fitted = taps, units, ridge, False
        self.w = np.concatenate([np.zeros(taps), draws.normal(size=units * taps), draws.normal(size=units), np.zeros(units)])

    def parts(self):
        t, u = self.taps, self.units
        return self.w[:t], self.w[t:t + u * t].reshape(u, t), self.w[t + u * t:-u], self.w[-u:]

    def value(self, x):
        a, inner, bias, v = self.parts()
        return x @ a + np.tanh(x @ inner.T + bias) @ v

    def _slopes(self, x):
        _, inner, bias, v = self.parts()
        h = np.tanh(x @ inner.T + bias)
        down = (1 - h * h) * v
        return np.concatenate([x, (down[:, :, None] * x[:, None, :]).reshape(len(x), -1), down, h], axis=1)

    def fit(self, x, y):
        """Share of y's squares that is explained."""
        if not self.fitted:
            gram = x.T @ x
            self.w[:self.taps] = np.linalg.solve(gram + self.ridge * np.trace(gram) / self.taps * np.eye(self.taps) +
                                                 1e-300 * np.eye(self.taps), x.T @ y)
            self.fitted = True
        penalty, damping = self.ridge * len(y), self.DAMPING

        def cost():
            return ((y - self.value(x)) ** 2).sum() + penalty * (self.w[self.taps:] ** 2).sum() * 1e-3

        best = cost()
        for _ in range(self.STEPS):
            slopes, kept = self._slopes(x), self.w.copy()
            pull = np.zeros_like(self.w)
            pull[self.taps:] = 1e-3 * penalty
            normal = slopes.T @ slopes + np.diag(pull)
            step = np.linalg.solve(normal + damping * (np.diag(np.diag(normal)) + 1e-12 * np.eye(len(pull))),
                                   slopes.T @ (y - self.value(x)) - pull * self.w)
            self.w = self.w + step
            now = cost()
            if now < best:
                best, damping = now, damping / 5
            else:
                self.w, damping = kept, damping * 10
        whole = (y ** 2).sum()
        return float(min(max(1 - ((y - self.value(x)) ** 2).sum() / whole, 0), 1)) if whole > 0 else 0.0

    def state(self):
        return {"w": self.w.copy(), "fitted": self.fitted}

    def restore(self, state):
        self.w, self.fitted = np.array(state["w"]), state["fitted"]


class FlatPath:
    """Snapshots of tensors of one type and device: the newest, and the differences of neighbours. Flat buffers in rows of
    CHUNK elements, none of which holds two tensors, so that a snapshot, a Gram matrix and a move are few launches each."""
    CHUNK = 8192

    def __init__(self, tensors, most, narrow):
        self.tensors, first = tensors, tensors[0]
        self.rows = [-(-max(t.numel(), 1) // self.CHUNK) for t in tensors]
        self.begins = [0, *np.cumsum(self.rows)[:-1].tolist()]
        shape = (sum(self.rows), self.CHUNK)
        self.newest = torch.zeros(shape, dtype=first.dtype, device=first.device)
        self.ring = torch.zeros((most - 1, *shape), dtype=torch.bfloat16 if narrow else first.dtype, device=first.device)
        self.sums = torch.float64 if first.dtype == torch.float64 else torch.float32

    def views(self, flat):
        return [flat[b:b + r].view(-1)[:t.numel()].view(t.shape) for b, r, t in zip(self.begins, self.rows, self.tensors)]

    def push(self, row):
        """row: of the ring, that takes the difference; None: there is no earlier snapshot."""
        before = None if row is None else self.newest.clone()
        copy_all(self.views(self.newest), [t.detach() for t in self.tensors])
        if row is not None:
            torch.sub(self.newest, before, out=self.ring[row])

    def grams(self, count):
        """Of the first `count` rows of the ring: (tensors, count, count)."""
        d = self.ring[:count].transpose(0, 1)
        if d.dtype == torch.bfloat16 and d.device.type == "cuda" and "dtype" in torch.ops.aten.bmm.overloads():
            products = torch.bmm(d, d.transpose(1, 2), out_dtype=torch.float32)
        else:
            d = d.to(self.sums)
            products = torch.bmm(d, d.transpose(1, 2))
        return np.add.reduceat(products.cpu().numpy().astype(float), self.begins, axis=0)

    def combined(self, factors):
        """Sum over the ring's rows of factors (tensors, rows) times differences."""
        a = torch.from_numpy(np.repeat(np.asarray(factors), self.rows, axis=0)).to(self.sums).to(self.newest.device)
        total = self.ring[0] * a[:, :1]
        for j in range(1, a.shape[1]):
            total += self.ring[j] * a[:, j:j + 1]
        return total

    def samples(self, count, rows, scales, generator):
        """Differences of `count` parameters drawn at random: (count, rows of the ring in this order), by their scales."""
        sizes = [t.numel() for t in self.tensors]
        drawn = np.sort(generator.integers(0, sum(sizes), count))
        which = np.searchsorted(np.cumsum(sizes), drawn, side="right")
        within = drawn - np.concatenate([[0], np.cumsum(sizes)])[which]
        places = torch.from_numpy(np.asarray(self.begins)[which] * self.CHUNK + within).to(self.newest.device)
        found = self.ring.view(len(self.ring), -1)[:, places].double().cpu().numpy()[rows].T
        return found / np.maximum(np.asarray(scales)[which], 1e-300)[:, None]

    def followed(self, mlp, rows, scales, intervals, most):
        """The sum of the next differences that the network predicts, none beyond `most` times the largest it comes from."""
        a, inner, bias, v = (w.tolist() for w in mlp.parts())
        unit = torch.from_numpy(np.repeat(np.asarray(scales), self.rows)[:, None]).to(self.sums).to(self.newest.device)
        x = [self.ring[row].to(self.sums) / unit.clamp_min(1e-30) for row in rows[:mlp.taps]]
        total = torch.zeros_like(x[0])
        while intervals > 0:
            following = sum(w * t for w, t in zip(a, x))
            for row, offset, factor in zip(inner, bias, v):
                following += factor * torch.tanh(sum(w * t for w, t in zip(row, x)) + offset)
            bound = most * torch.stack([t.abs() for t in x]).amax(0)
            following = torch.clamp(following, -bound, bound)
            total += min(intervals, 1.0) * following
            x, intervals = [following, *x[:-1]], intervals - 1
        return total * unit

    def signs(self, lengths, seed):
        """lengths (tensors) with a random sign for each element."""
        generator = torch.Generator(self.newest.device).manual_seed(seed)
        draws = torch.randint(0, 2, self.newest.shape, generator=generator, device=self.newest.device, dtype=torch.int8)
        sizes = torch.from_numpy(np.repeat(np.asarray(lengths), self.rows)[:, None]).to(self.sums).to(self.newest.device)
        return (draws * 2 - 1) * sizes


class Path:
    """The last snapshots of parameters. Differences count from the newest; they are in a ring of each FlatPath."""

    def __init__(self, parameters, most, narrow):
        self.most, self.count, self.head = most, 0, 0
        self.shapes = [tuple(p.shape) for p in parameters]
        kinds = {}
        for k, p in enumerate(parameters):
            kinds.setdefault((p.dtype, p.device), []).append(k)
        self.members = list(kinds.values())
        self.parts = [FlatPath([parameters[k] for k in ks], most, narrow) for ks in self.members]

    def clear(self):
        self.count = 0

    def push(self):
        """The parameters become the newest snapshot."""
        row = None
        if self.count:
            row = self.head = 0 if self.count == 1 else (self.head + 1) % (self.most - 1)
        for part in self.parts:
            part.push(row)
        self.count = min(self.count + 1, self.most)

    def _order(self):
        """Rows of the ring, the newest difference first."""
        return [(self.head - j) % max(self.most - 1, 1) for j in range(self.count - 1)]

    def _of_tensors(self, of_parts):
        found = [None] * len(self.shapes)
        for ks, values in zip(self.members, of_parts):
            for k, value in zip(ks, values):
                found[k] = value
        return found

    def grams(self):
        order = self._order()
        return self._of_tensors(part.grams(len(order))[:, order][:, :, order] for part in self.parts)

    def _put(self, part, moved):
        copy_all([t.detach() for t in part.tensors], part.views(moved))

    def restore_newest(self):
        for part in self.parts:
            self._put(part, part.newest)

    def move(self, factors):
        """Parameters = the newest snapshot + factors (tensors, differences) times differences."""
        back = np.argsort(self._order())
        for ks, part in zip(self.members, self.parts):
            self._put(part, part.newest + part.combined([factors[k][back] for k in ks]))

    def scales(self, grams):
        """Root mean squares of the differences, tensor by tensor."""
        return [math.sqrt(np.trace(g) / len(g) / max(math.prod(shape), 1)) for g, shape in zip(grams, self.shapes)]

    def fit(self, mlp, scales, count, seed):
        """Fits the network to `count` parameters of each part; the share that it explains."""
        generator, order, x, y = np.random.default_rng(seed), self._order(), [], []
        for ks, part in zip(self.members, self.parts):
            d = part.samples(count, order, [scales[k] for k in ks], generator)
            for first in range(d.shape[1] - mlp.taps):
                x.append(d[:, first + 1:first + 1 + mlp.taps])
                y.append(d[:, first])
        return mlp.fit(np.concatenate(x), np.concatenate(y))

    def follow(self, mlp, scales, intervals, most):
        for ks, part in zip(self.members, self.parts):
            self._put(part, part.newest + part.followed(mlp, self._order(), [scales[k] for k in ks], intervals, most))

    def scatter(self, lengths, seed):
        for ks, part in zip(self.members, self.parts):
            self._put(part, part.newest + part.signs([lengths[k] for k in ks], seed))

    def average(self):
        """The mean of the snapshots, tensor by tensor."""
        order, n = self._order(), self.count
        made = []
        for part in self.parts:
            mean = part.newest
            for j, row in enumerate(order):
                mean = mean - part.ring[row] * ((n - 1 - j) / n)
            made.append(part.views(mean))
        return self._of_tensors(made)

    def state(self):
        return {"shapes": self.shapes, "count": self.count, "head": self.head,
                "newest": [p.newest.clone() for p in self.parts], "ring": [p.ring.clone() for p in self.parts]}

    def restore(self, state):
        if [tuple(s) for s in state["shapes"]] != self.shapes:
            raise InputError("a state of other parameters", "lockstep.forecast.torch", f"shapes {self.shapes}")
        self.count, self.head = state["count"], state["head"]
        for part, newest, ring in zip(self.parts, state["newest"], state["ring"]):
            part.newest.copy_(newest)
            part.ring.copy_(ring)
