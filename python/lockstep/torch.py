"""Losses of lockstep.pde as functions of PyTorch tensors: exact gradients, on the tensors' device, without copies.

The loss is computed together with all gradients in the forward pass; the backward pass scales them. Work is ordered
with torch's current stream. Tensors: f32, f64, f16 or bf16 on the CPU or one CUDA device, contiguous along x.
"""
import torch

from . import pde
from ._array import asarray
from ._errors import InputError


def _detached(tensor):
    return tensor.detach() if isinstance(tensor, torch.Tensor) else tensor


class _PdeLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, evaluate, scale, *tensors):
        ctx.scale = scale
        value, gradients = evaluate([_detached(t) for t in tensors])
        like = next(t for t in tensors if isinstance(t, torch.Tensor))
        ctx.save_for_backward(*[_tensor_of(g, t) for g, t in zip(gradients, tensors) if g is not None])
        ctx.present = [g is not None for g in gradients]
        kind = like.dtype if like.dtype == torch.float64 else torch.float32
        return torch.tensor(value, dtype=kind, device=like.device)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, seed):
        saved = iter(ctx.saved_tensors)
        found = [next(saved) if present else None for present in ctx.present]
        return (None, None, *[None if g is None else _times(g, seed / ctx.scale) for g in found])


def _times(gradient, seed):
    """A gradient times the derivative of what follows; of half precision by f32, which holds the scales of losses."""
    if gradient.dtype in (torch.float16, torch.bfloat16):
        return (gradient.float() * seed.float()).to(gradient.dtype)
    return gradient * seed.to(gradient.dtype)


def _tensor_of(gradient, like):
    """A lockstep array as a tensor that shares its memory, shaped as the input."""
    if gradient.dtype.name == "bf16" or like.device.type == "cuda" or not hasattr(torch, "from_numpy"):
        found = torch.utils.dlpack.from_dlpack(_capsule(gradient, like))
    else:
        found = torch.from_numpy(gradient.numpy())
    return found.reshape(like.shape)


def _capsule(gradient, like):
    if like.device.type != "cuda":
        return gradient.__dlpack__()
    return gradient.__dlpack__(stream=torch.cuda.current_stream(like.device).cuda_stream or 1)


# ── torch.compile: an operation of torch.library, which a compiled graph keeps whole ──

_registered = []  # losses by the number that the operation gets


def _number_of(loss):
    if not hasattr(loss, "_torch_number"):
        loss._torch_number = len(_registered)
        _registered.append(loss)
    return loss._torch_number


def _evaluate_op(number, tensors, mask, present, names, values, path, scale):
    """(loss, gradients of the tensors that are present) as tensors of torch's own."""
    loss, given = _registered[number], iter(tensors)
    flat = [next(given) if one == "1" else None for one in present]
    fields = {name: flat[3 * k:3 * k + 3] for k, name in enumerate(loss.system.fields)}
    value, gradients = loss.value_and_gradients(fields, parameters=dict(zip(names.split(",") if names else (), values)),
                                                mask=mask, path=path, seed=scale)
    found = [g for name in fields for g in gradients[name]]
    kind = torch.float64 if tensors[0].dtype == torch.float64 else torch.float32
    return [torch.tensor(value, dtype=kind, device=tensors[0].device),
            *[torch.zeros_like(t) if g is None else _tensor_of(g, t) for g, t in zip(found, flat) if t is not None]]


def _make_op():
    """lockstep::pde_loss with a fake kernel and its gradient; None before torch 2.4."""
    if not hasattr(torch.library, "custom_op"):
        return None

    @torch.library.custom_op("lockstep::pde_loss", mutates_args=())
    def op(number: int, tensors: list[torch.Tensor], mask: torch.Tensor | None, present: str, names: str,
           values: list[float], path: str, scale: float) -> list[torch.Tensor]:
        return _evaluate_op(number, [t.detach() for t in tensors], mask, present, names, values, path, scale)

    @op.register_fake
    def _(number, tensors, mask, present, names, values, path, scale):
        kind = torch.float64 if tensors[0].dtype == torch.float64 else torch.float32
        return [tensors[0].new_empty((), dtype=kind), *[torch.empty_like(t) for t in tensors]]

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*output[1:])
        ctx.numbers, ctx.scale = len(inputs[5]), inputs[7]

    def backward(ctx, seeds):
        gradients = [_times(g, seeds[0] / ctx.scale) for g in ctx.saved_tensors]
        return None, gradients, None, None, None, [None] * ctx.numbers, None, None

    op.register_autograd(backward, setup_context=keep)
    return op


_op = _make_op()


def _is_compiling():
    return _op is not None and torch.compiler.is_compiling()


def _check(tensors, names):
    kinds = {t.dtype for t in tensors if isinstance(t, torch.Tensor)}
    places = {t.device for t in tensors if isinstance(t, torch.Tensor)}
    for tensor, name in zip(tensors, names):
        if tensor is not None and not isinstance(tensor, torch.Tensor):
            raise InputError(f"{type(tensor).__name__}", f"lockstep.torch, argument {name}", "a torch.Tensor")
    if len(kinds) != 1 or len(places) != 1:
        raise InputError(f"tensors of {sorted(map(str, kinds))} on {sorted(map(str, places))}", "lockstep.torch",
                         "one element type on one device")


def pde_loss(loss, *tensors, parameters=None, mask=None, path="auto", gradient_scale=1.0):
    """The loss of a lockstep.pde.Loss as a scalar tensor with exact gradients.

    tensors: for each field of the system, in the order in which they were made, its levels -1, 0, +1 (shapes as
    lockstep.pde tells; None for a level that no residual mentions). mask: a tensor (nz, ny, nx) without gradient.
    gradient_scale: of the gradients while they wait for the backward pass in the tensors' type, above 1 where those of f16
    would vanish; what comes out is not scaled. Double backward is refused.
    """
    if _is_compiling():
        parameters = parameters or {}
        return _op(_number_of(loss), [t for t in tensors if t is not None], mask,
                   "".join("0" if t is None else "1" for t in tensors), ",".join(parameters), list(parameters.values()),
                   path, float(gradient_scale))[0]
    names = list(loss.system.fields)
    if len(tensors) != 3 * len(names):
        raise InputError(f"{len(tensors)} tensors", "lockstep.torch.pde_loss",
                         f"{3 * len(names)}: levels -1, 0, +1 of {', '.join(names)}")
    labels = [f"{name} at level {level:+d}" for name in names for level in (-1, 0, 1)]
    _check(tensors, labels)
    wanted = any(t is not None and t.requires_grad for t in tensors)

    def evaluate(given):
        fields = {name: given[3 * k:3 * k + 3] for k, name in enumerate(names)}
        options = dict(parameters=parameters, mask=_detached(mask), path=path)
        if not wanted:
            return loss(fields, **options), [None] * len(given)
        value, gradients = loss.value_and_gradients(fields, seed=float(gradient_scale), **options)
        flat = [g for name in names for g in gradients[name]]
        return value, [g if t is not None and t.requires_grad else None for g, t in zip(flat, tensors)]

    _number_of(loss)
    return _PdeLoss.apply(evaluate, float(gradient_scale), *tensors)


def _loss_of(system, shape, spacing, dt, boundary, order):
    loss = pde.Loss(system, pde.Mesh(shape[::-1], spacing, dt, boundary, order))
    _number_of(loss)
    return loss


if hasattr(torch, "compiler") and hasattr(torch.compiler, "disable"):
    _loss_of = torch.compiler.disable(_loss_of)


def transport_loss(*, spacing=(1.0, 1.0, 1.0), dt=1.0, boundary="periodic", order=2, weights=(1.0, 1.0), mask=None,
                   path="auto", **options):
    """The transport loss of docs/pde.md as a callable on (sigma0, sigma1, sigma2, u0, u1, u2): sigma (nz, ny, nx), u
    (3, nz, ny, nx) with component 0 = x, at the levels -1, 0, +1.

    spacing: of cells along x, y, z; weights: of the terms sigma and u; options: as of lockstep.pde.transport.
    """
    system = pde.transport(3, weight_sigma=weights[0], weight_u=weights[1], **options)
    losses = {}

    def evaluate(sigma0, sigma1, sigma2, u0, u1, u2):
        shape = tuple(sigma1.shape)
        if len(shape) != 3:
            raise InputError(f"sigma1 of shape {shape}", "lockstep.torch.transport_loss", "(nz, ny, nx)")
        found = losses.get(shape)
        if found is None:
            found = losses[shape] = _loss_of(system, shape, spacing, dt, boundary, order)
        return pde_loss(found, sigma0, sigma1, sigma2, u0, u1, u2, mask=mask, path=path)

    return evaluate


def from_lockstep(array):
    """A tensor that shares a lockstep.Array's memory."""
    return torch.utils.dlpack.from_dlpack(array)


def to_lockstep(tensor, device=None):
    """A lockstep.Array that shares a tensor's memory."""
    return asarray(tensor.detach(), device)
