"""Compilation: the only module that imports numba.

Three things are compiled. The *loop*, once for each class of policy state: `state.choose(…)` on a NamedTuple resolves
to the plain function of its class. The *laws* of the arms, into one C function that the loop calls by its address, so
that policies and laws are compiled once each and not once a pair. And the *marked* helpers, where they are called.
"""

from __future__ import annotations

import hashlib
import inspect
import types as python_types
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.core.caching import FunctionCache
from numba.core.errors import TypingError
from numba.extending import overload, overload_method, register_jitable

from belated import loop, visitors
from belated.law import Law
from belated.marks import MARKED
from belated.policies.base import hear

# Division by zero gives inf or nan, as in NumPy; and all is inlined into the loop, where it costs a third.
OPTIONS = {"error_model": "numpy", "forceinline": True}

# The functions of NamedTuples that compiled code may call, by name, with templates of their arguments.
METHODS: dict[str, Callable[..., Any]] = {
    "choose": lambda self, t, rng: self.instance_class.choose,
    "sent": lambda self, t, arm: self.instance_class.sent,
    "learn": lambda self, arm, reward, rng: self.instance_class.learn,
    "heard": lambda self, t, s, arm, reward, rng: self.instance_class.heard,
    "ripen": lambda self, t, arm: self.instance_class.ripen,
    "quantile": lambda self, q: self.instance_class.quantile,
    "cdf": lambda self, d: self.instance_class.cdf,
    "delay": lambda self, memory, t, reward, v: self.instance_class.delay,
    "revealed": lambda self, memory, t, reward, v: self.instance_class.revealed,
    "sample": lambda self, t, arm, reward, v: self.instance_class.sample,
    "reward_of": lambda self, arm, u: self.instance_class.reward_of,
    "random": lambda self: self.instance_class.random,
    "put": lambda self, t, arm, reward, due: self.instance_class.put,
}
for _name, _template in METHODS.items():
    overload_method(types.BaseNamedTuple, _name, strict=False, jit_options=OPTIONS)(_template)


@overload(hear, strict=False, jit_options=OPTIONS)  # type: ignore[untyped-decorator]
def _hear(state: Any, t: int, s: int, arm: int, reward: float, rng: Any) -> Callable[..., None]:
    """`hear`, decided by the class of the state."""
    if hasattr(state.instance_class, "heard"):
        return lambda state, t, s, arm, reward, rng: state.heard(t, s, arm, reward, rng)
    return lambda state, t, s, arm, reward, rng: state.learn(arm, reward, rng)


_registered = 0


def register_marked() -> None:
    """Make the functions marked since the last call known to numba."""
    global _registered
    for function in MARKED[_registered:]:
        register_jitable(**OPTIONS)(function)
    _registered = len(MARKED)


# --- Laws -----------------------------------------------------------------------------------------------------------

# double delay(rows, width, arm, t, reward, v, revealed): the one face that every set of laws has for the loop. It
# returns the delay and leaves what is revealed of the reward in `revealed[0]`.
_NUMBERS = types.CPointer(types.float64)
DELAY = types.float64(_NUMBERS, types.int64, types.int64, types.int64, types.float64, types.float64, _NUMBERS)


class CompiledDelays(NamedTuple):
    """The delays of the arms: a row of numbers an arm, and the C function that reads its law from them."""

    rows: np.ndarray
    function: Any
    shown: np.ndarray  # [0]: where the function leaves what is revealed

    def sample(self, t: int, arm: int, reward: float, v: float) -> tuple[float, float]:
        delay = self.function(self.rows.ctypes, self.rows.shape[1], arm, t, reward, v, self.shown.ctypes)
        return float(delay), float(self.shown[0])


def compiled_delays(laws: tuple[Law, ...]) -> CompiledDelays:
    """The laws as rows, and the reader of such rows; the rows are the caller's own, for a queue writes in its row."""
    register_marked()
    table, kinds = _table(laws)
    return CompiledDelays(table.copy(), _reader(kinds), np.zeros(1))


@lru_cache(maxsize=64)
def _table(laws: tuple[Law, ...]) -> tuple[np.ndarray, tuple[Kind, ...]]:
    """Each law as a row `[kind, memory…, numbers…, contents of its tuples…]`, and the kinds of laws there are."""
    kinds: dict[Kind, int] = {}
    rows = []
    for law in laws:
        row = Row(law)
        rows.append([kinds.setdefault(row.kind, len(kinds)), *row.numbers])
    width = max(len(row) for row in rows)
    return np.array([row + [0.0] * (width - len(row)) for row in rows], float), tuple(kinds)


class Kind(NamedTuple):
    """What laws must share to be read by the same code."""

    expression: str
    classes: tuple[type[Law], ...]
    memory: int


class Row:
    """A law as a row of numbers, and the Python expression that makes it again from the row."""

    def __init__(self, law: Law):
        form = law.compiled_form()
        self.numbers: list[float] = [0.0] * form.memory
        self.classes: list[type[Law]] = []
        self._tuples: list[tuple[int, tuple[float, ...]]] = []
        expression = self._write(form)
        for place, values in self._tuples:
            self.numbers[place : place + 2] = [len(self.numbers) + 1.0, len(self.numbers) + 1.0 + len(values)]
            self.numbers += values
        self.kind = Kind(expression, tuple(self.classes), form.memory)

    def _write(self, law: Law) -> str:
        position = len(self.classes)
        self.classes.append(type(law))
        parts = []
        for each in fields(law):
            value = getattr(law, each.name)
            at = len(self.numbers) + 1  # the kind stands first in the row
            if isinstance(value, Law):
                parts.append(self._write(value))
            elif isinstance(value, tuple):
                parts.append(f"row[int(row[{at}]):int(row[{at + 1}])]")
                self._tuples.append((len(self.numbers), value))
                self.numbers += [0.0, 0.0]
            else:
                parts.append(f"row[{at}]")
                self.numbers.append(float(value))
        return f"law{position}({', '.join(parts)})"


@cache
def _twin(law: type[Law]) -> type:
    """The NamedTuple with a law's fields and functions, in whose shape numba knows it."""
    names = [each.name for each in fields(law)]
    functions = {name: getattr(law, name) for name in ("quantile", "cdf", "delay", "revealed")}
    return type(law.__name__, (namedtuple(law.__name__, names),), functions)


@cache
def _reader(kinds: tuple[Kind, ...]) -> Any:
    """The C function that finds an arm's law in its row and asks it for a delay."""
    lines = [
        "def delay(pointer, width, arm, t, reward, v, revealed):",
        "    row = carray(pointer, ((arm + 1) * width,))[arm * width:]",
    ]
    names: dict[str, Any] = {"carray": numba.carray, "np": np}
    for number, (expression, classes, memory) in enumerate(kinds):
        for position, law in enumerate(classes):
            names[f"kind{number}_law{position}"] = _twin(law)  # type: ignore[arg-type]
        made = expression.replace("law", f"kind{number}_law")
        lines.append(f"    if row[0] == {number}:")
        lines.append(f"        law, memory = {made}, row[1:{1 + memory}]")
        lines.append("        carray(revealed, (1,))[0] = law.revealed(memory, t, reward, v)")
        lines.append("        return float(law.delay(memory, t, reward, v))")
    lines.append("    return np.inf")
    exec("\n".join(lines), names)
    return numba.cfunc(DELAY, **OPTIONS)(names["delay"])


# --- The loop -------------------------------------------------------------------------------------------------------


class SourceAwareCache(FunctionCache):  # type: ignore[misc]
    """numba's disk cache, keyed also on the source of the classes of the arguments, which numba's own key leaves out.

    Classes defined in a script or notebook (`__main__`) are not cached: they have no name that outlives the process.
    """

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        classes = sorted(set(_named_tuples(sig)), key=lambda each: each.__qualname__)
        return (str(sig), codegen.magic_tuple(), _own_source(), fingerprint(*classes))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return super().load_overload(sig, target_context) if _importable(sig) else None

    def save_overload(self, sig: Any, data: Any) -> None:
        if _importable(sig):
            super().save_overload(sig, data)


def _named_tuples(sig: Any) -> Iterator[type]:
    for each in sig:
        if isinstance(each, types.BaseNamedTuple):
            yield each.instance_class
        if isinstance(each, types.BaseTuple):
            yield from _named_tuples(each)


def _importable(sig: Any) -> bool:
    return all(each.__module__ != "__main__" for each in _named_tuples(sig))


@cache
def _own_source() -> str:
    files = [Path(__file__), Path(inspect.getfile(loop)), Path(inspect.getfile(visitors))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def fingerprint(*roots: Any) -> str:
    """A digest of the code of functions and classes and of every function, class and constant that they use."""
    seen: set[int] = set()
    digest = hashlib.sha256()

    def visit(thing: Any) -> None:
        if id(thing) in seen:
            return
        seen.add(id(thing))
        if isinstance(thing, type):
            for name, value in sorted(vars(thing).items()):
                if isinstance(value, python_types.FunctionType):
                    digest.update(name.encode())
                    visit(value)
        elif isinstance(thing, python_types.FunctionType):
            visit_code(thing.__code__, thing.__globals__)
            digest.update(repr(thing.__defaults__).encode())
        elif isinstance(thing, int | float | str | bool | tuple | np.ndarray):
            digest.update(repr(thing).encode())

    def visit_code(code: python_types.CodeType, names: dict[str, Any]) -> None:
        digest.update(code.co_code + repr((code.co_names, code.co_varnames)).encode())
        for constant in code.co_consts:
            if isinstance(constant, python_types.CodeType):
                visit_code(constant, names)
            else:
                digest.update(repr(constant).encode())
        for name in code.co_names:
            if name in names and not isinstance(names[name], python_types.ModuleType):
                visit(names[name])

    for root in roots:
        visit(root)
    return digest.hexdigest()


def _loop(**options: Any) -> Any:
    function = numba.njit(nogil=True, **OPTIONS, **options)(loop.play)
    function._cache = SourceAwareCache(loop.play)
    return function


# Without reference counts the loop runs twice as fast, but may make no arrays.
_lean = _loop(_nrt=False)
_roomy = _loop()
_compiled: dict[Any, Callable[..., None]] = {}


def play(state: Any, *arguments: Any) -> None:
    """`loop.play`, compiled for states like this one.

    numba takes 0.1 ms to find the types of all arguments, so that is done once for each form of state: the forms of the
    other arguments never vary.
    """
    form = _form(state)
    if form not in _compiled:
        register_marked()
        _compiled[form] = _compile(tuple(numba.typeof(each) for each in (state, *arguments)), type(state).__name__)
    _compiled[form](state, *arguments)


def is_ready(state: Any) -> bool:
    """Whether the loop is there already for states like this one, in this process."""
    return _form(state) in _compiled


def _form(value: Any) -> Any:
    """What of a value decides its numba type."""
    if isinstance(value, tuple):
        return (type(value), *map(_form, value))
    if isinstance(value, np.ndarray):
        flags = value.flags
        return (value.dtype, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable)
    return type(value)


def _compile(signature: tuple[Any, ...], name: str) -> Callable[..., None]:
    try:
        return _lean.compile(signature)  # type: ignore[no-any-return]
    except TypingError:
        pass
    try:
        return _roomy.compile(signature)  # type: ignore[no-any-return]
    except TypingError as error:
        raise TypeError(f"{name} does not compile; simulate(…, compiled=False) runs it as it is. {error}") from None
