"""The helper process of ``runner/plugin_host``: import plugins and answer questions to them.

A question is a pickled dict of the parent's, an answer is JSON. What a plugin prints is discarded. Apart: executed as
``python -m aotidoctor.plugins.child``.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import traceback
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TypeVar, cast

from aotidoctor.checks.check import Check
from aotidoctor.logs.patterns import read_patterns
from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.record import JsonObject, JsonValue, to_json
from aotidoctor.plugins import API
from aotidoctor.probes.probe import History, Probe, Reuse

_Kind = TypeVar("_Kind", Check, Probe)
# More findings, requests or facts than this are a flood; the parent has smaller limits where they are known.
_MOST, _FACTS, _FILES = 2000, 50, 200


def main() -> None:
    """Answer until the parent is gone."""
    questions = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    while len(head := questions.read(4)) == 4:
        question = pickle.loads(questions.read(struct.unpack("<I", head)[0]))  # noqa: S301 - our own parent's
        answer = _answer(question)
        data = json.dumps(answer).encode("utf-8", "replace")
        answers.write(struct.pack("<I", len(data)) + data)
        answers.flush()


def _answer(question: Mapping[str, object]) -> JsonObject:
    try:
        return {"value": _ask(question)}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - also SystemExit: whatever it does, it is the plugin's
        frames = traceback.extract_tb(error.__traceback__)[-1:]
        where = f" at {Path(frames[0].filename).name}:{frames[0].lineno}" if frames else ""
        return {"error": f"{type(error).__name__}: {str(error)[:500]}{where}"}


def _ask(question: Mapping[str, object]) -> JsonValue:
    group, target = str(question["group"]), str(question["target"])
    if question["ask"] == "describe":
        return _describe_entry(group, target)
    plugin = _load_target(target)
    if group == "checks":
        found = _item(plugin, Check, question).run(question["case"])  # type: ignore[arg-type]
        return to_json(found if isinstance(found, NotChecked) else list(islice(_several(found, "run"), _MOST)))
    if group == "probes":
        probe = _item(plugin, Probe, question)
        seen = cast("History", question["history"])
        if question["ask"] == "plan":
            return _plan(probe.plan(question["case"], seen))  # type: ignore[arg-type]
        return to_json(list(islice(probe.read(question["case"], seen, question["outcome"]), _MOST)))  # type: ignore[arg-type]
    if group == "host_facts":
        facts = plugin() if callable(plugin) else plugin
        if not isinstance(facts, Mapping):
            raise TypeError(f"host facts: observed {type(facts).__name__}, expected a mapping")
        return {str(name)[:80]: str(value)[:300] for name, value in islice(facts.items(), _FACTS)}
    if group == "reports":
        text = plugin(question["report"]) if callable(plugin) else plugin.render(question["report"])  # type: ignore[attr-defined]
        if not isinstance(text, str):
            raise TypeError(f"render: observed {type(text).__name__}, expected str")
        return text
    raise ValueError(f"observed the group {group!r}, expected a group with questions")


def _load_target(target: str) -> object:
    module, _, attribute = target.partition(":")
    found: object = import_module(module)
    version = getattr(found, "AOTIDOCTOR_API", None)
    if version != API:
        raise ValueError(f"{module}.AOTIDOCTOR_API: observed {version!r}, expected {API}")
    for name in attribute.split(".") if attribute else ():
        found = getattr(found, name)
    return found


def _describe_entry(group: str, target: str) -> JsonValue:
    if group == "setup":
        # It may need torch, which is for another process: here only that it is there.
        if find_spec(target.partition(":")[0]) is None:
            raise ModuleNotFoundError(f"no module {target.partition(':')[0]}")
        return None
    plugin = _load_target(target)
    if group == "checks":
        names = ("code", "name", "cause", "stage", "needs", "facts")
        return [{name: to_json(getattr(one, name)) for name in names} for one in _items(plugin, Check)]
    if group == "probes":
        return [
            {name: getattr(one, name) for name in ("code", "name", "asks", "asked_when")}
            for one in _items(plugin, Probe)
        ]
    if group in ("playbooks", "log_patterns"):
        # Markdown files, in one folder or several, or files themselves.
        places = plugin() if callable(plugin) else plugin
        given = [places] if isinstance(places, (str, os.PathLike)) else _several(places, "folders")
        paths = [Path(os.fspath(cast("str", place))) for place in islice(given, _FILES)]
        files = [file for path in paths for file in (sorted(path.glob("*.md")) if path.is_dir() else [path])]
        missing = next((file for file in files if not file.is_file()), None)
        if missing is not None or not files or len(files) > _FILES:
            raise FileNotFoundError(f"observed {missing or f'{len(files)} files'}, expected 1 to {_FILES} files")
        # Every pattern in them has searched texts that make a careless one take for ever.
        for pattern in (one for file in files for one in read_patterns(file.stem, file.read_text(encoding="utf-8"))):
            example = pattern.record.example
            texts = (example[:-1] * 40, example * 40, *(letter * 4000 for letter in "a0 /._:x"), "a1 " * 2000)
            for regex in (pattern.regex, *pattern.near, *pattern.not_near):
                for text in texts:
                    regex.search(text)
        return [str(file.resolve()) for file in files]
    if not callable(plugin) and not callable(getattr(plugin, "render", None)):
        raise TypeError(f"observed {type(plugin).__name__}, expected a function")
    return None


def _items(plugin: object, kind: type) -> list[object]:
    items = [plugin] if isinstance(plugin, kind) else plugin
    if not isinstance(items, Iterable):
        raise TypeError(f"observed {type(plugin).__name__}, expected {kind.__name__} or several")
    found = list(islice(items, _FILES + 1))
    wrong = next((one for one in found if not isinstance(one, kind)), None)
    if wrong is not None or len(found) > _FILES:
        raise TypeError(
            f"observed {type(wrong).__name__} among {len(found)}, expected {kind.__name__}, at most {_FILES}"
        )
    return found


def _item(plugin: object, kind: type[_Kind], question: Mapping[str, object]) -> _Kind:
    return next(one for one in cast("list[_Kind]", _items(plugin, kind)) if one.code == question["code"])


def _plan(plan: object) -> JsonValue:
    parts = plan if isinstance(plan, tuple) else (plan,)
    kinds = {"Reuse": Reuse, "NotChecked": NotChecked}
    return [
        {
            "kind": next((name for name, kind in kinds.items() if isinstance(part, kind)), "Request"),
            "value": to_json(part),
        }
        for part in parts[:_FACTS]
    ]


def _several(value: object, what: str) -> Iterable[object]:
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
        raise TypeError(f"{what}: observed {type(value).__name__}, expected several")
    return value
