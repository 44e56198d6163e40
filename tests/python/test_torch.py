"""Losses as functions of PyTorch tensors: parameters, second derivatives, copies; writes that autograd must see."""
import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import pde

torch = pytest.importorskip("torch", reason="torch is not installed")
import lockstep.torch as hooks  # noqa: E402


def inverse_problem(rng, dtype="f8"):
    """A heat equation whose conductivity and east side are unknown."""
    heat = pde.System(2)
    t = heat.field("t")
    nu, _ = heat.parameter("nu"), heat.parameter("east")
    heat.residual("heat", heat.dt(t) - nu * nu * heat.laplacian(t))
    loss = pde.Loss(heat, pde.Mesh((6, 5), 0.3, 0.2, "x-=clamp,x+=dirichlet_face:@east,y=clamp"))
    return loss, [torch.tensor(rng.standard_normal((5, 6)).astype(dtype), requires_grad=True) for _ in range(3)]


def test_parameters_are_differentiable_inputs(rng):
    loss, given = inverse_problem(rng)
    nu, east = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (0.3, 1.0))
    assert torch.autograd.gradcheck(
        lambda nu, east, *t: hooks.pde_loss(loss, *t, parameters={"nu": nu, "east": east}), (nu, east, *given), atol=1e-6)
    for value in (0.3, 0.5, -0.2):  # one tensor, other contents
        with torch.no_grad():
            nu.fill_(value)
        expected = loss({"t": [t.detach() for t in given]}, parameters={"nu": value, "east": 1.0}, device=HOST)
        assert hooks.pde_loss(loss, *given, parameters={"nu": nu, "east": 1.0}).item() == expected
    assert len(loss._torch_calls) == 1  # nothing is prepared again


def test_parameters_of_any_shape_and_type_are_fitted(rng):
    loss, given = inverse_problem(rng, "f4")
    fields = [t.detach() for t in given]
    nu = torch.nn.Parameter(torch.tensor([0.8]))  # f32, one element
    east = torch.tensor(2, dtype=torch.int64)  # no gradient
    optimizer = torch.optim.Adam([nu], lr=0.05)
    values = []
    for _ in range(40):
        optimizer.zero_grad()
        value = hooks.pde_loss(loss, *fields, parameters={"nu": nu, "east": east})
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert nu.grad.shape == (1,) and nu.grad.dtype == torch.float32 and values[-1] < 0.9 * values[0]
    with pytest.raises(ls.InputError, match="parameter nu.*one number"):
        hooks.pde_loss(loss, *fields, parameters={"nu": torch.ones(2), "east": 1.0})
    with pytest.raises(ls.InputError, match="parameter nu"):
        hooks.pde_loss(loss, *fields, parameters={"nu": "fast", "east": 1.0})
    with pytest.raises(ls.InputError, match="nu missing"):
        hooks.pde_loss(loss, *fields, parameters={"east": 1.0})


def test_second_derivatives_are_refused_by_name(rng):
    loss, given = inverse_problem(rng)
    value = hooks.pde_loss(loss, *given, parameters={"nu": 0.3, "east": 1.0})
    with pytest.raises(ls.UnsupportedError, match="second derivative"):
        torch.autograd.grad(value, given, create_graph=True)


def test_losses_are_copied_pickled_and_freed(rng):
    loss, given = inverse_problem(rng)
    parameters = {"nu": 0.3, "east": 1.0}

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.nu, self.loss = torch.nn.Parameter(torch.tensor(0.3, dtype=torch.float64)), loss

    expected = hooks.pde_loss(loss, *given, parameters=parameters)
    copied = copy.deepcopy(Module())  # as averages of weights do
    assert hooks.pde_loss(copied.loss, *given, parameters={"nu": copied.nu, "east": 1.0}) == expected
    other = pickle.loads(pickle.dumps(loss))
    assert hooks.pde_loss(other, *given, parameters=parameters) == expected
    gone = weakref.ref(other)
    del other
    gc.collect()
    assert gone() is None


def test_writes_of_kernels_are_seen_by_autograd(rng):
    @ls.kernel
    def double(at, x: ls.InOut[ls.f32, 1]):
        x[at] = 2.0 * x[at]

    for bring in (lambda t: t, ls.asarray):
        x = torch.ones(8)
        weight = torch.ones(8, requires_grad=True)
        result = (weight * x).sum()  # keeps x for its gradient
        double[ls.Device(HOST), 8](bring(x))
        assert (x == 2).all()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.backward()
