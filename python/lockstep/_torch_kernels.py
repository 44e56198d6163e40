"""Launches of differentiable kernels as functions of PyTorch tensors."""
import torch

from ._array import asarray
from ._errors import InputError, UnsupportedError
from ._gradient import Derivatives


def _plain(value):
    """An argument without its history; a tensor of one number for a number becomes that number."""
    return value.detach() if isinstance(value, torch.Tensor) else value


class _Launch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, kernel, device, extent, *tensors):
        """tensors: the arguments, then copies of those that the kernel updates in place, which gradients read."""
        arguments, copies = tensors[:len(kernel._parameters)], iter(tensors[len(kernel._parameters):])
        plain, written, kept = [], [], []
        for (name, hint), value in zip(kernel._parameters, arguments):
            own = _plain(value)
            if hint.access == "number" and isinstance(own, torch.Tensor):
                own = own.item()
            if hint.written:
                if not isinstance(value, torch.Tensor):
                    raise InputError(f"{name} of another library", f"kernel {kernel.name}", "a torch tensor to write to")
                written.append(value)
            plain.append(own)
            kept.append(next(copies) if hint.access == "read_write" else value)
        kernel._launch(device, extent, plain)
        ctx.mark_dirty(*written)
        ctx.kernel, ctx.device, ctx.extent = kernel._as_launched(), device, extent
        ctx.extra = len(tensors) - len(arguments)
        ctx.numbers = [None if isinstance(b, torch.Tensor) else b for b in kept]
        ctx.shapes = [a.shape if isinstance(a, torch.Tensor) else None for a in arguments]
        ctx.types = [a.dtype if isinstance(a, torch.Tensor) else None for a in arguments]
        ctx.save_for_backward(*[b if isinstance(b, torch.Tensor) and hint.access != "write" else None
                                for b, (_, hint) in zip(kept, kernel._parameters)])
        ctx.written = [name for name, hint in kernel._parameters if hint.written]
        return tuple(written)

    @staticmethod
    def backward(ctx, *seeds):
        kernel, values, by, given = ctx.kernel, {}, [], dict(zip(ctx.written, seeds))
        seeds = {name: _wide(seed).contiguous() for name, seed in zip(ctx.written, seeds)
                 if seed is not None and seed.dtype.is_floating_point}
        for k, (name, hint) in enumerate(kernel._parameters):
            if hint.access != "write":
                kept = ctx.saved_tensors[k]
                values[name] = ctx.numbers[k] if kept is None else kept
                if ctx.needs_input_grad[3 + k]:
                    by.append(name)
        results = {}
        if by and seeds:
            for name, hint in kernel._parameters:
                if hint.access == "write" and name not in seeds:
                    raise UnsupportedError(f"output {name} without a gradient", f"kernel {kernel.name}",
                                           "kernels whose written tensors are all floats")
            found = _Reverse.apply(kernel, ctx.device, ctx.extent, tuple(by), tuple(values), tuple(seeds),
                                   *values.values(), *seeds.values())
            results = dict(zip(by, found))
        kept = [name for k, (name, hint) in enumerate(kernel._parameters)
                if hint.access == "write" and ctx.needs_input_grad[3 + k] and given[name] is not None]
        if kept:
            masks = _unwritten(ctx, kept, values, given[kept[0]].device)
            results.update((name, torch.where(mask, given[name], 0)) for name, mask in masks.items())
        back = []
        for (name, _), shape in zip(kernel._parameters, ctx.shapes):
            found = results.get(name)
            back.append(None if found is None else found.reshape(shape))
        return (None, None, None, *back, *[None] * ctx.extra)


def _unwritten(ctx, outputs, values, place):
    """{output: which of its elements the launch leaves as they were}, by two launches into known contents."""
    hints, plain = dict(ctx.kernel._parameters), {n: _plain(v) for n, v in values.items()}
    room = {n: torch.empty(shape, dtype=dtype, device=place)
            for (n, hint), shape, dtype in zip(hints.items(), ctx.shapes, ctx.types) if hint.access == "write"}
    arrays = {n: asarray(a) for n, a in {**plain, **room}.items() if hints[n].access != "number"}
    launch = Derivatives(ctx.kernel, ctx.device, ctx.extent)
    outputs = [name for name in outputs if not launch.overwrites(name, arrays)]
    if not outputs:
        return {}

    def argument(name, number):
        access = hints[name].access
        if access == "write":
            return torch.full_like(room[name], number)
        if access == "number":
            return plain[name].item() if isinstance(plain[name], torch.Tensor) else plain[name]
        return plain[name].clone() if access == "read_write" else plain[name]

    zeros, ones = ({n: argument(n, number) for n in hints} for number in (0, 1))
    for arguments in (zeros, ones):
        ctx.kernel._launch(ctx.device, ctx.extent, list(arguments.values()))
    return {name: (zeros[name] == 0) & (ones[name] == 1) for name in outputs}


class _Reverse(torch.autograd.Function):
    """Gradients `by` arguments, as a function of the arguments and the seeds."""

    @staticmethod
    def forward(ctx, kernel, device, extent, by, names, outputs, *tensors):
        ctx.launch, ctx.by, ctx.names, ctx.outputs = (kernel, device, extent), by, names, outputs
        ctx.plain = [None if isinstance(t, torch.Tensor) else t for t in tensors]
        ctx.save_for_backward(*[t if isinstance(t, torch.Tensor) else None for t in tensors])
        values, seeds = _Reverse.split(ctx, [t.detach().contiguous() if isinstance(t, torch.Tensor) else t for t in tensors])
        return tuple(_derivatives(*ctx.launch, seeds).reverse(values, seeds, by)[n] for n in by)

    @staticmethod
    def split(ctx, tensors):
        n = len(ctx.names)
        return dict(zip(ctx.names, tensors[:n])), dict(zip(ctx.outputs, tensors[n:]))

    @staticmethod
    def backward(ctx, *directions):
        tensors = [p if t is None else t for t, p in zip(ctx.saved_tensors, ctx.plain)]
        n = len(ctx.names)
        values, seeds = _Reverse.split(ctx, tensors)
        along = {name: d.contiguous() for name, d in zip(ctx.by, directions) if d is not None}
        needed = ctx.needs_input_grad[6:]
        if not along:
            return (None,) * (6 + len(needed))
        kernel, device, extent = ctx.launch
        forward = _derivatives(*ctx.launch, seeds).forward(along, seeds)
        along = {**{name: torch.zeros_like(seeds[name]) for name in seeds if name in values}, **along}
        given = {**values, **{name + forward._result: d for name, d in along.items()}}
        by = tuple(name for name, wanted in zip(ctx.names, needed) if wanted)
        back, by_seeds = {}, [None] * len(seeds)
        if any(needed[n:]):
            found = _written_by(forward, device, extent, given, seeds)
            by_seeds = [found[name + forward._result].reshape(s.shape) for name, s in seeds.items()]
        if by:
            outputs = tuple(name + forward._result for name in seeds)
            found = _Reverse.apply(forward, device, extent, by, tuple(given), outputs, *given.values(), *seeds.values())
            back = {name: g.reshape(values[name].shape) if isinstance(values[name], torch.Tensor) else g
                    for name, g in zip(by, found)}
        return (None,) * 6 + (*[back.get(name) for name in ctx.names], *by_seeds)


def _written_by(kernel, device, extent, given, seeds):
    """{name: what the kernel writes}, as differentiable functions of `given`; `seeds`: tensors like its floats."""
    like = {kernel._of_root(name): s for name, s in seeds.items()}
    arguments, written = [], []
    for name, hint in kernel._parameters:
        value = given.get(name)
        if hint.access == "write":
            of = like[kernel._of_root(name)]
            value = torch.zeros_like(of, dtype=_NARROW.get(hint.dtype and hint.dtype.name, of.dtype))
        elif hint.access == "read_write":
            value = value.clone()
        if hint.written:
            written.append(name)
        arguments.append(value.contiguous() if isinstance(value, torch.Tensor) else value)
    return dict(zip(written, _apply(kernel, device, extent, arguments)))


def _derivatives(kernel, device, extent, seeds):
    place = next(iter(seeds.values())).device

    def empty(name, like):
        hint = dict(kernel._parameters)[name]
        number = hint.access == "number"
        wide = hint.name == "f64" if number else like.dtype == torch.float64
        return torch.empty(1 if number else like.shape, dtype=torch.float64 if wide else torch.float32, device=place)

    return Derivatives(kernel, device, extent, empty)


_NARROW = {"f16": torch.float16, "bf16": torch.bfloat16}


def _wide(tensor):
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _apply(kernel, device, extent, arguments):
    copies = [a.clone() for a, (_, hint) in zip(arguments, kernel._parameters)
              if hint.access == "read_write" and isinstance(a, torch.Tensor)]
    return _Launch.apply(kernel, device, extent, *arguments, *copies)


def launch(kernel, device, extent, arguments):
    """Runs the kernel; the tensors that it writes become results of torch.autograd."""
    _apply(kernel, device, extent, arguments)
