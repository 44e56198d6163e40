"""Logs of real training runs: multilayer perceptrons on MNIST in NumPy, for the tests of learning curves and of the
state encoder (tests/forecast/data).

    python3 bench/peers/mnist_mlp_logs.py --images t10k-images-idx3-ubyte.gz --labels t10k-labels-idx1-ubyte.gz --out DIR

DIR/sweep.csv     16 runs of one budget: learning rates x widths, one column each
DIR/develop.csv   24 runs of mixed optimisers, rates, widths, batches: what the forecaster was developed on
DIR/held_out.csv  24 runs of other draws of the same, never looked at while developing
DIR/develop_more.csv, DIR/held_out_more.csv  24 runs each of further draws, for the bands' constants and their judgement
DIR/full_log.csv  one run with every signal that the state encoder reads, every second step

A loss is the mean of the cross-entropies of the ten mini-batches since the last row. The first 8,000 images train.
"""
import argparse
import gzip
import os

import numpy as np

ROW = 10  # steps between two rows


def read_idx(path, head):
    with gzip.open(path, "rb") as file:
        return np.frombuffer(file.read()[head:], np.uint8)


class Mlp:
    """784 - width - 10 with ReLU; parameters in four tensors."""

    def __init__(self, width, rng):
        self.w = [rng.normal(0, np.sqrt(2 / 784), (784, width)).astype(np.float32), np.zeros(width, np.float32),
                  rng.normal(0, np.sqrt(1 / width), (width, 10)).astype(np.float32), np.zeros(10, np.float32)]

    def gradient(self, x, labels):
        """Mean loss, gradient, and the trace of the covariance of single examples' gradients (for weights of the
        dense layers |a|^2 |d|^2 summed over the batch, less the mean's square)."""
        w1, b1, w2, b2 = self.w
        a = x @ w1 + b1
        h = np.maximum(a, 0)
        z = h @ w2 + b2
        z -= z.max(1, keepdims=True)
        p = np.exp(z)
        p /= p.sum(1, keepdims=True)
        n = len(labels)
        loss = -np.log(np.maximum(p[np.arange(n), labels], 1e-30)).mean()
        d = p
        d[np.arange(n), labels] -= 1
        dh = (d @ w2.T) * (a > 0)
        g = [x.T @ dh / n, dh.mean(0), h.T @ d / n, d.mean(0)]
        squares = ((1 + (x * x).sum(1)) * (dh * dh).sum(1) + (1 + (h * h).sum(1)) * (d * d).sum(1)).mean()
        return loss, g, max(squares - sum(float((t * t).sum()) for t in g), 0.0)


def train(x, labels, steps, width, batch, lr, optimiser, seed, schedule="constant", warmup=0):
    """Yields a dictionary of signals a step."""
    rng = np.random.default_rng(seed)
    net = Mlp(width, rng)
    m, v = [np.zeros_like(t) for t in net.w], [np.zeros_like(t) for t in net.w]
    for step in range(1, steps + 1):
        pick = rng.integers(0, len(labels), batch)
        loss, g, variance = net.gradient(x[pick], labels[pick])
        rate = lr * min(1.0, step / warmup) if warmup else lr
        if schedule == "cosine":
            rate *= 0.5 * (1 + np.cos(np.pi * step / steps))
        update = []
        for t, gt in enumerate(g):
            m[t] = 0.9 * m[t] + 0.1 * gt
            v[t] = 0.999 * v[t] + 0.001 * gt * gt
            if optimiser == "adam":
                update.append(-rate * (m[t] / (1 - 0.9**step)) / (np.sqrt(v[t] / (1 - 0.999**step)) + 1e-8))
            elif optimiser == "momentum":
                update.append(-rate * 10 * m[t])
            else:
                update.append(-rate * gt)
        row = {"step": step, "loss": float(loss)}
        norm = lambda tensors: float(np.sqrt(sum(float((t * t).sum()) for t in tensors)))
        row.update(grad_norm=norm(g), update_norm=norm(update), param_norm=norm(net.w), lr=rate)
        flat_m, flat_v = np.concatenate([t.ravel() for t in m]), np.concatenate([t.ravel() for t in v])
        row.update(m_mean=flat_m.mean(), m_std=flat_m.std(), v_mean=flat_v.mean(), v_std=flat_v.std(),
                   beta1_t=0.9**step, beta2_t=0.999**step, phase=0 if step <= warmup else 1,
                   phase_step=step if step <= warmup else step - warmup, grad_var=variance)
        for t in range(4):
            row[f"align_{t}"] = float(-(g[t] * update[t]).sum()) / max(norm([g[t]]) * norm([update[t]]), 1e-30)
            row[f"grad_norm_{t}"] = norm([g[t]])
        for t in range(4):
            net.w[t] += update[t].astype(np.float32)
        yield row


def losses(rows):
    values = np.array([row["loss"] for row in rows])
    return values.reshape(-1, ROW).mean(1)


def write_columns(path, names, columns, comment):
    with open(path, "w") as file:
        file.write("# " + comment + "\n" + ",".join(["step"] + names) + "\n")
        for k in range(len(columns[0])):
            file.write(",".join([str((k + 1) * ROW)] + ["%.5g" % c[k] for c in columns]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("images", "labels", "out"):
        parser.add_argument("--" + name, required=True)
    arguments = parser.parse_args()
    x = read_idx(arguments.images, 16).reshape(-1, 784)[:8000].astype(np.float32) / 255
    labels = read_idx(arguments.labels, 8)[:8000].astype(np.int64)
    os.makedirs(arguments.out, exist_ok=True)
    out = lambda name: os.path.join(arguments.out, name)

    full = [row for row in train(x, labels, 600, 32, 64, 2e-3, "adam", 5, "cosine", warmup=60)][::2]
    with open(out("full_log.csv"), "w") as file:
        file.write(",".join(full[0]) + "\n")
        for row in full:
            file.write(",".join("%.6g" % v for v in row.values()) + "\n")

    names, columns = [], []
    for lr in (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1):
        for width in (16, 64):
            names.append(f"lr{lr:g}_w{width}")
            columns.append(losses(train(x, labels, 1500, width, 64, lr, "adam", len(names))))
    write_columns(out("sweep.csv"), names, columns, "MLPs on MNIST, Adam, batch 64: learning rates x widths")

    for name, seed in (("develop", 100), ("held_out", 200), ("develop_more", 300), ("held_out_more", 400)):
        names, columns = [], []
        rng = np.random.default_rng(seed)
        for k in range(24):
            optimiser = ("adam", "sgd", "momentum")[k % 3]
            lr = float(10 ** rng.uniform(-4, -2)) * (1 if optimiser == "adam" else 30 if optimiser == "sgd" else 5)
            width, batch = int(rng.choice([8, 16, 32, 64])), int(rng.choice([16, 32, 64, 128]))
            names.append(f"{optimiser}_{k}")
            columns.append(losses(train(x, labels, 1500, width, batch, lr, optimiser, seed + k)))
        write_columns(out(name + ".csv"), names, columns, "MLPs on MNIST of mixed optimisers, rates, widths, batches")


if __name__ == "__main__":
    main()
