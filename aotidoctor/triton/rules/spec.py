"""Family spec: call specs that the backend cannot parse, and inputs that are no tensors."""

from __future__ import annotations

from aotidoctor.model.serving import Consequence, Family, Needs, Remark, RuleResult, ServedModel
from aotidoctor.triton.tensor_names import JoinedTables, for_each_version, obstacle_remarks, obstacles_of

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
