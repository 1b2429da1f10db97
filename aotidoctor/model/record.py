"""``@record``: a frozen dataclass with slots and keywords, at a tenth of what it costs to define one.

A command imports some two hundred records and makes objects of a few dozen. ``dataclass`` compiles six methods for each
of them at once, which is a quarter of the time of `check`. Here those that depend on the fields are compiled when they
are called first, and the others are the same functions for all. ``fields``, ``replace``, ``asdict`` and
``is_dataclass`` work.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, NoReturn, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> object:
        """Only for type checkers; Python has it from 3.11 on."""
        return lambda decorator: decorator


T = TypeVar("T")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """``cls`` as a record; one that inherits from a record has the fields of both."""
    made = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True, match_args=False)(cls)
    own = vars(cls)
    for name in ("__init__", "__eq__", "__hash__"):
        if name not in own:
            setattr(made, name, _compiled_later(made, name))
    for name, method in _METHODS.items():
        if name not in own:
            setattr(made, name, method)
    return made


def _compiled_later(cls: type, name: str) -> object:
    def method(self: object, *given: object, **named: object) -> object:
        compiled = _compiled(cls, name)
        setattr(cls, name, compiled)
        return compiled(self, *given, **named)

    return method


def _compiled(cls: type, name: str) -> FunctionType:
    """The method as ``dataclass`` would write it, but that values are put into slots past the refusing assignment."""
    known: dict[str, object] = {"MISSING": MISSING}
    if name == "__init__":
        text = _init(cls, known)
    elif name == "__eq__":
        mine, others = _values(cls, "self"), _values(cls, "other")
        text = f"(self, other): return {mine} == {others} if other.__class__ is self.__class__ else NotImplemented"
    else:
        text = f"(self): return hash({_values(cls, 'self')})"
    exec(f"def {name}{text}", known)  # noqa: S102 - names of fields, and ours
    made = known[name]
    assert isinstance(made, FunctionType)  # noqa: S101 - the line above defined it
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    return made


def _init(cls: type, known: dict[str, object]) -> str:
    asked, lines = ["self"], ["pass"]
    for at, one in enumerate(fields(cls)):
        known[f"set{at}"], known[f"default{at}"] = getattr(cls, one.name).__set__, one.default
        value = one.name
        if one.default_factory is not MISSING:
            known[f"make{at}"] = one.default_factory
            value = f"make{at}() if {one.name} is MISSING else {one.name}"
        needed = one.default is MISSING and one.default_factory is MISSING
        asked.append(one.name if needed else f"{one.name}=default{at}")
        lines.append(f"set{at}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    asked[1:1] = ["*"] if len(asked) > 1 else []
    return f"({', '.join(asked)}): {'; '.join(lines)}"


def _values(cls: type, name: str) -> str:
    return f"({''.join(f'{name}.{one.name}, ' for one in fields(cls) if one.compare)})"


@recursive_repr()
def _repr(self: DataclassInstance) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _refuse(_: object, name: str, *_value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(self: DataclassInstance) -> list[object]:
    return [getattr(self, one.name) for one in fields(self)]


def _restore(self: DataclassInstance, state: list[object]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


_METHODS: dict[str, object] = {
    "__repr__": _repr,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__getstate__": _state,
    "__setstate__": _restore,
}
