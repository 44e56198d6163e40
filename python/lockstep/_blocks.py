"""Blocks of a kernel that Python's `with` and `for` open and close: each is one statement, and no name changes in it.

A body is traced once. A name of Python that is bound again inside would hold for the rest of the trace, not for the passes
or lanes that come there, so that is refused; a variable (`lockstep.var`) is what they change.
"""
import ast
import contextlib
import dis
import functools
import inspect
import textwrap

from ._errors import InputError
from ._expr import Val, caller, frame_of_caller, mark, trace


@contextlib.contextmanager
def traced():
    """Around the function of a kernel: what it began, it has ended. A kernel may be traced while another one is."""
    outer = dict(trace.__dict__)
    trace.reset()
    try:
        yield
        if trace.left_open:
            word, where = trace.left_open[0]
            raise InputError(f"a Python break, return or exception out of {word}", where,
                             "lockstep.break_() or lockstep.return_()")
        if trace.unused:
            word = trace.unused[0].word
            raise InputError(f"{word} alone", trace.unused[0].where,
                             "`for i in lockstep.for_(…):`" if word == "for_" else f"`with lockstep.{word}(…):`")
    finally:
        trace.__dict__.update(outer)


class Statement:
    """What begins a block, once a `with` or `for` takes it."""

    def __init__(self, word):
        self.word, self.where = word, caller()
        trace.unused.append(self)

    def begun(self):
        trace.unused[:] = [s for s in trace.unused if s is not self]


class Block(Statement):
    """The block of a `with`."""

    def __enter__(self):
        self.begun()
        mark()
        frame = frame_of_caller()
        for left in _left(frame.f_code):
            if left.lineno <= frame.f_lineno <= left.items[-1].context_expr.end_lineno:
                raise InputError(f"a Python return, break or continue out of {self.word}", caller(),
                                 "lockstep.return_(), break_() or continue_(): Python's own runs while tracing")
        self._block = self.open()
        self._names = Names()

    def __exit__(self, kind, *_):
        if kind is not None:
            trace.left_open.append((self.word, self.where))
            return
        self._names.check(self.word)
        mark()
        self.close(self._block)


@functools.lru_cache(maxsize=256)
def _left(code):
    """The with statements of a function that Python's return, break or continue leaves; none where its source is not known."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError):
        return []
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    return [node for node in ast.walk(tree) if isinstance(node, ast.With) and any(map(_leaves, node.body))]


def _leaves(node, jumps=(ast.Return, ast.Break, ast.Continue)):
    """Whether a statement leads out of the block that it is in."""
    if isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
        return False
    inner = ast.Return if isinstance(node, (ast.For, ast.While)) else jumps
    return isinstance(node, jumps) or any(_leaves(child, inner) for child in ast.iter_child_nodes(node))


@functools.lru_cache(maxsize=256)
def _instructions(code):
    return [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]


def _assigned(frame, begin):
    """Names that the body which began at an offset, and ends here, assigns, and the targets of Python's own loops in it."""
    found, of_loops, targets, end = set(), set(), 0, frame.f_lasti
    for i in _instructions(frame.f_code):
        if i.offset == frame.f_lasti and i.opname == "FOR_ITER":
            begin, end = i.offset, i.argval  # a for statement comes back to its head
        if not begin <= i.offset <= end:
            continue
        if i.opname == "FOR_ITER":
            targets = 1
        elif i.opname == "UNPACK_SEQUENCE" and targets:
            targets += i.arg - 1
        elif i.opname.startswith("STORE_") and i.opname not in ("STORE_SUBSCR", "STORE_ATTR", "STORE_SLICE"):
            for name in i.argval if isinstance(i.argval, tuple) else (i.argval,):
                if targets:
                    targets -= 1
                    of_loops.add(name)
                else:
                    found.add(name)
        else:
            targets = 0
    return found, of_loops


def _is_traced(value):
    return type(value).__module__.startswith("lockstep.")


def _is_value(value):
    return _is_traced(value) or isinstance(value, (bool, int, float, str, type(None)))


def _counts(before, after):
    """Whether an item of a list or dictionary is one that a kernel may mean to change."""
    return _is_traced(before) or _is_traced(after) or (_is_value(before) and _is_value(after))


def _changes(before, after):
    """Whether binding another value would be lost on the kernel: of a value that is still there, or of a number."""
    if before is after:
        return False
    if isinstance(before, Val):
        return before._is_visible()
    return _is_traced(before) or _is_traced(after) or type(before) is not type(after) or before != after


def _items(container):
    """What a list or a dictionary holds, by number or key."""
    return dict(container) if isinstance(container, dict) else dict(enumerate(container))


class Names:
    """The names of the function that opens a block, as they are bound there."""

    def __init__(self):
        trace.blocks += 1
        trace.scope.append(trace.blocks)
        self._frame = frame_of_caller()
        self._offset = self._frame.f_lasti
        bound = self._frame.f_locals
        self._bound = {n: v for n, v in bound.items() if _is_value(v)}
        self._items = {n: (v, _items(v)) for n, v in bound.items() if isinstance(v, (list, dict))}

    def check(self, word):
        """The block ends. Refuses names and items of lists and dictionaries that it has bound to other values."""
        trace.scope.pop()
        frame = frame_of_caller()
        if frame is not self._frame:
            return
        now = frame.f_locals
        changed = [n for n, v in self._bound.items() if n in now and _changes(v, now[n])]
        if changed:
            assigned, of_loops = _assigned(frame, self._offset)
            changed = [n for n in changed if n in assigned or n not in of_loops]  # a nested function assigns by nonlocal
        for n, (held, items) in self._items.items():
            after = _items(held)
            changed += [n for key, a in items.items() if key in after and _counts(a, after[key]) and _changes(a, after[key])]
        if changed:
            name = changed[0]
            raise InputError(f"{name} bound to another value inside of {word}", caller(),
                             f"a variable ({name} = lockstep.var(…) before it; {name}.set(…) or += inside), "
                             "or a new name for what is used inside only")


def check_names(variable):
    """Refuses to change a variable that two names of a function stand for: one of them is meant to keep the old value."""
    frame = frame_of_caller()
    names = [n for n, v in frame.f_locals.items() if v is variable] if frame else []
    if len(names) > 1:
        raise InputError(f"{names[0]} and {names[1]} are one variable", caller(),
                         f"+{names[0]} for its value at a moment, lockstep.var({names[0]}) for another variable")


def check_for_statement():
    """Refuses for_ in a comprehension, or below enumerate, zip and the like, which count on the host."""
    frame = frame_of_caller()
    code = _instructions(frame.f_code)
    here = next((k for k, i in enumerate(code[:-1]) if i.offset == frame.f_lasti), None)
    if here is None or (code[here].opname, code[here + 1].opname) != ("GET_ITER", "FOR_ITER"):
        raise InputError("for_ away from a for statement", caller(),
                         "`for i in lockstep.for_(begin, end):` alone, and a variable for what the loop gathers")
