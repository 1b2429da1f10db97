"""From a JSON report to an answer of bounded size: the verdict, the causes and the evidence that they rest on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from aotidoctor.model.json_types import JsonObject, JsonValue, as_list, objects

ROOM = 24_000
"""Characters of an answer as JSON; an agent pays for each."""

_TEXT = 1_200
_LEAST_TEXT = 150
_RUN = ("id", "probe", "ending", "signal", "exit_code", "stage", "seconds", "took_effect", "error", "purpose")
_WHOLE = ("verdict", "command", "stage", "signature", "interrupted", "out_of_time", "cannot_examine", "plan", "extra")
_LEAF = ("path", "kind", "dtype", "dims", "strides", "device_type", "baked_value")
# Of a list, first of all: more of these nobody reads in an answer.
_MOST = {"diagnoses": 6, "findings": 40, "not_checked": 20, "runs": 20, "leaves": 80, "outputs": 40, "compat": 40}


def answer(document: JsonObject, status: int) -> JsonObject:
    """The answer to a report; ``evidence`` are the ids of the findings and runs that are in it."""
    diagnoses = objects(document.get("diagnoses"))
    cited = {str(name) for item in diagnoses for name in as_list(item.get("evidence"))}
    made: dict[str, JsonValue] = {
        "exit_status": status,
        **{name: document[name] for name in _WHOLE if document.get(name) not in (None, False, [], {})},
    }
    made["cause"] = diagnoses[0].get("cause") if diagnoses else None
    lists: dict[str, list[JsonValue]] = {
        "diagnoses": list(diagnoses),
        "findings": list(_ordered(objects(document.get("findings")), cited)),
        "not_checked": [_part(item, ("name", "reason")) for item in _open(document)],
        "runs": [_part(item, _RUN) for item in objects(document.get("runs"))],
    }
    contract = document.get("contract")
    if isinstance(contract, dict):
        lists["leaves"] = [_part(leaf, _LEAF) for leaf in objects(contract.get("leaves"))]
        lists["outputs"] = list(objects(contract.get("outputs")))
    artifact = document.get("artifact")
    if isinstance(artifact, dict):
        made["artifact"] = _part(artifact, ("path", "kind", "size", "problem", "sha256"))
    compat = document.get("compat")
    if isinstance(compat, dict):
        lists["compat"] = list(objects(compat.get("answers")))
        made["needs"] = list(objects(compat.get("needs")))
    return _fitted(made, lists)


def page(document: JsonObject) -> JsonObject:
    """The answer of ``explain``."""
    return _fitted({name: document.get(name) for name in ("kind", "name", "code", "text")}, {}, text=ROOM // 2)


def _ordered(findings: Sequence[JsonObject], cited: set[str]) -> list[JsonObject]:
    """What the causes rest on comes first, then by severity."""
    ranks = {"error": 0, "warn": 1, "info": 2}
    return sorted(findings, key=lambda item: (item.get("id") not in cited, ranks.get(str(item.get("severity")), 3)))


def _open(document: JsonObject) -> list[JsonObject]:
    return [item for item in objects(document.get("not_checked")) if item.get("moot") is not True]


def _part(item: JsonObject, names: Sequence[str]) -> JsonObject:
    return {name: item[name] for name in names if item.get(name) is not None}


def _fitted(made: Mapping[str, JsonValue], lists: Mapping[str, list[JsonValue]], *, text: int = _TEXT) -> JsonObject:
    """Everything within ``ROOM``: shorter texts first, then shorter lists; ``omitted`` counts what is left out."""
    kept = {name: items[: _MOST[name]] for name, items in lists.items()}
    while True:
        built = _built({name: _cut(value, text) for name, value in made.items()}, kept, lists, text)
        if len(json.dumps(built, ensure_ascii=False)) <= ROOM:
            return built
        longest = max(kept, key=lambda name: len(json.dumps(kept[name])), default=None)
        if text > _LEAST_TEXT:
            text = max(_LEAST_TEXT, text // 2)
        elif longest is not None and kept[longest]:
            kept[longest] = kept[longest][: len(kept[longest]) // 2]
        else:
            return {"exit_status": made.get("exit_status"), "omitted": {"answer": "it does not fit"}, "evidence": []}


def _built(
    made: Mapping[str, JsonValue], kept: Mapping[str, list[JsonValue]], lists: Mapping[str, list[JsonValue]], text: int
) -> JsonObject:
    shown = {name: [_cut(item, text) for item in items] for name, items in kept.items() if items}
    omitted: JsonObject = {
        name: len(items) - len(kept[name]) for name, items in lists.items() if len(items) > len(kept[name])
    }
    ids: list[JsonValue] = [
        item["id"]
        for name in ("findings", "runs")
        for item in kept.get(name, [])
        if isinstance(item, dict) and isinstance(item.get("id"), str)
    ]
    return {**made, **shown, "evidence": ids, **({"omitted": omitted} if omitted else {})}


def _cut(value: JsonValue, most: int) -> JsonValue:
    if isinstance(value, str) and len(value) > most:
        return f"{value[:most]}… ({len(value) - most} more characters)"
    if isinstance(value, list):
        return [_cut(item, most) for item in value]
    return {name: _cut(item, most) for name, item in value.items()} if isinstance(value, dict) else value
