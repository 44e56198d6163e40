"""What ranks compute, in processes that tests/python/test_ranks.py starts: ranks_work.py CASE [RANK SIZE FILE]

Cases of mpi_… run under mpirun, the others over torch.distributed, whose processes meet at FILE.
"""
import os
import pathlib
import sys
import time

import numpy as np

import lockstep as ls
from lockstep import parallel, pde

DEVICE = "cpu" if any(d["available"] for d in ls.devices() if d["kind"] == "cpu") else "interp"
SHAPE = (14, 4, 5)  # blocks of four, four, four and two planes


def same_bits(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype and found.size == expected.size, (found.dtype, found.shape, expected.shape)
    assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(expected).tobytes(), abs(found.ravel() - expected.ravel()).max()


def refusal(call, *says):
    try:
        call()
    except ls.Error as error:
        assert all(part in str(error) for part in says), f"{error}\nwithout {says}"
        return
    raise AssertionError(f"no error of {says}")


def fields_of(kind, levels=3):
    rng = np.random.default_rng(5)
    return {"sigma": [rng.standard_normal(SHAPE).astype(kind) for _ in range(levels)],
            "u": [rng.standard_normal((3, *SHAPE)).astype(kind) for _ in range(levels)]}


def part(fields, planes):
    """The planes of a rank, as arrays of their own."""
    return {n: [np.ascontiguousarray(a[..., planes.start:planes.stop, :, :]) for a in row] for n, row in fields.items()}


def compare_losses(ranks):
    """Losses over ranks with those of one process, which knows nothing of ranks."""
    for boundary, order, path, kind in (("periodic", 2, "two-kernel", "f4"), ("z=one_sided2,x=no_slip", 4, "two-kernel", "f8"),
                                        ("z=free_slip,y=clamp", 6, "two-sweep", "f4")):
        system = pde.transport(3, viscosity=0.1, weight_divergence=0.5)
        mesh = pde.Mesh(SHAPE[::-1], (0.3, 0.4, 0.5), 0.1, boundary, order)
        fields = fields_of(kind)
        mask = np.random.default_rng(6).integers(0, 3, SHAPE).astype(kind)
        value, gradients = pde.Loss(system, mesh).value_and_gradients(fields, mask=mask, path=path, device=DEVICE)
        loss = pde.Loss(system, mesh, ranks=ranks)
        own = slice(loss.planes.start, loss.planes.stop)
        found, mine = loss.value_and_gradients(part(fields, loss.planes), mask=np.ascontiguousarray(mask[own]), path=path, device=DEVICE)
        assert found == value, (boundary, found, value)
        for name, levels in gradients.items():
            for whole, planes in zip(levels, mine[name]):
                same_bits(planes, np.asarray(whole)[..., own, :, :])
        same_bits(loss.residuals(part(fields, loss.planes), device=DEVICE),
                  np.asarray(pde.Loss(system, mesh).residuals(fields, device=DEVICE))[:, own])


def compare_trajectories(ranks):
    system, mesh = pde.transport(3), pde.Mesh(SHAPE[::-1], 0.3, 0.1, "z=clamp")
    levels = fields_of("f4", 5)
    value, gradients = pde.Loss(system, mesh).trajectory(levels, path="two-kernel", device=DEVICE)
    loss = pde.Loss(system, mesh, ranks=ranks)
    found, mine = loss.trajectory(part(levels, loss.planes), device=DEVICE)
    assert found == value
    for name, row in gradients.items():
        for whole, planes in zip(row, mine[name]):
            same_bits(planes, np.asarray(whole)[..., loss.planes.start:loss.planes.stop, :, :])


def compare_sides(ranks):
    heat = pde.System(3)
    t = heat.field("t")
    for name in ("floor", "wall"):
        heat.profile(name)
    heat.parameter("top")
    heat.residual("heat", heat.dt(t) - heat.d(t, 2) * heat.laplacian(t))
    mesh = pde.Mesh(SHAPE[::-1], 0.3, 0.1, "z-=dirichlet_face:@floor,z+=ghost:@top,x-=dirichlet_face:@wall,x+=dirichlet_face:0.5,y=clamp", 4)
    rng = np.random.default_rng(8)
    fields = {"t": [rng.standard_normal(SHAPE) for _ in range(3)]}
    given = {"parameters": {"top": 0.3}, "device": DEVICE,
             "profiles": {"floor": rng.standard_normal(SHAPE[1:]), "wall": rng.standard_normal(SHAPE[:2])}}
    whole = pde.Loss(heat, mesh)
    expected, numbers = whole.boundary_gradients(fields, **given), whole.number_gradients(fields, **given)
    loss = pde.Loss(heat, mesh, ranks=ranks)
    found = loss.boundary_gradients(part(fields, loss.planes), **given)
    assert len(found) == len(expected) == 4
    for one, other in zip(found, expected):
        same_bits(one.pop("cells"), other.pop("cells"))
        assert one == other
    assert expected[0]["value"] != 0
    for one, other in zip(loss.number_gradients(part(fields, loss.planes), **given), numbers):
        assert one.keys() == other.keys()
        for name in one:
            same_bits(one[name], other[name])


def compare_sums(ranks):
    """Neighbours are added, then neighbouring sums, until one is left; the bits are those of any number of ranks."""
    for kind in ("f4", "f8"):
        for count in (1, 7, 8):
            parts = np.random.default_rng(count).standard_normal((count, 3)).astype(kind)
            rows = list(parts)
            while len(rows) > 1:
                rows = [rows[k] + rows[k + 1] if k + 1 < len(rows) else rows[k] for k in range(0, len(rows), 2)]
            mine = ranks.share(count)
            same_bits(ranks.sum(np.ascontiguousarray(parts[mine.start:mine.stop]), parts=count), rows[0])
    assert float(np.asarray(ranks.sum(ranks.rank + 1.0))[0]) == ranks.size * (ranks.size + 1) / 2
    ranks.barrier()


def compare_all(ranks):
    compare_losses(ranks)
    compare_trajectories(ranks)
    compare_sides(ranks)
    compare_sums(ranks)


def refuse_what_differs(ranks, fields_type=np.float32):
    """Each rank names the one that differs, and all continue."""
    system, mesh = pde.transport(3), pde.Mesh(SHAPE[::-1], 0.3, 0.1)
    loss, odd = pde.Loss(system, mesh, ranks=ranks), ranks.rank == 1
    mine = part(fields_of("f4"), loss.planes)
    short = {n: [np.ascontiguousarray(a[..., 1:, :, :]) for a in row] for n, row in mine.items()}
    wide = {n: [a.astype("f8") for a in row] for n, row in mine.items()}
    planes = f"planes {loss.planes.start} to {loss.planes.stop - 1} of 14 on rank 1"
    refusal(lambda: loss(short if odd else mine, device=DEVICE), *(["field sigma, level -1", planes] if odd else ["rank 1 failed: shape ("]))
    refusal(lambda: loss(wide if odd else mine, device=DEVICE), "levels, types or profiles of rank 1 differ from those of rank 0")
    refusal(lambda: loss(mine, path="two-sweep" if odd else "two-kernel", device=DEVICE), "options and parameters of rank 1 differ")
    refusal(lambda: pde.Loss(system, pde.Mesh(SHAPE[::-1], 0.3, 0.2 if odd else 0.1), ranks=ranks)(mine, device=DEVICE), "meshes of rank 1 differ")
    refusal(lambda: pde.Loss(pde.transport(3, upwind=odd), mesh, ranks=ranks)(mine, device=DEVICE), "systems of rank 1 differ")
    refusal(lambda: ranks.sum(np.ones(3 if odd else 2, "f4")), "types, shapes or parts of sums of rank 1 differ")
    refusal(lambda: ranks.sum(np.ones((9, 2), "f4"), parts=9) if odd else ranks.sum(np.ones((len(ranks.share(9)), 2), "f4"), parts=9),
            *(["9 parts", f"the 3 of rank 1, share(9)"] if odd else ["rank 1 failed: 9 parts"]))
    refusal(lambda: loss(mine, device=DEVICE) if odd else ranks.sum(np.ones(2, "f4")), "calls of rank")
    refusal(lambda: pde.Loss(system, pde.Mesh((4, 4, 8), 0.3, 0.1), ranks=ranks), "8 planes for 3 ranks", "at most a rank for each 4 planes")
    refusal(lambda: pde.Loss(pde.transport(2), pde.Mesh((8, 8), 0.3, 0.1), ranks=ranks), "2 dimensions over ranks")
    refusal(lambda: loss.jvp(mine, mine), "this call of a loss over ranks")
    refusal(lambda: loss.bind(mine, members=2), "field sigma")
    assert loss(mine, device=DEVICE) == pde.Loss(system, mesh)(fields_of("f4"), device=DEVICE)


def refuse_after_end(ranks):
    loss = pde.Loss(pde.transport(3), pde.Mesh(SHAPE[::-1], 0.3, 0.1), ranks=ranks)
    bound = loss.bind(part(fields_of("f4"), loss.planes), device=DEVICE).run()
    ranks.close()
    refusal(ranks.barrier, "a group that has ended")
    refusal(lambda: loss(part(fields_of("f4"), loss.planes), device=DEVICE), "a group that has ended")
    if ranks.size > 1:
        refusal(bound.run, "a group that has ended")
    assert bound.loss > 0


# ── under mpirun ──


def mpi_losses():
    with parallel.world(wait_limit=60) as ranks:
        assert ranks.transport.startswith("MPI") and parallel.world() is ranks
        compare_all(ranks)
        assert ranks.device(DEVICE).name == DEVICE
        refuse_after_end(ranks)


def mpi_uncaught():
    ranks = parallel.world(wait_limit=60)
    if ranks.rank == 1:
        raise ValueError("no field here")
    ranks.barrier()


# ── over torch.distributed ──


def torch_losses(rank, size, _):
    """The first K processes are K ranks."""
    import torch.distributed as dist
    import lockstep.torch as hooks
    for count in range(1, size + 1):
        group = dist.new_group(list(range(count)), backend="gloo")
        if rank < count:
            with hooks.ranks(group, wait_limit=60) as ranks:
                assert (ranks.rank, ranks.size) == (rank, count)
                compare_all(ranks)
                compare_networks(ranks, group)
        else:
            refusal(lambda: hooks.ranks(group), "of other processes")
    refusal(lambda: hooks.ranks(wait_limit=-1), "wait_limit=-1")


def compare_networks(ranks, group):
    """A network that predicts the fields of a rank's planes, under DistributedDataParallel, with the same network on the whole."""
    import torch
    import torch.distributed as dist
    import lockstep.torch as hooks
    system, mesh = pde.transport(3, viscosity=0.05), pde.Mesh(SHAPE[::-1], 0.2, 0.1, "z=clamp,y=clamp,x=clamp")
    loss = pde.Loss(system, mesh, ranks=ranks)

    def network():
        torch.manual_seed(3)
        return torch.nn.Sequential(torch.nn.Linear(4, 12), torch.nn.Tanh(), torch.nn.Linear(12, 4)).double()

    def predicted(model, planes):
        """sigma and u at the levels −1, 0, +1."""
        axes = [torch.arange(planes.start, planes.stop), torch.arange(SHAPE[1]), torch.arange(SHAPE[2])]
        z, y, x = (0.2 * c.double() for c in torch.meshgrid(*axes, indexing="ij"))
        levels = [model(torch.stack([x, y, z, torch.full_like(x, 0.1 * n)], -1)).movedim(-1, 0) for n in (-1, 0, 1)]
        return [q[0].contiguous() for q in levels] + [q[1:].contiguous() for q in levels]

    plain, alone = network(), network()
    shared = torch.nn.parallel.DistributedDataParallel(plain, process_group=group)
    steps = [torch.optim.SGD(m.parameters(), lr=0.02) for m in (plain, alone)]
    for _ in range(2):
        fields, whole = predicted(shared, loss.planes), predicted(alone, range(SHAPE[0]))
        for t in (*fields, *whole):
            t.retain_grad()
        value = hooks.pde_loss(loss, *fields)
        gathered = [None] * ranks.size
        dist.all_gather_object(gathered, [t.detach() for t in fields], group=group)
        joined = [torch.cat(list(parts), -3).contiguous().requires_grad_() for parts in zip(*gathered)]
        together = hooks.pde_loss(pde.Loss(system, mesh), *joined, path="two-kernel")
        exact = torch.autograd.grad(together, joined)
        assert value.item() == together.item()
        own = slice(loss.planes.start, loss.planes.stop)
        for found, expected in zip(torch.autograd.grad(value, fields, retain_graph=True), exact):
            same_bits(found, expected[..., own, :, :])
        (value * ranks.size).backward()
        hooks.pde_loss(pde.Loss(system, mesh), *whole).backward()
        for mine, other in zip(plain.parameters(), alone.parameters()):  # in another order, so within rounding
            torch.testing.assert_close(mine.grad, other.grad, rtol=1e-9, atol=1e-13)
        for step in steps:
            step.step()
            step.zero_grad()
    compare_torch_trajectories(hooks, torch, ranks)


def compare_torch_trajectories(hooks, torch, ranks):
    system, mesh, levels = pde.transport(3), pde.Mesh(SHAPE[::-1], 0.3, 0.1, "z=clamp"), fields_of("f4", 4)
    loss = pde.Loss(system, mesh, ranks=ranks)
    own = slice(loss.planes.start, loss.planes.stop)
    stacked = [np.stack(levels[n]) for n in ("sigma", "u")]
    given = [torch.tensor(a[..., own, :, :]).contiguous().requires_grad_() for a in stacked]
    value = hooks.trajectory_loss(loss, *given)
    (2 * value).backward()
    expected, gradients = pde.Loss(system, mesh).trajectory(levels, path="two-kernel", device=DEVICE)
    assert value.item() == np.float32(expected)
    for tensor, name in zip(given, ("sigma", "u")):
        same_bits(tensor.grad, np.stack([2 * np.asarray(g).reshape(a.shape) for g, a in zip(gradients[name], levels[name])])[..., own, :, :])
    only = hooks.trajectory_loss(loss, given[0].detach(), given[1])
    assert only.item() == value.item() and torch.autograd.grad(only, given[1])[0].abs().max() > 0
    compare_parameters(hooks, torch, ranks)


def compare_parameters(hooks, torch, ranks):
    """Unknown numbers of a residual and of a side: the ranks' gradients add up to those of one process."""
    heat = pde.System(3)
    t = heat.field("t")
    nu, _ = heat.parameter("nu"), heat.parameter("top")
    heat.residual("heat", heat.dt(t) - nu * nu * heat.laplacian(t))
    mesh = pde.Mesh(SHAPE[::-1], 0.3, 0.1, "z-=clamp,z+=dirichlet_face:@top,x=clamp,y=clamp")
    whole = [torch.tensor(a) for a in fields_of("f8")["sigma"]]
    loss = pde.Loss(heat, mesh, ranks=ranks)
    own = slice(loss.planes.start, loss.planes.stop)
    numbers = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (0.4, 1.5)]
    found = hooks.pde_loss(loss, *[a[own].contiguous() for a in whole], parameters=dict(zip(("nu", "top"), numbers)))
    mine = torch.autograd.grad(found * ranks.size, numbers)
    expected = hooks.pde_loss(pde.Loss(heat, mesh), *whole, parameters=dict(zip(("nu", "top"), numbers)))
    exact = torch.autograd.grad(expected, numbers)
    assert found.item() == expected.item()
    for one, other in zip(mine, exact):  # K times the K-th part
        assert other != 0
        torch.testing.assert_close(one, other, rtol=0 if ranks.size in (1, 2, 4) else 1e-15, atol=0)


def torch_refusals(rank, size, file):
    import torch.distributed as dist
    import lockstep.torch as hooks
    refuse_what_differs(hooks.ranks(wait_limit=60))
    refuse_after_end(hooks.ranks(wait_limit=60))
    slow = hooks.ranks(wait_limit=1)
    if rank == 1:
        time.sleep(3)
    refusal(slow.barrier, "has not responded for 1 s" if rank == 2 else "rank ")
    slow.close()
    last = hooks.ranks(wait_limit=60)
    last.barrier()
    reached = [pathlib.Path(f"{file}.{k}") for k in (0, 1)]
    if rank == 2:
        while not all(one.exists() for one in reached):
            time.sleep(0.01)
        os._exit(0)  # as a process that is killed
    reached[rank].touch()
    begun = time.monotonic()
    refusal(lambda: last.sum(np.ones(2, "f4")), "rank ", "cannot be reached")
    assert time.monotonic() - begun < 20
    last.close()


def main(case, *words):
    if case.startswith("mpi_"):
        return globals()[case]()
    import torch.distributed as dist
    rank, size, file = int(words[0]), int(words[1]), words[2]
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=size)
    globals()[case](rank, size, file)
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
