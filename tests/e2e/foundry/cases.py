"""The record of a case, and the helpers that the tables of cases are written with."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foundry import build, edit
from foundry.models import BY_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """The compiled base models of this machine."""

    cache: Path

    def package(self, name: str) -> Path:
        """The compiled package."""
        return build.folder(self.cache, BY_NAME[name]) / "model.pt2"

    def sample_path(self, name: str) -> Path:
        """The good inputs as a file."""
        return build.folder(self.cache, BY_NAME[name]) / "sample.pt"

    def exported(self, name: str) -> Path:
        """The exported program it was compiled from."""
        return build.folder(self.cache, BY_NAME[name]) / "exported.pt2"

    def call(self, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The good inputs, loaded: args and kwargs."""
        import torch

        sample = torch.load(self.sample_path(name), weights_only=True)
        return (sample["args"], sample["kwargs"]) if isinstance(sample, dict) else (sample, {})

    @property
    def library(self) -> Path:
        """The C++ operator library."""
        return build.library(self.cache)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a user would type: the package, the inputs, options, and changes to the environment."""

    model: Path
    inputs: Path | None = None
    setup: Path | None = None
    options: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> list[str]:
        """The arguments after ``aotidoctor run``."""
        given = [str(self.model)]
        given += ["--inputs", str(self.inputs)] if self.inputs else []
        given += ["--setup", str(self.setup)] if self.setup else []
        return [*given, *self.options]


Maker = Callable[[Kit, Path], Call]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case of the end-to-end tests.

    ``cause`` is the expected cause at rank 1, None for a healthy case; ``also`` are causes that would be as right.
    ``subject`` is what must be named, None where the cause says it all. ``exits`` are the permitted exit statuses:
    a warning leaves 0. ``base`` is the model it was made from. ``proof``: the cause has to be confirmed.
    """

    name: str
    base: str
    make: Maker
    cause: str | None = None
    also: tuple[str, ...] = ()
    subject: str | None = None
    exits: tuple[int, ...] = (0,)
    slow: bool = False
    proof: bool = False

    @property
    def causes(self) -> tuple[str, ...]:
        """All causes that are right at rank 1."""
        return () if self.cause is None else (self.cause, *self.also)


WARNS = (0,)
FAILS = (1,)
EITHER = (0, 1)


def save(value: object, path: Path) -> Path:
    """``torch.save``."""
    import torch

    torch.save(value, path)
    return path


def given(name: str, base: str, change: Callable[..., object], *named: str, **more: Any) -> Case:
    """A case whose inputs are changed: ``change(*args, **kwargs)`` returns the object to save.

    For all helpers: ``named`` is the expected cause and subject, none for a healthy case; ``more`` are the fields
    ``exits``, ``also`` and ``slow`` of the case, and ``setup`` (text of a setup file), ``options`` and ``env`` of the
    call. ``{library}``, ``{where}`` and ``{exported:NAME}`` are filled in.
    """

    def make(kit: Kit, where: Path) -> Call:
        args, kwargs = kit.call(base)
        inputs = save(change(*args, **kwargs), where / "sample.pt")
        return _around(kit, where, _copy(kit, where, base), inputs, more)

    return _case(name, base, make, named, more)


def packaged(
    name: str, base: str, change: Callable[[list[edit.Member]], list[edit.Member]], *named: str, **more: Any
) -> Case:
    """A case whose archive is changed: members in, members out."""

    def make(kit: Kit, where: Path) -> Call:
        model = edit.write(where / "model.pt2", change(edit.read(kit.package(base))))
        return _around(kit, where, model, _sample(kit, where, base), more)

    return _case(name, base, make, named, more)


def made(name: str, base: str, change: Callable[[Kit, Path], Path], *named: str, **more: Any) -> Case:
    """A case whose package is made by a function: kit and folder in, path out; the inputs are the good ones."""

    def make(kit: Kit, where: Path) -> Call:
        return _around(kit, where, change(kit, where), _sample(kit, where, base), more)

    return _case(name, base, make, named, more)


def filed(name: str, base: str, change: Callable[[Kit, Path], Path], *named: str, **more: Any) -> Case:
    """A case whose inputs file is made by a function: kit and folder in, path out; the package is the good one."""

    def make(kit: Kit, where: Path) -> Call:
        return _around(kit, where, _copy(kit, where, base), change(kit, where), more)

    return _case(name, base, make, named, more)


def called(name: str, base: str, *named: str, **more: Any) -> Case:
    """A case with the good package and the good inputs: the fault, if any, is in setup, options or environment."""
    return made(name, base, lambda kit, where: _copy(kit, where, base), *named, **more)


def _copy(kit: Kit, where: Path, base: str) -> Path:
    return Path(shutil.copy(kit.package(base), where / "model.pt2"))


def _sample(kit: Kit, where: Path, base: str) -> Path:
    return Path(shutil.copy(kit.sample_path(base), where / "sample.pt"))


_EXPORTED = re.compile(r"\{exported:(\w+)\}")


def fill(text: str, kit: Kit, where: Path) -> str:
    """Put paths where the tables of cases have names."""
    text = _EXPORTED.sub(lambda hit: str(kit.exported(hit[1])), text)
    return text.replace("{library}", str(kit.library)).replace("{where}", str(where))


def _around(kit: Kit, where: Path, model: Path, inputs: Path, more: Mapping[str, Any]) -> Call:
    script = None
    if "setup" in more:
        script = where / "setup_case.py"
        script.write_text(fill(more["setup"], kit, where))
    options = tuple(fill(option, kit, where) for option in more.get("options", ()))
    environment = {key: fill(value, kit, where) for key, value in more.get("env", {}).items()}
    return Call(model=model, inputs=inputs, setup=script, options=options, env=environment)


_CALL_KEYS = frozenset({"setup", "options", "env"})


def _case(name: str, base: str, make: Maker, named: tuple[str, ...], more: Mapping[str, Any]) -> Case:
    cause, subject = (*named, None, None)[:2]
    own = {key: value for key, value in more.items() if key not in _CALL_KEYS}
    own.setdefault("exits", FAILS if cause else (0,))
    return Case(name=name, base=base, make=make, cause=cause, subject=subject, **own)
