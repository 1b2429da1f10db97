"""Family spec: call specs that the backend cannot parse, inputs that are no tensors, and whether it knows the names."""

from __future__ import annotations

from aotidoctor.model.evidence import list_names
from aotidoctor.model.serving_config import NameRow, TensorConfig
from aotidoctor.triton.serving import Consequence, Family, Needs, Remark, RuleResult, ServedModel
from aotidoctor.triton.tensor_names import (
    NAMES_SINCE,
    JoinedTables,
    TensorSide,
    for_each_version,
    nearest_name,
    obstacle_remarks,
    obstacles_of,
    unread,
)

RULES = Family("spec")


@RULES.rule("R9", "a container that the backend cannot parse", Consequence.FAILS_TO_LOAD, needs=Needs.CONTRACT)
def only_plain_containers(model: ServedModel) -> RuleResult:
    """Arguments and results must consist of tuples, lists, dicts and tensors.

    Versions: 26.05 and later; 26.03 and 26.04 do not parse the call spec.
    Consequence: with an OrderedDict, namedtuple, dataclass or ModelOutput anywhere, the model does not load: "Failed to
    parse input call specification" (or output).
    How it was seen: run with the 26.05 parser.
    Remedy: export a wrapper module that takes and returns plain containers.
    """
    return obstacles_of(model, "R9")


@RULES.rule("R10", "an empty list or tuple in the call", Consequence.FAILS_TO_LOAD, needs=Needs.CONTRACT)
def no_empty_sequence(model: ServedModel) -> RuleResult:
    """No list or tuple may be empty, including that of the positional arguments.

    Versions: 26.05 seen; whether later releases accept it is unknown.
    Consequence: a model that is called with only keywords, or without input, does not load: "Failed to parse input
    call specification".
    How it was seen: run with the 26.05 parser.
    Remedy: export with at least one positional argument, and without empty containers.
    """
    return obstacles_of(model, "R10")


@RULES.rule("R11", "a key that is not a string", Consequence.FAILS_TO_LOAD, needs=Needs.CONTRACT)
def keys_are_strings(model: ServedModel) -> RuleResult:
    """Keys of dicts must be strings.

    Versions: 26.05 and later.
    Consequence: with a number as a key the model does not load; the log shows "Context entry at index 0 is not a
    string."
    How it was seen: run with the 26.05 parser.
    Remedy: use string keys, and export again.
    """
    return obstacles_of(model, "R11")


@RULES.rule("R13", "a container inside a keyword argument", Consequence.FAILS_TO_LOAD, needs=Needs.CONTRACT)
def keywords_are_flat(model: ServedModel) -> RuleResult:
    """A keyword argument must be one tensor, not a container.

    Versions: 26.05 seen; whether later releases look into keywords is unknown.
    Consequence: the server counts a keyword as one input, but the compiled code takes each tensor in it. With the
    server's count the model loads and every request fails ("expected inputs vector size to be 3, but got 2"); with the
    true count the model does not load.
    How it was seen: run with the 26.05 backend.
    Remedy: pass the contents as separate arguments, and export again.
    """
    return obstacles_of(model, "R13")


@RULES.rule("R14", "an argument that is not a tensor", Consequence.FAILS_TO_LOAD, needs=Needs.CONTRACT)
def arguments_are_tensors(model: ServedModel) -> RuleResult:
    """Every argument must be a tensor: only the server counts None, numbers and strings as inputs.

    Versions: 26.05 and later.
    Consequence: the model loads only with an input for the value that was baked in at export, and then every request
    fails: "expected inputs vector size to be 2, but got 3".
    How it was seen: run with the 26.05 backend.
    Remedy: export without the argument; its value is part of the compiled code anyway.
    """
    return obstacles_of(model, "R14")


@RULES.rule("R15", "an empty dict in the call", Consequence.FAILS_TO_LOAD, needs=Needs.CONTRACT)
@for_each_version
def no_empty_dict(joined: JoinedTables) -> RuleResult:
    """No dict may be empty: the server treats it as a tensor.

    Versions: 26.05 and later.
    Consequence: for an empty dict argument, the model loads with an input for it and every request fails. In the
    result, it uses up an output number, so the names after it return a different tensor or none.
    How it was seen: as an argument, run with the 26.05 backend; in the outputs, read in its source.
    Remedy: export without the empty dict.
    """
    yield from obstacle_remarks(joined, "R15")
    returned = joined.contract.outputs
    for tensor, row in (pair for pair in joined.outputs.pairs if pair[1].kind == "shifted"):
        past = row.slot >= len(returned)
        answer = "is read past the end of its results" if past else f"answers with {returned[row.slot].path}"
        yield Remark(
            kind="shifted",
            consequence=Consequence.REQUESTS_FAIL if past else Consequence.SILENTLY_WRONG,
            message="an empty dict takes a number among the outputs, and the compiled code returns nothing for it: "
            f"{tensor.label} {answer}.",
            observed=f"{row.path} as output {row.slot}",
            expected="only outputs before the empty dict",
            subject=tensor.label,
            remedy="Export without the empty dict, or leave the output out of the config.",
            at=tensor.at,
        )


# The names.
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
