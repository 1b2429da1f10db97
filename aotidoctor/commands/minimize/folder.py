"""The folder of a search: its answers, so that it can go on, and the smallest part that fails, which is the result."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from aotidoctor.model.errors import UsageError, examining
from aotidoctor.model.json_types import JsonObject, JsonValue, as_list

STATE = "minimize.json"
FILES = ("exported.pt2", "sample.pt", "model.pt2")
SCHEMA = "aotidoctor.minimize/1"
_CHUNK = 1 << 20


@dataclass(slots=True)
class Folder:
    """``answers`` maps a hash of the operators that were kept to whether that failed alike.

    ``operators`` are all of the program, ``targets`` what they call; empty until the whole program failed alike.
    """

    place: Path
    key: str
    answers: dict[str, bool] = field(default_factory=dict)
    best: tuple[str, ...] | None = None
    operators: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    def known(self, names: Sequence[str]) -> bool | None:
        """The answer for these operators; None where it was not asked."""
        return self.answers.get(_hash(names))

    def answer(self, names: Sequence[str], *, failed: bool, room: Path) -> None:
        """Keep an answer; where it failed alike, the files of ``room`` are the best ones now. Raises OSError."""
        self.answers[_hash(names)] = failed
        if failed and (self.best is None or len(names) <= len(self.best)):
            self.best = tuple(names)
            for name in FILES:
                os.replace(room / name, self.place / name)  # noqa: PTH105 - over what is there
        self._write()

    def _write(self) -> None:
        best: list[JsonValue] = [*(self.best or ())]
        state: JsonObject = {
            "schema": SCHEMA,
            "key": self.key,
            "best": best,
            "operators": [*self.operators],
            "targets": [*self.targets],
            "answers": dict(self.answers.items()),
        }
        draft = self.place / f"{STATE}.part"
        draft.write_text(json.dumps(state, indent=1), encoding="utf-8")
        os.replace(draft, self.place / STATE)  # noqa: PTH105 - likewise


def open_folder(place: Path, key: str) -> Folder:
    """The folder of a new search, or of one that goes on.

    Raises:
        UsageError: it holds something else, or the search of another case.
        CannotExamineError: it cannot be written.
    """
    state = _read(place / STATE)
    if state is None and place.is_dir() and any(place.iterdir()):
        raise UsageError(f"{place} is not empty and is not the folder of a search; nothing was overwritten")
    if state is not None and state.get("key") != key:
        raise UsageError(f"{place} contains the search of a different package, program or call; give -o another folder")
    with examining(place):
        place.mkdir(parents=True, exist_ok=True)
    found = Folder(place=place, key=key)
    if state is not None:
        answers, best = state.get("answers"), state.get("best")
        if isinstance(answers, dict):
            found.answers = {name: value for name, value in answers.items() if isinstance(value, bool)}
        if isinstance(best, list) and best and all((place / name).is_file() for name in FILES):
            found.best = tuple(map(str, best))
            found.operators = tuple(map(str, as_list(state.get("operators"))))
            found.targets = tuple(map(str, as_list(state.get("targets"))))
    return found


def _hash(names: Sequence[str]) -> str:
    return hashlib.sha256(",".join(names).encode()).hexdigest()[:16]


def _read(path: Path) -> JsonObject | None:
    with suppress(OSError, ValueError, RecursionError):
        value: JsonValue = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(value, dict) and value.get("schema") == SCHEMA:
            return value
    return None


def key_of(*paths: str | None) -> str:
    """Of the files' contents. Raises CannotExamineError."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(b"\0")
        if path is None:
            continue
        with examining(path), open(path, "rb") as stream:  # noqa: PTH123 - paths are texts here
            while data := stream.read(_CHUNK):
                digest.update(data)
    return digest.hexdigest()
