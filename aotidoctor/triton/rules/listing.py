"""Family spec, the list: every tensor once, and one way to name them."""

from __future__ import annotations

import re

from aotidoctor.model.serving import Consequence, Family, Needs, NotJudged, Release, Remark, Said, ServedModel
from aotidoctor.model.serving_config import TOP, TensorConfig
from aotidoctor.triton.servable import OLD_COUNT
from aotidoctor.triton.tensor_names import (
    NAMES_SINCE,
    JoinedTables,
    TensorSide,
    each_version,
    find_row,
    is_numbered,
    name_table,
    obstacle_remarks,
    rows_text,
    unread,
)

RULES = Family("spec")

_SHOWN = 12
_ORDINAL = re.compile(r"(?:INPUT|OUTPUT)__\d+")


@RULES.rule("R16", "not every input is listed", Consequence.FAILS_TO_LOAD, needs=Needs.CONTRACT)
def every_input_is_listed(model: ServedModel) -> Said:
    """The config must list every input once, including those that nothing reads.

    Versions: all. 26.03 and 26.04 treat every model as one with two inputs.
    Consequence: the model does not load: "configuration expects N inputs, but model expects M inputs." Without any
    output it also does not load.
    How it was seen: run with the 26.05 backend; 26.03 and 26.04 read in the source.
    Remedy: list one input for each row of ``aotidoctor triton names``, and at least one output.
    """
    return each_version(model, _count)


def _count(joined: JoinedTables) -> Said:
    config, table = joined.config, joined.table
    if refused := obstacle_remarks(joined, "R16") or unread(joined):
        return refused
    said = (
        []
        if config.outputs
        else [
            (
                Remark(
                    kind="no-output",
                    message=f'the model is not loaded: Configuration for model "{joined.model.name}" must define at '
                    "least one "
                    "output, none were specified.",
                    observed="no output",
                    expected="at least one output",
                    remedy=f"Add {rows_text(joined.outputs.rows[:1])}.",
                    at=TOP,
                )
            )
        ]
    )
    if any(item.rule in ("R13", "R14", "R15", "R28") for item in table.obstacles):
        return [*said, NotJudged(reason="no number of inputs is right for this package, see the call spec's rules")]
    if config.batch_inputs or (joined.model.release.before("26.06") and config.controls):
        # Their own rules say that these do not load.
        return said
    given = len(config.inputs) + len(config.controls) + len(config.states)
    wanted = len(table.inputs) if joined.model.release.since(NAMES_SINCE) else OLD_COUNT
    if given != wanted:
        missing = joined.inputs.unlisted
        said.append(
            Remark(
                kind="count",
                message=f"the model is not loaded: configuration expects {given} inputs, but model expects "
                f"{wanted} inputs.",
                observed=f"{given} inputs",
                expected=f"{wanted} inputs",
                remedy=f"Add {rows_text(missing[:_SHOWN])}."
                if missing and given < wanted
                else f"List exactly these: {rows_text(joined.inputs.rows[:_SHOWN])}.",
                at=joined.config.inputs[0].at if joined.config.inputs else TOP,
                facts={"given": given, "wanted": wanted},
            )
        )
    return said


@RULES.rule("R25", "a tensor is given twice", Consequence.REQUESTS_FAIL, needs=Needs.CONTRACT)
def one_name_per_tensor(model: ServedModel) -> Said:
    """No tensor may be listed twice, under the same name or under two of its names.

    Versions: 26.05 seen. According to their source, 26.03 and 26.04 also do not detect it.
    Consequence: the number is right and every name is known, so the model loads; a different argument is left without a
    tensor, and each request fails: "Cannot access data pointer of Tensor that doesn't have storage" (no failure if
    nothing reads the argument). With the same name twice each request is refused: expected 2 inputs but got 1 inputs.
    How it was seen: run with the 26.05 backend.
    Remedy: list each row of ``aotidoctor triton names`` once.
    """
    return each_version(model, _twice)


def _twice(joined: JoinedTables) -> Said:
    said: list[Remark] = []
    seen: dict[int, TensorConfig] = {}
    for tensor, row in joined.inputs.pairs:
        first = seen.setdefault(row.slot, tensor)
        if first is not tensor:
            said.append(_repeated(joined.inputs, first, tensor, row.label))
    return said


def _repeated(side: TensorSide, first: TensorConfig, second: TensorConfig, label: str) -> Remark:
    same, left = first.label == second.label, side.unlisted
    count = len(side.rows)
    if same:
        message = f"the model loads; each request is refused: expected {count} inputs but got {count - 1} inputs."
    else:
        message = (
            f"the model loads; both are {label}, so "
            f"{', '.join(row.label for row in left[:_SHOWN]) or 'another input'} gets "
            "nothing, and each request fails: Cannot access data pointer of Tensor that doesn't have storage."
        )
    return Remark(
        kind="same-name" if same else "same-tensor",
        message=message,
        observed=f"{first.label} and {second.label}",
        expected="each tensor once",
        subject=second.label,
        remedy=f"Write {left[0].ordinal} for one of them." if left else "Remove one of them.",
        at=second.name_at,
    )


@RULES.rule("R26", "names by number mixed with names by place", Consequence.SILENTLY_WRONG, needs=Needs.CONTRACT)
def one_convention(model: ServedModel) -> Said:
    """Names must all be by number or all by place in the call.

    Versions: 26.05 and later accept a mixture. In 26.03 and 26.04 one name without a number at its end makes the server
    use the order of the config, and numbers have no meaning.
    Consequence: none from 26.05 on. In earlier releases tensors go to different arguments from those that they are
    named after.
    How it was seen: run with the 26.05 backend; 26.03 and 26.04 read in the source.
    Remedy: use INPUT__n and OUTPUT__n for all, in order.
    """
    return each_version(model, _mixed)


def _mixed(joined: JoinedTables) -> Said:
    if joined.model.release.before(NAMES_SINCE):
        return [remark for side in joined.sides for remark in _misplaced(joined, side)]
    names = [tensor.label for side in joined.sides for tensor, _ in side.pairs]
    numbered = [name for name in names if _ORDINAL.fullmatch(name)]
    if not numbered or len(numbered) == len(names):
        return ()
    other = next(tensor for side in joined.sides for tensor, _ in side.pairs if tensor.label not in numbered)
    return (
        Remark(
            kind="mixed",
            consequence=Consequence.NOTE,
            message="the model loads and works: names by number and names by place in the call can be mixed.",
            observed=f"{numbered[0]} and {other.label}",
            expected="one convention",
            remedy="No change is needed; numbers for all are understood by every release.",
            at=other.name_at,
        ),
    )


def _misplaced(joined: JoinedTables, side: TensorSide) -> list[Remark]:
    """Names of 26.05 in a release that goes by the order of the config."""
    if is_numbered([tensor.label for tensor, _ in side.tensors]):
        return []
    newer = name_table(joined.contract, Release(name=NAMES_SINCE))
    rows = () if newer is None else newer.inputs if side.word == "input" else newer.outputs
    said = []
    for tensor, row in side.pairs:
        meant = find_row(rows, tensor.label)
        if meant is not None and meant.path != row.path:
            said.append(
                Remark(
                    kind="config-order",
                    message=f"Triton {joined.model.release.name} uses the order of the config here, not the names: "
                    f"{tensor.label} is {row.path}, not {meant.path}.",
                    observed=f"{tensor.label} as {side.word} {row.slot}",
                    expected=f"{side.word} {meant.slot}",
                    subject=tensor.label,
                    remedy=f"List the {side.word}s in the order of the call, and call them all {side.word.upper()}__n.",
                    at=tensor.name_at,
                )
            )
    return said
