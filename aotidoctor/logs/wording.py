"""A line of a log in the sentences of the playbooks: with the values that the line has, and no others.

The runtime prints dtypes and devices as numbers of c10 (``expected: 4(at::kLong), but got: 3``); the sentences want
``int64`` and ``int32``. A command that would have to make up a value is left out: an example is no advice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from aotidoctor.diagnosis.wording import NAME, fill
from aotidoctor.model.c10 import DEVICE_TYPES, SCALAR_NAMES, scalar_type
from aotidoctor.model.evidence import Evidence, FactValue

_SCALAR = re.compile(r"^(?P<number>\d+)?\(?(?:at::)?k?(?P<name>[A-Za-z]\w*)?\)?$")
_DEVICE = re.compile(r"\((?P<name>\w+)\)")
# What callers put before a message.
_CALLERS = re.compile(r"^(?:what\(\): *|(?:[\w.]*(?:Error|Exception)): +)+")
# Names that stand for a whole sentence or command, and a stand-in that nobody takes for a value.
_WHOLE, _STAND_IN = ("command", "remedy", "advice"), "x"


def worded(cause: str, facts: Mapping[str, FactValue]) -> dict[str, FactValue]:
    """The facts of a pattern, with those that the playbook of ``cause`` speaks of."""
    found = dict(facts)
    observed, expected, dim = (_text(facts.get(key)) for key in ("observed", "expected", "dim"))
    match cause:
        case "input-dtype":
            found["observed"], found["expected"] = _dtype(observed), _dtype(expected)
            found["observed_dtype"], found["expected_dtype"] = found["observed"], found["expected"]
        case "input-device":
            found["observed_device"], found["expected_device"] = _device(observed), _device(expected)
        case "input-stride" if expected and dim:
            found["observed_stride"] = f"{observed} at dim {dim}"
            found["expected"] = f"{expected} at dim {dim}"
        case "missing-c-shim":
            named = _text(facts.get("subject")) or _text(facts.get("target"))
            found["subject"] = found["target"] = named
        case "input-rank" if expected:
            found["expected_rank"] = expected
            found["observed"], found["expected"] = f"{observed} dims", f"{expected} dims"
        case "input-shape" | "input-range" | "input-divisibility" | "input-shape-disagree" if dim:
            subject = _text(facts.get("subject"))
            found["subject"] = f"{subject}.shape[{dim}]" if subject and ".shape[" not in subject else subject
    return {key: value for key, value in found.items() if value != ""}


def _text(value: FactValue) -> str:
    return value if isinstance(value, str) else ""


def _dtype(text: str) -> str:
    found = _SCALAR.match(text)
    if found is None:
        return text
    if found["name"]:
        return SCALAR_NAMES.get(found["name"], text)
    return scalar_type(int(found["number"] or -1)) or text


def _device(text: str) -> str:
    named = _DEVICE.search(text)
    return named["name"] if named is not None else DEVICE_TYPES.get(int(text), text) if text.isdigit() else text


def spoken(lead: Evidence) -> Evidence:
    """For the sentences: their observed and expected are values, as only groups of a pattern are."""
    observed, expected = (_text(lead.facts.get(key)) for key in ("observed", "expected"))
    line = _CALLERS.sub("", lead.observed)
    return replace(lead, observed=observed, expected=expected, facts={"line": line, **lead.facts})


def command_of(template: str, said: Evidence) -> str:
    """The command with the values of the log; empty where one that it needs is not there."""
    # Generated code's name of a tensor is none that the caller could type.
    known = said if not (said.subject or "").startswith("input_handles") else replace(said, subject=None)
    for found in NAME.finditer(template):
        name, default = found[1], found[2] or ""
        is_known = fill(f"{{{name}}}", known) not in ("?", "")
        if not is_known and name not in _WHOLE and default != _STAND_IN:
            return ""
    return fill(template, known)
