"""Messages between the processes of a torch.distributed group."""
import collections
import datetime
import time
import weakref

import torch
import torch.distributed as dist

from . import _core
from ._errors import InputError, UnsupportedError
from .parallel import Ranks, _wait_limit

_WHERE = "torch.distributed"
_LAST_S = 10.0  # for messages that have not left at the end
_FIRST_TAG, _TAGS = 1 << 20, 32  # apart from the caller's own; each of several on one group has its own
_made = weakref.WeakKeyDictionary()  # how many were made on a group


class _Messages:
    """Point-to-point messages over gloo. A message is its length and its bytes.

    gloo reports neither arrivals nor departures before they are waited for. So what was sent before the last message that
    was received is waited for at the next send: its receivers have requested it by then, as every rank makes the same calls.
    """

    name = _WHERE

    def __init__(self, members, group, limit):
        self._members, self._group, self._limit = members, group, limit
        self._first_tag = _FIRST_TAG + _TAGS * _made.setdefault(group, 0)
        _made[group] += 1
        self.rank, self.size = members.index(dist.get_rank()), len(members)
        self._sending, self._received = collections.deque(), False
        self._lost = None

    def _call(self, other, call):
        if self._lost is None:
            try:
                return call()
            except (RuntimeError, ValueError) as error:
                self._lost = f"rank {other} cannot be reached ({str(error).splitlines()[0]})"
        raise InputError(self._lost, _WHERE, "ranks that run, and a process group that is in use")

    def _wait_for_sent(self, limit):
        while self._sending:
            other, work, _ = self._sending.popleft()
            self._call(other, lambda work=work: work.wait(datetime.timedelta(seconds=limit)))

    def send(self, to, tag, data):
        if self._received:
            self._wait_for_sent(self._limit)
            self._received = False
        parts = [torch.tensor([len(data)])] + ([torch.frombuffer(bytearray(data), dtype=torch.uint8)] if data else [])
        for part in parts:
            work = self._call(to, lambda part=part: dist.isend(part, self._members[to], self._group, self._first_tag + tag))
            self._sending.append((to, work, part))

    def receive(self, source, tag, limit):
        def tensor(like):
            begun = time.monotonic()
            work = dist.irecv(like, self._members[source], self._group, self._first_tag + tag)
            try:
                work.wait(datetime.timedelta(seconds=limit))
            except RuntimeError:
                if time.monotonic() - begun < limit:
                    raise
                self._lost = f"rank {source} has not answered for {limit:g} s"  # gloo ends its connections then
                return None
            return like

        length = self._call(source, lambda: tensor(torch.empty(1, dtype=torch.int64)))
        self._received = True
        if length is None or not length[0]:
            return None if length is None else b""
        data = self._call(source, lambda: tensor(torch.empty(int(length[0]), dtype=torch.uint8)))
        return None if data is None else data.numpy().tobytes()

    def close(self):
        try:
            if self._lost is None:
                self._wait_for_sent(_LAST_S)
        except InputError:
            pass  # those that would receive are gone
        self._sending.clear()


def ranks_of(process_group, wait_limit):
    limit = _wait_limit(wait_limit)
    if not dist.is_available() or not dist.is_initialized():
        raise InputError("no process group", "lockstep.torch.ranks", "torch.distributed.init_process_group() before it")
    if not dist.is_gloo_available():
        raise UnsupportedError("a torch without gloo", "lockstep.torch.ranks", "one with it, which passes messages of the host")
    if process_group is None:
        process_group = dist.new_group(backend="gloo", timeout=datetime.timedelta(seconds=limit))
    elif process_group is dist.GroupMember.NON_GROUP_MEMBER or "cpu:gloo" not in dist.get_backend_config(process_group):
        raise InputError("a process group without gloo, or of other processes", "lockstep.torch.ranks",
                         'dist.new_group(…, backend="gloo") that this process belongs to, or none')
    messages = _Messages(dist.get_process_group_ranks(process_group), process_group, limit)
    return Ranks(_core.group_of_messages(messages, limit), messages)
