"""Trains a neural field u(x, t) on Burgers' equation, once with the loss of lockstep and once with the same loss in torch.

    python examples/python/burgers.py [--steps 300] [--cells 128] [--device cpu]

The network is evaluated on a grid at three levels of time; the loss is the mean square of the residual
u_t + u u_x - nu u_xx by central differences, plus the fit to the start. Both runs begin with the same weights; the two
loss curves and the times of a step are printed.
"""
import argparse
import math
import time

import torch

import lockstep.torch as hooks
from lockstep import pde

NU = 0.05


def make_loss(cells, h, dt):
    burgers = pde.System(1)
    u = burgers.field("u")
    burgers.residual("burgers", burgers.dt(u) + burgers.at(u) * burgers.dx(u) - NU * burgers.laplacian(u))
    return pde.Loss(burgers, pde.Mesh(cells, h, dt))


def loss_in_torch(u0, u1, u2, h, dt):
    right, left = torch.roll(u1, -1), torch.roll(u1, 1)
    r = (u2 - u0) / (2 * dt) + u1 * (right - left) / (2 * h) - NU * (right - 2 * u1 + left) / h ** 2
    return (r * r).mean()


class Field(torch.nn.Module):
    """An MLP on (sin x, cos x, t): periodic in x."""

    def __init__(self, width=32):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, width), torch.nn.Tanh(), torch.nn.Linear(width, width),
                                          torch.nn.Tanh(), torch.nn.Linear(width, 1))

    def forward(self, x, t):
        return self.layers(torch.stack([torch.sin(x), torch.cos(x), t.expand_as(x)], -1))[..., 0]


def train(residual_loss, cells, steps, device, dt):
    torch.manual_seed(1)
    field = Field().to(device)
    optimiser = torch.optim.Adam(field.parameters(), lr=3e-3)
    x = torch.arange(cells, device=device) * (2 * math.pi / cells)
    times = torch.linspace(0.1, 0.9, 8, device=device)
    curve, seconds = [], 0.0
    for step in range(steps):
        t = times[step % len(times)]
        optimiser.zero_grad()
        u0, u1, u2 = (field(x, t + k * dt) for k in (-1, 0, 1))
        start = ((field(x, torch.zeros((), device=device)) - torch.sin(x)) ** 2).mean()
        if device != "cpu":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        residual = residual_loss(u0, u1, u2)
        seconds += time.perf_counter() - begin
        loss = residual + 10 * start
        loss.backward()
        optimiser.step()
        curve.append(loss.item())
    return curve, seconds / steps


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--cells", type=int, default=128)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(arguments)
    h, dt = 2 * math.pi / options.cells, 0.05
    loss = make_loss(options.cells, h, dt)
    ours, our_time = train(lambda *u: hooks.pde_loss(loss, *u), options.cells, options.steps, options.device, dt)
    theirs, their_time = train(lambda *u: loss_in_torch(*u, h, dt), options.cells, options.steps, options.device, dt)
    for k in range(0, options.steps, max(options.steps // 10, 1)):
        print(f"step {k:5d}  loss: lockstep {ours[k]:.6f}  torch {theirs[k]:.6f}")
    print(f"loss part of a step: lockstep {1e3 * our_time:.3f} ms (with its gradients), torch {1e3 * their_time:.3f} ms (forward)")
    return ours, theirs


if __name__ == "__main__":
    main()
