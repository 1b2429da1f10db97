"""One item of a fleet: what is asked of which file, and what its result will be called."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record

# Commands that take a package, those that take something else, and those that execute what the item names.
PACKAGE_COMMANDS = ("check", "run", "compat", "verify")
COMMANDS = (*PACKAGE_COMMANDS, "classify", "triton", "analyze")
EXECUTING = frozenset({"run", "verify"})
# Commands that judge for another machine.
FOR_HOSTS = frozenset({"check", "compat"})
# What another process is told of an item; the others only the results need.
_ASKED = ("command", "path", "package", "inputs", "reference", "setup", "host")


@record
class Item:
    """``path`` is the package, program, log, bundle, report or folder that ``command`` is about.

    ``package`` is the package that a log is about. ``problem`` is set where the item cannot be judged at all, and says
    why; it has a line in the results all the same.
    """

    command: str
    path: str
    package: str | None = None
    inputs: str | None = None
    reference: str | None = None
    setup: str | None = None
    host: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    expected: str | None = None
    problem: str | None = None

    @property
    def id(self) -> str:
        """16 hex digits of what is asked; labels and expectations are no part of it."""
        asked = [getattr(self, name) for name in _ASKED]
        return hashlib.sha256(json.dumps(asked).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def files(self) -> tuple[str, ...]:
        """The files whose contents decide the answer, the one that it is about first."""
        return tuple(
            path for path in (self.path, self.package, self.inputs, self.reference, self.setup) if path is not None
        )


def item_json(item: Item) -> JsonObject:
    """``item`` for another process, without what only the results need."""
    return {name: value for name in _ASKED if (value := getattr(item, name)) is not None}


def read_item(document: JsonObject) -> Item:
    """The item that ``item_json`` wrote."""
    given = {name: value for name in _ASKED if isinstance(value := document.get(name), str)}
    return Item(**{"command": "", "path": "", **given})  # type: ignore[arg-type]  # they are all texts
