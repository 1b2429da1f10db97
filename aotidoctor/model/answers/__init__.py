"""What the worker answers: records of the parts of a result, each part named as its field.

A part is handed over as soon as it is known, so that a crash keeps it: every field has a value for "not told". What
comes back is data from a process that may have been damaged: ``sound`` keeps the parts that are what they should be,
and names the place of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TypeVar

from aotidoctor.model.answers.called import Acted, Called, GivenWeights, SideBySide
from aotidoctor.model.answers.emulated import Emulated
from aotidoctor.model.answers.launches import Launches
from aotidoctor.model.answers.made import Compiled, HookCalled, PartCut
from aotidoctor.model.answers.operators import OperatorAlone, Registry, SavedCalls
from aotidoctor.model.answers.verified import Verified
from aotidoctor.model.answers.watched import Watching
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.records import RecordError, from_json

A = TypeVar("A")
_RUN = (Called, Acted, SideBySide, Launches, GivenWeights, Watching)
ANSWERS: Mapping[str, tuple[type, ...]] = {
    "run": _RUN,
    "printed": _RUN,
    "load_time": (Acted,),
    "emulate": (Called, Acted, Emulated, Watching),
    "op_inputs": (Acted, SavedCalls),
    "op_alone": (Acted, OperatorAlone),
    "ops": (Acted, Registry),
    "recompile": (Acted, Compiled),
    "cut": (Acted, PartCut),
    "hook": (Acted, HookCalled),
    "verify": (Verified,),
}


def told(kind: type[A], result: JsonObject) -> A:
    """The parts of ``kind`` that are in the result."""
    return from_json(kind, result)


def sound(job: str, result: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """The result without the parts that are not what they should be, and where those are wrong."""
    bad = {
        name: problem
        for kind in ANSWERS.get(job, ())
        for name in sorted({item.name for item in fields(kind)} & result.keys())
        if (problem := _problem(kind, {name: result[name]})) is not None
    }
    return {name: value for name, value in result.items() if name not in bad}, tuple(bad.values())


def _problem(kind: type[A], part: JsonObject) -> str | None:
    try:
        from_json(kind, part)
    except RecordError as error:
        return str(error)
    return None
