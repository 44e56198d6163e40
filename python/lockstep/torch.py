"""Losses of lockstep.pde as functions of PyTorch tensors, with exact gradients, on the device of the tensors, without
copies.

The forward pass computes the loss together with all gradients; the backward pass scales them. Work is ordered with
torch's current stream, and nothing waits for the device. Tensors are contiguous, of f32, f64, f16 or bf16, on the CPU
or one CUDA device. Parameters may be tensors of one element, which receive gradients; reading them waits for their
device.
"""
import collections
import typing

import torch

from . import _core, pde
from ._array import asarray
from ._device import Device
from ._errors import InputError, UnsupportedError

_NAMES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16"}
_KEPT = 8  # prepared calls of a loss


def _detached(tensor):
    return tensor.detach() if isinstance(tensor, torch.Tensor) else tensor


class _Call:
    """A loss prepared for tensors of one type, device and layout, with gradients by some of them."""

    def __init__(self, loss, tensors, wanted, mask, path, scale):
        like = _first(tensors)
        self.names = list(loss.system.fields)
        self.device = Device("cpu" if like.device.type == "cpu" else f"cuda:{like.device.index or 0}")
        fields = {name: tensors[3 * k:3 * k + 3] for k, name in enumerate(self.names)}
        loss._arrays({n: [_detached(t) for t in row] for n, row in fields.items()}, self.device)  # checks them
        _check_mask(loss, mask, like, self.device)
        used = [one for name in self.names for one in loss.system._core.used(name)]
        self.slots = [k for k, t in enumerate(tensors) if t is not None]
        self.wanted = [wanted[k] and used[k] for k in self.slots]
        self.value = torch.float64 if like.dtype == torch.float64 else torch.float32
        self.cuda, self.storage = like.device.type == "cuda", _NAMES[like.dtype]
        asked = [self.slots[k] for k, one in enumerate(self.wanted) if one]
        levels = {k % 3 for k in asked}
        gradients = _level_gradients(levels)
        slots = [(self.names[k // 3], k % 3 - 1, list(loss._shape(self.names[k // 3])), one)
                 for k, one in zip(self.slots, self.wanted)]
        only = sorted({self.names[k // 3] for k in asked})
        self.core = _core.LossCall(loss._core, self.device._core, self.storage, slots, scale, gradients, path, only)

    def __call__(self, tensors, mask, names, numbers, by_parameter):
        """(loss, gradient by the parameters or None, [gradient of each tensor, or None]), as the device will have them."""
        given = [tensors[k] for k in self.slots]
        if not all(t.is_contiguous() for t in given):
            bad = next(k for k in self.slots if not tensors[k].is_contiguous())
            raise InputError(f"a tensor of strides {tuple(tensors[bad].stride())}",
                             f"field {self.names[bad // 3]}, level {bad % 3 - 1:+d}", "a contiguous one")
        like = given[0]
        value = torch.empty((), dtype=self.value, device=like.device)
        gradients = [torch.empty_like(t) if one else None for t, one in zip(given, self.wanted)]
        parameters = dict(zip(names, [] if numbers is None else numbers.tolist()))
        slopes = self.core.run([t.data_ptr() for t in given], [0 if g is None else g.data_ptr() for g in gradients],
                               0 if mask is None else mask.data_ptr(), value.data_ptr(), self.value == torch.float64,
                               parameters, by_parameter, _stream(like))
        found = iter(gradients)
        by_number = torch.tensor([slopes[n] for n in names], dtype=torch.float64) if by_parameter else None
        return value, by_number, [None if t is None else next(found) for t in tensors]


def _first(tensors):
    return next(t for t in tensors if t is not None)


def _stream(tensor):
    """The handle of torch's current stream of the tensor's device; None on the CPU."""
    return torch.cuda.current_stream(tensor.device).cuda_stream if tensor.is_cuda else None


def _check_mask(loss, mask, like, device):
    if mask is None:
        return
    if mask.dtype != like.dtype or mask.device != like.device or not mask.is_contiguous():
        raise InputError(f"{mask.dtype} on {mask.device}", "lockstep.torch, argument mask",
                         f"{like.dtype} on {like.device}, contiguous")
    loss._array(mask.detach(), "mask", loss.mesh.shape, device)


def _numbers_of(parameters):
    """Names of the parameters and their values, (P,) of f64 on the CPU; values that are tensors stay in the graph."""
    names = tuple(sorted(parameters or {}))
    if not names:
        return names, None
    values = []
    for name in names:
        value = parameters[name]
        if not isinstance(value, torch.Tensor):
            value = torch.tensor(pde.numbers_of({name: value})[name] if not _is_compiling() else float(value),
                                 dtype=torch.float64)
        elif value.numel() != 1 or value.is_complex():
            raise InputError(f"a tensor of {value.dtype} and shape {tuple(value.shape)}", f"parameter {name}", "one number")
        values.append(value.reshape(()).to(device="cpu", dtype=torch.float64))
    return names, torch.stack(values)


def _call_of(loss, tensors, wanted, mask, names, path, scale):
    """The call that was prepared for such tensors, or a new one."""
    kept = loss.__dict__.setdefault("_torch_calls", collections.OrderedDict())
    like = _first(tensors)
    key = (like.dtype, like.device, tuple(None if t is None else t.shape for t in tensors), tuple(wanted),
           None if mask is None else (mask.dtype, mask.device, mask.shape, mask.is_contiguous()),
           names, path, scale)
    found = kept.get(key)
    if found is None:
        found = kept[key] = _Call(loss, tensors, wanted, mask, path, scale)
        while len(kept) > _KEPT:
            kept.popitem(last=False)
    return found


def _refuse_second_derivative():
    if torch.is_grad_enabled():
        raise UnsupportedError("a second derivative", "lockstep.torch.pde_loss",
                               "first derivatives: no create_graph=True; products with the Hessian are Loss.hessian_product, those with J and its transpose Loss.jvp and Loss.vjp")


class _PdeLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, scale, mask, names, numbers, *tensors):
        by_parameter = ctx.needs_input_grad[4]
        value, slopes, gradients = call([_detached(t) for t in tensors], mask, names, _detached(numbers), by_parameter)
        ctx.call, ctx.scale, ctx.slopes = call, scale, slopes
        ctx.save_for_backward(*[g for g in gradients if g is not None])
        ctx.present = [g is not None for g in gradients]
        return value

    @staticmethod
    def backward(ctx, seed):
        _refuse_second_derivative()
        slopes = None if ctx.slopes is None else ctx.slopes * seed.to(ctx.slopes)
        given = iter(_scaled(ctx.call, ctx.saved_tensors, seed, ctx.scale))
        return (None, None, None, None, slopes, *[next(given) if present else None for present in ctx.present])


class _BoundLoss(torch.autograd.Function):
    """A loss that is bound at each call: over ranks, and of trajectories. evaluate(numbers, tensors, requested) gives the loss and
    the gradients of the numbers and the tensors, times `scale`, and None for those that are not requested."""

    @staticmethod
    def forward(ctx, evaluate, scale, numbers, *tensors):
        wanted = ctx.needs_input_grad[2:]
        value, gradients = evaluate(_detached(numbers), [_detached(t) for t in tensors], wanted)
        ctx.scale, ctx.present = scale, [g is not None for g in gradients]
        ctx.save_for_backward(*[g for g in gradients if g is not None])
        like = _first(tensors)
        return torch.tensor(value, dtype=torch.float64 if like.dtype == torch.float64 else torch.float32, device=like.device)

    @staticmethod
    def backward(ctx, seed):
        _refuse_second_derivative()
        given = iter(ctx.saved_tensors)
        return None, None, *[_times(g, (seed / ctx.scale).to(g.device)) if g is not None else None
                             for g in (next(given) if present else None for present in ctx.present)]


def _level_gradients(asked):
    """What Loss.bind computes for gradients by these levels, 0 to 2."""
    return "none" if not asked else "t1" if asked == {1} else "all" if 0 in asked else "t1t2"


def _loss_over_ranks(loss, tensors, names_of_numbers, numbers, mask, path, scale):
    """pde_loss of the planes of this rank. The gradients of parameters are its K-th part: over K ranks they add up."""
    names = list(loss.system.fields)

    def evaluate(numbers, tensors, wanted):
        fields = {name: tuple(tensors[3 * k:3 * k + 3]) for k, name in enumerate(names)}
        asked = {k % 3 for k, one in enumerate(wanted[1:]) if one}
        only = [name for k, name in enumerate(names) if any(wanted[3 * k + 1:3 * k + 4])]
        given = {"parameters": dict(zip(names_of_numbers, [] if numbers is None else numbers.tolist())), "mask": mask}
        bound = loss.bind(fields, gradients=_level_gradients(asked), path=path, wanted=only, seed=scale, **given)
        bound.run()
        slots = [(name, level) for name in names for level in (-1, 0, 1)]
        found = [bound.gradient(*slot) if one else None for slot, one in zip(slots, wanted[1:])]
        slopes = None
        if wanted[0]:
            by_name = loss.number_gradients(fields, **given)[0]
            slopes = torch.tensor([by_name[n] for n in names_of_numbers], dtype=torch.float64) / loss.ranks.size * scale
        return bound.loss, [slopes, *[None if g is None else from_lockstep(g).view_as(t) for g, t in zip(found, tensors)]]

    return _BoundLoss.apply(evaluate, scale, numbers, *tensors)


def _scaled(call, gradients, seed, scale):
    """Gradients times the derivative of what follows: in place where nobody requests them again, and where that is 1
    not touched."""
    if not gradients or _is_kept():
        return [_times(g, seed / scale) for g in gradients]
    seed = seed.to(call.value).contiguous()
    _core.scale_gradients(call.device._core, [(g.data_ptr(), g.numel()) for g in gradients], call.storage, seed.data_ptr(),
                          "f64" if call.value == torch.float64 else "f32", scale, _stream(seed))
    return gradients


def _is_kept():
    """Whether the graph of this backward pass is used again; True where this torch does not report it."""
    tell = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", None)
    return True if tell is None else tell()


def _times(gradient, seed):
    """A gradient times the derivative of what follows; of half precision by f32, which holds the scales of losses."""
    if gradient.dtype in (torch.float16, torch.bfloat16):
        return (gradient.float() * seed.float()).to(gradient.dtype)
    return gradient * seed.to(gradient.dtype)


# ── torch.compile: an operation of torch.library, which a compiled graph keeps whole ──


def _evaluate_op(number, tensors, mask, present, names, numbers, path, scale):
    """(loss, gradients by the parameters, and of the tensors that are present) as tensors of torch's own."""
    loss, given = pde.loss_of(number), iter(tensors)
    flat = [next(given) if one == "1" else None for one in present]
    names = tuple(names.split(",")) if names else ()
    call = _call_of(loss, flat, [True] * len(flat), mask, names, path, scale)
    by_parameter = len(names) > 0
    value, slopes, gradients = call(flat, mask, names, numbers, by_parameter)
    return [value, slopes if by_parameter else torch.zeros_like(numbers),
            *[torch.zeros_like(t) if g is None else g for g, t in zip(gradients, flat) if t is not None]]


def _make_op():
    """lockstep::pde_loss with a fake kernel and its gradient; None before torch 2.4."""
    if not hasattr(torch.library, "custom_op"):
        return None

    @torch.library.custom_op("lockstep::pde_loss", mutates_args=())
    def op(number: int, tensors: typing.List[torch.Tensor], mask: typing.Optional[torch.Tensor], present: str, names: str,
           numbers: torch.Tensor, path: str, scale: float) -> typing.List[torch.Tensor]:  # the spelling that torch 2.6 reads
        return _evaluate_op(number, [t.detach() for t in tensors], mask, present, names, numbers.detach(), path, scale)

    @op.register_fake
    def _(number, tensors, mask, present, names, numbers, path, scale):
        kind = torch.float64 if tensors[0].dtype == torch.float64 else torch.float32
        return [tensors[0].new_empty((), dtype=kind), torch.empty_like(numbers), *[torch.empty_like(t) for t in tensors]]

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*output[1:])
        ctx.scale = inputs[7]

    def backward(ctx, seeds):
        slopes, *gradients = ctx.saved_tensors
        gradients = [_times(g, seeds[0] / ctx.scale) for g in gradients]
        return None, gradients, None, None, None, slopes * seeds[0].to(slopes), None, None

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

    tensors: for each field of the system, in the order of creation, its levels -1, 0, +1 (shapes as specified by
    lockstep.pde; None for a level that no residual uses). mask: a tensor (nz, ny, nx) without gradient.
    gradient_scale: factor of the gradients between the forward and the backward pass, above 1 if gradients of f16
    would underflow; the final gradients are not scaled. parameters: numbers, or tensors of one element, which receive
    gradients. Double backward raises an error.

    With ranks, tensors contain the planes of this rank, and every rank makes the call. The result is the loss of the
    whole grid, and the gradients are those of the planes. Each of K ranks receives 1/K of the gradients of
    parameters, so that their sum over the ranks is the gradient. DistributedDataParallel divides that sum by K: call
    backward() on the loss times loss.ranks.size.
    """
    names_of_numbers, numbers = _numbers_of(parameters)
    if _is_compiling() and loss.ranks is None:
        return _op(loss._number, [t for t in tensors if t is not None], mask,
                   "".join("0" if t is None else "1" for t in tensors), ",".join(names_of_numbers),
                   torch.zeros(0, dtype=torch.float64) if numbers is None else numbers, path, float(gradient_scale))[0]
    names = list(loss.system.fields)
    with loss._in_agreement():
        if len(tensors) != 3 * len(names):
            raise InputError(f"{len(tensors)} tensors", "lockstep.torch.pde_loss",
                             f"{3 * len(names)}: levels -1, 0, +1 of {', '.join(names)}")
        _check(tensors, [f"{name} at level {level:+d}" for name in names for level in (-1, 0, 1)])
        mask = None if mask is None else torch.as_tensor(mask).detach()
    if loss.ranks is not None:
        return _loss_over_ranks(loss, tensors, names_of_numbers, numbers, mask, path, float(gradient_scale))
    wanted = [t is not None and t.requires_grad and torch.is_grad_enabled() for t in tensors]
    call = _call_of(loss, tensors, wanted, mask, names_of_numbers, path, float(gradient_scale))
    return _PdeLoss.apply(call, float(gradient_scale), mask, names_of_numbers, numbers, *tensors)


def trajectory_loss(loss, *tensors, parameters=None, mask=None, path="auto", gradient_scale=1.0):
    """The loss of a trajectory (lockstep.pde.Loss.bind_trajectory) as a scalar tensor with exact gradients.

    tensors: for each field of the system, in the order of creation, its T levels (T, nz, ny, nx) or (T, components,
    nz, ny, nx); with ranks the planes of this rank, as in pde_loss. parameters: numbers. Other arguments as in
    pde_loss. Reading the loss waits for the device.
    """
    names = list(loss.system.fields)
    with loss._in_agreement():
        if len(tensors) != len(names) or any(t is None for t in tensors):
            raise InputError(f"{len(tensors)} tensors", "lockstep.torch.trajectory_loss",
                             f"{len(names)}: levels of {', '.join(names)}")
        _check(tensors, names)
        mask, scale = None if mask is None else torch.as_tensor(mask).detach(), float(gradient_scale)

    def evaluate(_, tensors, wanted):
        fields = {name: list(t) for name, t in zip(names, tensors)}
        only = [name for name, one in zip(names, wanted[1:]) if one]
        bound = loss.bind_trajectory(fields, parameters=parameters, mask=mask, gradients="all" if only else "none", path=path,
                                     wanted=only, seed=scale)
        bound.run()

        def gradient(name, like):
            levels = [bound.gradient(name, level) for level in range(len(like))]
            return torch.stack([from_lockstep(g).view_as(t) for g, t in zip(levels, like)])

        return bound.loss, [None, *[gradient(name, t) if one else None for name, t, one in zip(names, tensors, wanted[1:])]]

    return _BoundLoss.apply(evaluate, scale, None, *tensors)


def ranks(process_group=None, *, wait_limit=600.0):
    """The processes of torch.distributed as ranks of lockstep.parallel, for any back end. Host messages use a gloo
    group that this call creates. process_group: a subset of the processes, from dist.new_group(…, backend="gloo").
    Every process of the group makes the call.
    """
    from ._torch_ranks import ranks_of
    return ranks_of(process_group, wait_limit)


def _loss_of(system, shape, spacing, dt, boundary, order):
    return pde.Loss(system, pde.Mesh(shape[::-1], spacing, dt, boundary, order))


if hasattr(torch, "compiler") and hasattr(torch.compiler, "disable"):
    _loss_of = torch.compiler.disable(_loss_of)
    _loss_over_ranks, trajectory_loss = torch.compiler.disable(_loss_over_ranks), torch.compiler.disable(trajectory_loss)


def transport_loss(*, spacing=(1.0, 1.0, 1.0), dt=1.0, boundary="periodic", order=2, weights=(1.0, 1.0), mask=None,
                   path="auto", **options):
    """The transport loss of docs/pde.md as a callable on (sigma0, sigma1, sigma2, u0, u1, u2): sigma (nz, ny, nx), u
    (3, nz, ny, nx) with component 0 = x, at the levels -1, 0, +1.

    spacing: cell sizes along x, y, z. weights: of the terms sigma and u. options: as of lockstep.pde.transport.
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
