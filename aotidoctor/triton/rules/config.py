"""Family config: the text and the name. The platform is in ``platform``, files and versions in ``files``."""

from __future__ import annotations

from aotidoctor.model.serving import Consequence, Family, Needs, Remark, RuleResult, ServedModel
from aotidoctor.model.serving_config import TOP
from aotidoctor.triton.rules.core import refusals

RULES = Family("config")

_HINTS = (
    ("//", "only # begins a comment: write # instead of //"),
    ("default_model_name", "the field is called default_model_filename"),
)


@RULES.rule("R1", "the server refuses config.pbtxt", Consequence.FAILS_TO_LOAD, needs=Needs.NOTHING, last_seen="26.11")
def text_parses(model: ServedModel) -> RuleResult:
    """The text must parse as a model configuration in protobuf's text format, with values that the core accepts.

    Versions: all.
    Consequence: the model is not loaded; the server reports "failed to read text proto from" and the parser's line, or
    the missing value.
    How it was seen: run on a real server core with 325 texts. It does not parse, among others: comments with two
    slashes (the README of the backend has them), a comma after the last element of a list, an enumerator in quotes, an
    unknown field, a field given twice, two schedulers, a parameter without its braces, a byte order mark. It later
    refuses, among others: tensors without name, type or dims, a preferred batch size beyond max_batch_size, two
    controls of one kind.
    Remedy: correct the reported line; a list ends without a comma, an enumerator has no quotes, and a parameter is
    written { key: "K" value { string_value: "V" } }.
    """
    if model.parse_problem is None:
        yield from tuple(refusals(model))
        return
    lines = model.text.split("\n")
    line = lines[model.parse_at.line - 1] if model.parse_at is not None and model.parse_at.line <= len(lines) else ""
    yield Remark(
        kind="does-not-parse",
        message="the model is not loaded: the server reports 'failed to read text proto from' and the place.",
        observed=model.parse_problem,
        expected="protobuf text format of inference.ModelConfig",
        remedy=_parse_hint(model.text, line, model.parse_problem),
        at=model.parse_at or TOP,
        facts={"text": line.strip()[:160]},
    )


def _parse_hint(text: str, line: str, problem: str) -> str:
    if text.startswith("\ufeff"):
        return "Save the file without a byte order mark."
    for sign, hint in _HINTS:
        if sign in line:
            return hint[0].upper() + hint[1:] + "."
    if "is in quotes" in problem:
        return "Remove the quotes."
    if "expected a string in quotes" in problem:
        return "Put it in quotes."
    if line.strip()[:1] in ("]", "}") or problem.endswith('found "]"'):
        return "Remove the comma after the last element of the list."
    if 'expected "{"' in problem and "value" in line:
        return 'Write a parameter as { key: "K" value { string_value: "V" } }.'
    return "Correct this place; field names and types are those of Triton's model_config.proto."


@RULES.rule(
    "R6", "the name is not that of the folder", Consequence.FAILS_TO_LOAD, needs=Needs.CONFIG, last_seen="26.06"
)
def name_is_the_folders(model: ServedModel) -> RuleResult:
    """A name in the config must be the name of the model's folder.

    Versions: all.
    Consequence: the model is not loaded: "directory name must equal model name".
    How it was seen: run on a real server core.
    Remedy: remove the name, or rename the folder.
    """
    name = model.config.name if model.config is not None else None
    if name is None or name.value in ("", model.name):
        return
    yield Remark(
        kind="name",
        message="the model is not loaded: directory name must equal model name.",
        observed=f'name: "{name.value}"',
        expected=f'"{model.name}", the name of the folder, or no name',
        remedy=f'Remove the name, or write "{model.name}".',
        at=name.at,
    )
