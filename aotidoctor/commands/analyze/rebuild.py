"""The case again, out of what was sent: the contract is read anew from the wrapper, by today's reader."""

from __future__ import annotations

import traceback
from dataclasses import replace

from aotidoctor.commands.analyze.reading import Sent
from aotidoctor.commands.bundle import CASE, CASE_SCHEMA
from aotidoctor.commands.bundle.member_names import safe_name
from aotidoctor.model import records
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.case import Case
from aotidoctor.model.errors import InputsError
from aotidoctor.model.json_types import JsonObject, JsonValue, as_object
from aotidoctor.readers.contract import read_contract, resolve_leaves
from aotidoctor.reports.saved import saved_case

_ERROR_FIELDS = ("cause", "kind", "subject", "observed", "expected")


def rebuild(sent: Sent) -> tuple[Case, bool]:
    """The case, and whether it is whole: then the checks can be asked again."""
    document = sent.document(CASE)
    if document is None or document.get("schema") != CASE_SCHEMA:
        if sent.is_bundle:
            sent.problems.append(f"{CASE} is missing or not of the schema {CASE_SCHEMA}")
        return saved_case(sent.report), False
    try:
        case = records.from_json(Case, document.get("case"))
    except records.RecordError as error:
        sent.problems.append(f"{CASE}: {str(error)[:200]}")
        return saved_case(sent.report), False
    return _with_contract(_with_sources(case, document, sent), sent), True


def _with_sources(case: Case, document: JsonObject, sent: Sent) -> Case:
    sources = as_object(document.get("sources"))
    models = tuple(_with_texts(model, sources.get(model.name), sent) for model in case.artifact.models)
    artifact = replace(case.artifact, models=models)
    name = document.get("model")
    model = artifact.model(name) if isinstance(name, str) else None
    error = document.get("inputs_error")
    return replace(
        case,
        artifact=artifact,
        model=model,
        inputs_error=_inputs_error(error) if isinstance(error, dict) else None,
    )


def _with_texts(model: ModelEntry, table: JsonValue, sent: Sent) -> ModelEntry:
    texts: dict[str, str] = {}
    for member, place in as_object(table).items():
        data = sent.members.get(safe_name(place)) if isinstance(place, str) else None
        if data is None:
            sent.problems.append(f"the source of {member[-80:]} is not there")
        else:
            texts[member] = data.decode("utf-8", "replace")
    wrapper = texts.pop(model.wrapper_member, None) if model.wrapper_member is not None else None
    return replace(model, wrapper_cpp=wrapper, kernel_sources=texts)


def _inputs_error(saved: JsonObject) -> InputsError:
    said = {name: str(saved.get(name) or "") for name in _ERROR_FIELDS}
    return InputsError(str(saved.get("message") or ""), **said)


def _with_contract(case: Case, sent: Sent) -> Case:
    if case.model is None or case.model.wrapper_cpp is None:
        return case
    try:
        found = read_contract(case.artifact, case.model)
        settled = found if found is None or case.inputs is None else resolve_leaves(found, case.inputs)
    except Exception:  # noqa: BLE001 - the guard around a reader of foreign text: the saved contract is there
        sent.problems.append(f"the contract could not be read again: {traceback.format_exc(limit=-1)[-200:]}")
        return case
    return case if settled is None else replace(case, contract=settled)
