"""Trains a neural field on a partial differential equation, with the loss of lockstep and with the same loss in torch.

    python examples/python/neural_field.py [--equation burgers|vorticity] [--steps 300] [--cells 128] [--device cpu] [--compile]

An MLP gives fields on a periodic grid at three levels of time; the loss is the mean square of the residuals by central
differences, plus the fit to the start. burgers: u_t + u u_x - nu u_xx. vorticity (Navier-Stokes in two dimensions, vorticity w
and stream function psi): w_t + psi_y w_x - psi_x w_y - nu lap w and lap psi + w. Both runs begin with the same weights; their
loss curves and the times of a step are printed: of the loss with its gradients by the fields, and of all.
"""
import argparse
import math
import time

import torch

import lockstep.torch as hooks
from lockstep import pde


class Equation:
    """A system, its residuals in torch, and its start. Fields are (levels or 1, *cells) tensors by name."""

    def __init__(self, cells, dt):
        self.cells, self.dt, self.h = cells, dt, 2 * math.pi / cells

    def first(self, f, axis):
        return (torch.roll(f, -1, axis) - torch.roll(f, 1, axis)) / (2 * self.h)

    def second(self, f, axis):
        return (torch.roll(f, -1, axis) - 2 * f + torch.roll(f, 1, axis)) / self.h ** 2

    def loss_here(self):
        system = self.system()
        loss = pde.Loss(system, pde.Mesh((self.cells,) * self.dimensions, self.h, self.dt))
        return lambda tensors: hooks.pde_loss(loss, *tensors)


class Burgers(Equation):
    dimensions, outputs, nu = 1, 1, 0.05
    slots = ((0, -1), (0, 0), (0, 1))  # output and level of each argument of the loss

    def system(self):
        system = pde.System(1)
        u = system.field("u")
        system.residual("burgers", system.dt(u) + system.at(u) * system.dx(u) - self.nu * system.laplacian(u))
        return system

    def loss_in_torch(self, tensors):
        u0, u1, u2 = tensors
        r = (u2 - u0) / (2 * self.dt) + u1 * self.first(u1, -1) - self.nu * self.second(u1, -1)
        return (r * r).mean()

    def start(self, x):
        return torch.sin(x[0])[..., None]


class Vorticity(Equation):
    dimensions, outputs, nu = 2, 2, 0.02
    slots = ((0, -1), (0, 0), (0, 1), None, (1, 0), None)

    def system(self):
        system = pde.System(2)
        w, psi = system.field("w"), system.field("psi")
        system.residual("transport", system.dt(w) + system.dy(psi) * system.dx(w) - system.dx(psi) * system.dy(w)
                        - self.nu * system.laplacian(w))
        system.residual("poisson", system.laplacian(psi) + system.at(w))
        return system

    def loss_in_torch(self, tensors):
        w0, w1, w2, psi = tensors[0], tensors[1], tensors[2], tensors[4]
        transport = (w2 - w0) / (2 * self.dt) + self.first(psi, -2) * self.first(w1, -1) \
            - self.first(psi, -1) * self.first(w1, -2) - self.nu * (self.second(w1, -1) + self.second(w1, -2))
        poisson = self.second(psi, -1) + self.second(psi, -2) + w1
        return (transport * transport).mean() + (poisson * poisson).mean()

    def start(self, x):
        w = torch.sin(x[0]) * torch.cos(x[1]) + 0.5 * torch.cos(2 * x[0])
        psi = 0.5 * torch.sin(x[0]) * torch.cos(x[1]) + 0.125 * torch.cos(2 * x[0])
        return torch.stack([w, psi], -1)


class Field(torch.nn.Module):
    """An MLP on (sin x, cos x … , t): periodic in space."""

    def __init__(self, dimensions, outputs, width=32):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2 * dimensions + 1, width), torch.nn.Tanh(),
                                          torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.Linear(width, outputs))

    def forward(self, x, t):
        waves = [wave(coordinate) for coordinate in x for wave in (torch.sin, torch.cos)]
        return self.layers(torch.stack([*waves, t.expand_as(x[0])], -1))


def train(equation, loss, steps, device):
    """(loss curve, seconds of the loss with its gradients, seconds of a step), the seconds as medians."""
    def wait():
        if device != "cpu":
            torch.cuda.synchronize()
        return time.perf_counter()

    torch.manual_seed(1)
    field = Field(equation.dimensions, equation.outputs).to(device)
    optimiser = torch.optim.Adam(field.parameters(), lr=3e-3)
    line = torch.arange(equation.cells, device=device) * equation.h
    x = torch.meshgrid(*[line] * equation.dimensions, indexing="ij")[::-1]  # x varies fastest
    times, origin = torch.linspace(0.1, 0.9, 8, device=device), torch.zeros((), device=device)
    curve, in_loss, in_step = [], [], []
    for step in range(steps):
        begin = wait()
        t = times[step % len(times)]
        optimiser.zero_grad()
        levels = {k: field(x, t + k * equation.dt) for k in (-1, 0, 1)}
        fields = [None if slot is None else levels[slot[1]][..., slot[0]].contiguous() for slot in equation.slots]
        given = [f for f in fields if f is not None]
        middle = wait()
        leaves = [None if f is None else f.detach().requires_grad_() for f in fields]
        residual = loss(leaves)
        gradients = torch.autograd.grad(residual, [f for f in leaves if f is not None])
        in_loss.append(wait() - middle)
        start = ((field(x, origin) - equation.start(x)) ** 2).mean()
        torch.autograd.backward([*given, start], [*gradients, torch.full_like(start, 10.0)])
        optimiser.step()
        in_step.append(wait() - begin)
        curve.append(residual.item() + 10 * start.item())
    return curve, sorted(in_loss)[steps // 2], sorted(in_step)[steps // 2]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--equation", choices=("burgers", "vorticity"), default="burgers")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--cells", type=int, default=128, help="along each axis")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compile", action="store_true", help="the loss in torch by torch.compile")
    options = parser.parse_args(arguments)
    equation = {"burgers": Burgers, "vorticity": Vorticity}[options.equation](options.cells, 0.05)
    in_torch = torch.compile(equation.loss_in_torch) if options.compile else equation.loss_in_torch
    ours = train(equation, equation.loss_here(), options.steps, options.device)
    theirs = train(equation, in_torch, options.steps, options.device)
    for k in range(0, options.steps, max(options.steps // 10, 1)):
        print(f"step {k:5d}  loss: lockstep {ours[0][k]:.6f}  torch {theirs[0][k]:.6f}")
    print(f"loss with its gradients: lockstep {1e3 * ours[1]:.3f} ms, torch {1e3 * theirs[1]:.3f} ms")
    print(f"a whole step: lockstep {1e3 * ours[2]:.3f} ms, torch {1e3 * theirs[2]:.3f} ms")
    return ours[0], theirs[0]


if __name__ == "__main__":
    main()
