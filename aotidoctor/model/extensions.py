"""Hold what installed plugins add to a command, and find the playbook files.

The rooms that have a registry (checks, probes, playbooks, log patterns) look here for plugins' additions. These belong
to the context of a call, so that a library in several threads may use plugins in one and none in another.

Playbooks are in ``aotidoctor/_playbooks`` in the wheel and in ``playbooks/`` beside the package in a checkout. An
editable install does not get the files that the build puts into the wheel, so both places are searched. This is the
only question about files that the vocabulary answers: it imports ``pathlib``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.model.record import record

if TYPE_CHECKING:
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


NO_EXTENSIONS = Extensions()
_current: ContextVar[Extensions] = ContextVar("aotidoctor_extensions", default=NO_EXTENSIONS)


def current_extensions() -> Extensions:
    """Those of this call."""
    return _current.get()


@contextmanager
def use_extensions(extensions: Extensions) -> Iterator[None]:
    """With ``extensions`` until the end of the block."""
    token = _current.set(extensions)
    try:
        yield
    finally:
        _current.reset(token)


# Playbook files.

_PACKAGE = Path(__file__).resolve().parent.parent


def playbook_folder() -> Path | None:
    """The folder that holds the playbooks, None when neither place exists."""
    places = (_PACKAGE / "_playbooks", _PACKAGE.parent / "playbooks")
    return next((place for place in places if place.is_dir()), None)


def playbook_files() -> tuple[Path, ...]:
    """Every playbook, sorted by cause, those of plugins last. A README among them is not one."""
    place = playbook_folder()
    return (*(_own(place) if place is not None else ()), *current_extensions().playbooks)


@lru_cache(maxsize=4)
def _own(place: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in place.glob("*.md") if path.stem.islower()))


def find_playbook(cause: str) -> Path | None:
    """The playbook of ``cause``, None when there is none."""
    return next((path for path in playbook_files() if path.stem == cause), None)
