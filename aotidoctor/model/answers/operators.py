"""Custom operators: what is registered, what they were called with, and what they did alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.answers.called import Tensor
from aotidoctor.model.record import record


@record
class Argument:
    """An argument of a registered operator."""

    name: str
    has_default: bool = False


@record
class Operator:
    """What is registered under a name; all else is of the wanted overload: ``schema`` is its text, None without one."""

    registered: bool = False
    schema: str | None = None
    arguments: tuple[Argument, ...] = ()
    returns: int | None = None
    kernel: bool | None = None


@record
class Registry:
    """Operators by the names that were asked for."""

    ops: Mapping[str, Operator] | None = None


@record
class SavedCall:
    """A call of an operator: node ``index`` of the package, its arguments in ``file``."""

    index: int = -1
    target: str = ""
    file: str = ""
    reason: str = ""


@record
class SavedCalls:
    """``by`` hooks or the reference; ``skipped`` have a reason instead of a file."""

    by: str = ""
    captured: tuple[SavedCall, ...] = ()
    skipped: tuple[SavedCall, ...] = ()
    unavailable: str = ""


@record
class OperatorCall:
    """One saved call made again. ``outputs`` None: it did not return. ``again`` are the digests of a second call."""

    file: str = ""
    bad: str | None = None
    arguments: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] | None = None
    digests: tuple[str | None, ...] = ()
    again: tuple[str | None, ...] = ()
    writes: tuple[str, ...] = ()
    aliases: tuple[tuple[str, ...], ...] = ()
    clean: bool = False
    generator: bool = False
    fake: tuple[Tensor, ...] | None = None


@record
class OperatorAlone:
    """One operator, called by itself. ``opcheck`` maps PyTorch's tests to ``SUCCESS`` or their text."""

    calls: tuple[OperatorCall, ...] = ()
    returned: bool = False
    tags: tuple[str, ...] = ()
    opcheck: Mapping[str, str] = field(default_factory=dict)
