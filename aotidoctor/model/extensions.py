"""What installed plugins add to a command: nothing, unless ``aotidoctor.plugins`` has put something here.

The rooms that have a registry (checks, probes, playbooks, log patterns) look here for more of the same. It belongs to
the context of a call, so that a library in several threads may use plugins in one and none in another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import TYPE_CHECKING

from aotidoctor.model.record import record

if TYPE_CHECKING:
    from pathlib import Path

    from aotidoctor.checks.check import Check
    from aotidoctor.model.evidence import NotChecked
    from aotidoctor.probes.probe import Probe


@record
class Extensions:
    """``took_part`` is a line of the report; ``problems`` are what of the plugins could not be used, and why.

    ``setups`` are modules that every child imports before the package; ``host_facts`` are facts by name.
    """

    checks: tuple[Check, ...] = ()
    probes: tuple[Probe, ...] = ()
    playbooks: tuple[Path, ...] = ()
    patterns: tuple[Path, ...] = ()
    setups: tuple[str, ...] = ()
    host_facts: Mapping[str, str] = field(default_factory=dict)
    took_part: str = ""
    problems: tuple[NotChecked, ...] = ()


NONE = Extensions()
_current: ContextVar[Extensions] = ContextVar("aotidoctor_extensions", default=NONE)


def current() -> Extensions:
    """Those of this call."""
    return _current.get()


@contextmanager
def using(extensions: Extensions) -> Iterator[None]:
    """With ``extensions`` until the end of the block."""
    token = _current.set(extensions)
    try:
        yield
    finally:
        _current.reset(token)
