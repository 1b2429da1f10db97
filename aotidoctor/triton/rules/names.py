"""Family spec, the names: whether the backend knows them."""

from __future__ import annotations

from aotidoctor.model.evidence import list_names
from aotidoctor.model.serving import Consequence, Family, Needs, Remark, RuleResult
from aotidoctor.model.serving_config import NameRow, TensorConfig
from aotidoctor.triton.tensor_names import (
    NAMES_SINCE,
    JoinedTables,
    TensorSide,
    for_each_version,
    nearest_name,
    obstacle_remarks,
    unread,
)

RULES = Family("spec")

_LISTED = 12


@RULES.rule("R12", "a keyword in brackets", Consequence.FAILS_TO_LOAD, needs=Needs.CONTRACT)
@for_each_version
def keywords_without_brackets(joined: JoinedTables) -> RuleResult:
    """A keyword must be named INPUT__n, or KWARGSname without brackets; KWARGS[name], as documented, is not recognised.

    Versions: 26.05 seen; whether later releases follow the documentation is unknown, and none of their tests has a
    keyword. 26.03 and 26.04 ignore names.
    Consequence: the model does not load: Input "KWARGS[mask]" is not found in model input map.
    How it was seen: run with the 26.05 backend.
    Remedy: use INPUT__n, which every release accepts.
    """
    if problem := unread(joined):
        yield from problem
        return
    rows = _bracketed_names(joined.inputs)
    for tensor, row in joined.inputs.tensors:
        if row is None and tensor.label in rows:
            yield Remark(
                kind="brackets",
                message=f"the model is not loaded: {_not_found('Input', tensor.label, joined, 'input')}",
                observed=tensor.label,
                expected=" or ".join(rows[tensor.label].names),
                subject=tensor.label,
                remedy=f"Write {rows[tensor.label].ordinal}.",
                at=tensor.name_at,
            )


def _bracketed_names(side: TensorSide) -> dict[str, NameRow]:
    """The keywords by the names that the documentation gives them."""
    named = ((row.forward or "", row) for row in side.rows)
    return {f"KWARGS[{name.removeprefix('KWARGS')}]": row for name, row in named if name.startswith("KWARGS")}


def _not_found(word: str, name: str, joined: JoinedTables, side: str) -> str:
    return f'{word} "{name}" for model instance "{joined.model.name}_0_0" is not found in model {side} map.'


@RULES.rule(
    "R17", "a name that the backend does not know", Consequence.FAILS_TO_LOAD, needs=Needs.CONTRACT, family="tensors"
)
@for_each_version
def names_are_known(joined: JoinedTables) -> RuleResult:
    """Each name must be one of the backend's for the call: INPUT__k, ARGS[..], KWARGSkey, OUTPUT__k, RESULT[..].

    Versions: 26.05 and later, exactly as written: lower-case letters, INPUT__00, OUTPUT_2, quotes or spaces make a
    different name; RESULT is a single tensor, RESULT[0] the first of a tuple. 26.03 and 26.04 do not look names up;
    there the number after __ must be below the number of tensors.
    Consequence: the model does not load: "is not found in model input map." (or output). In 26.03 and 26.04 a tensor
    is written past the end of the list of inputs.
    How it was seen: run with the 26.05 backend; 26.03 and 26.04 read in the source.
    Remedy: use the nearest valid name, or a row of ``aotidoctor triton names``.
    """
    if problem := unread(joined):
        yield from problem
        return
    keywords = _bracketed_names(joined.inputs)
    for side in joined.sides:
        for tensor, row in side.tensors:
            if row is None and tensor.name is not None and not (side.word == "input" and tensor.label in keywords):
                yield _unknown(joined, side, tensor)


def _unknown(joined: JoinedTables, side: TensorSide, tensor: TensorConfig) -> Remark:
    if joined.model.release.before(NAMES_SINCE):
        return Remark(
            kind="out-of-range",
            consequence=Consequence.REQUESTS_FAIL,
            message=f"the model loads; with each request the {side.word} is written or read past the end of the list, "
            "which is undefined: wrong values or a crash.",
            observed=tensor.label,
            expected=f"a number below {len(side.rows)} after __",
            subject=tensor.label,
            remedy=f"Number the {side.word}s from 0 to {len(side.rows) - 1}.",
            at=tensor.name_at,
        )
    valid = [name for row in side.rows for name in row.names]
    nearest = nearest_name(tensor.label, side.rows)
    known = list_names(valid, _LISTED)
    return Remark(
        kind="unknown",
        message=f"the model is not loaded: {_not_found(side.word.capitalize(), tensor.label, joined, side.word)}",
        observed=tensor.label,
        expected=known,
        subject=tensor.label,
        remedy=f"Write {nearest}." if nearest is not None else f"Write one of {known}.",
        at=tensor.name_at,
        facts={"nearest": nearest},
    )


@RULES.rule("R28", "keys with brackets, quotes or spaces", Consequence.FAILS_TO_LOAD, needs=Needs.CONTRACT)
@for_each_version
def keys_are_plain(joined: JoinedTables) -> RuleResult:
    """Keys of dicts must not contain quotes, brackets, spaces or unprintable characters.

    Versions: 26.05 and later: documented as forbidden, but accepted.
    Consequence: the names work until two paths give the same name ({"a": {"b": x}, "a][b": y}): then one tensor is
    lost, and every request fails.
    How it was seen: run with the 26.05 parser.
    Remedy: use different keys, or address the tensor as INPUT__n and OUTPUT__n.
    """
    lost = [
        Remark(
            kind="lost-output",
            consequence=Consequence.WASTE,
            message=f"two outputs are both called {row.forward}; the server knows only the last one.",
            observed=row.forward,
            expected="unique names",
            subject=row.forward,
            remedy="Choose keys without brackets.",
        )
        for row in joined.outputs.rows
        if row.lost and row.forward is not None
    ]
    odd = [
        Remark(
            kind="key",
            consequence=Consequence.WASTE,
            message="the model loads and works; such keys are documented as forbidden, and a later release may refuse "
            "them.",
            observed=tensor.label,
            expected="keys without quotes, brackets and spaces",
            subject=tensor.label,
            remedy="Address it by its number instead.",
            at=tensor.name_at,
        )
        for side in joined.sides
        for tensor, row in side.pairs
        if tensor.label == row.forward and _is_odd(row.forward)
    ]
    return [*obstacle_remarks(joined, "R28"), *lost, *odd]


def _is_odd(name: str) -> bool:
    if name == "RESULT":
        return False  # A result that stands alone has no key.
    keys = name.removeprefix("KWARGS") if name.startswith("KWARGS") else name.partition("[")[2].removesuffix("]")
    parts = [keys] if name.startswith("KWARGS") else keys.split("][")
    return any(not part.isprintable() or not part or set(part) & set("[]\"' ") for part in parts)
