"""Family spec, the list: every tensor once, one way to name them, and the order in which INPUT__k counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from aotidoctor.model.serving_config import TOP, NameRow, TensorConfig
from aotidoctor.triton.servable import OLD_COUNT
from aotidoctor.triton.serving import Consequence, Family, Needs, NotJudged, Release, Remark, RuleResult, ServedVersion
from aotidoctor.triton.tensor_names import (
    NAMES_SINCE,
    JoinedTables,
    TensorSide,
    comments_by_tensor,
    find_row,
    for_each_version,
    is_numbered,
    key_of,
    name_table,
    obstacle_remarks,
    rows_in_comments,
    rows_text,
    unread,
)

RULES = Family("spec")

_LISTED = 12
_ORDINAL = re.compile(r"(?:INPUT|OUTPUT)__\d+")


@RULES.rule("R16", "not every input is listed", Consequence.FAILS_TO_LOAD, needs=Needs.CONTRACT)
@for_each_version
def every_input_is_listed(joined: JoinedTables) -> RuleResult:
    """The config must list every input once, including those that nothing reads.

    Versions: all. 26.03 and 26.04 treat every model as one with two inputs.
    Consequence: the model does not load: "configuration expects N inputs, but model expects M inputs." Without any
    output it also does not load.
    How it was seen: run with the 26.05 backend; 26.03 and 26.04 read in the source.
    Remedy: list one input for each row of ``aotidoctor triton names``, and at least one output.
    """
    config, table = joined.config, joined.table
    if refused := obstacle_remarks(joined, "R16") or unread(joined):
        yield from refused
        return
    if not config.outputs:
        message = f'the model is not loaded: Configuration for model "{joined.model.name}" must define at least one '
        yield Remark(
            kind="no-output",
            message=f"{message}output, none were specified.",
            observed="no output",
            expected="at least one output",
            remedy=f"Add {rows_text(joined.outputs.rows[:1])}.",
            at=TOP,
        )
    if any(item.rule in ("R13", "R14", "R15", "R28") for item in table.obstacles):
        yield NotJudged(reason="no number of inputs is right for this package, see the call spec's rules")
        return
    given = len(config.inputs) + len(config.controls) + len(config.states)
    wanted = len(table.inputs) if joined.model.release.since(NAMES_SINCE) else OLD_COUNT
    # Other rules report that these do not load.
    unloadable = config.batch_inputs or (joined.model.release.before("26.06") and config.controls)
    if given != wanted and not unloadable:
        missing = joined.inputs.unlisted
        yield Remark(
            kind="count",
            message=f"the model is not loaded: configuration expects {given} inputs, but model expects "
            f"{wanted} inputs.",
            observed=f"{given} inputs",
            expected=f"{wanted} inputs",
            remedy=f"Add {rows_text(missing[:_LISTED])}."
            if missing and given < wanted
            else f"List exactly these: {rows_text(joined.inputs.rows[:_LISTED])}.",
            at=config.inputs[0].at if config.inputs else TOP,
            facts={"given": given, "wanted": wanted},
        )


@RULES.rule("R25", "a tensor is given twice", Consequence.REQUESTS_FAIL, needs=Needs.CONTRACT)
@for_each_version
def one_name_per_tensor(joined: JoinedTables) -> RuleResult:
    """No tensor may be listed twice, under the same name or under two of its names.

    Versions: 26.05 seen. According to their source, 26.03 and 26.04 also do not detect it.
    Consequence: the number is right and every name is known, so the model loads; a different argument is left without a
    tensor, and each request fails: "Cannot access data pointer of Tensor that doesn't have storage" (no failure if
    nothing reads the argument). With the same name twice each request is refused: expected 2 inputs but got 1 inputs.
    How it was seen: run with the 26.05 backend.
    Remedy: list each row of ``aotidoctor triton names`` once.
    """
    seen: dict[int, TensorConfig] = {}
    for tensor, row in joined.inputs.pairs:
        first = seen.setdefault(row.slot, tensor)
        if first is tensor:
            continue
        same, left, count = first.label == tensor.label, joined.inputs.unlisted, len(joined.inputs.rows)
        if same:
            message = f"the model loads; each request is refused: expected {count} inputs but got {count - 1} inputs."
        else:
            others = ", ".join(row.label for row in left[:_LISTED]) or "another input"
            message = (
                f"the model loads; both are {row.label}, so {others} gets nothing, and each request fails: Cannot "
            )
            message += "access data pointer of Tensor that doesn't have storage."
        yield Remark(
            kind="same-name" if same else "same-tensor",
            message=message,
            observed=f"{first.label} and {tensor.label}",
            expected="each tensor once",
            subject=tensor.label,
            remedy=f"Write {left[0].ordinal} for one of them." if left else "Remove one of them.",
            at=tensor.name_at,
        )


@RULES.rule("R26", "names by number mixed with names by place", Consequence.SILENTLY_WRONG, needs=Needs.CONTRACT)
@for_each_version
def one_convention(joined: JoinedTables) -> RuleResult:
    """Names must all be by number or all by place in the call.

    Versions: 26.05 and later accept a mixture. In 26.03 and 26.04 one name without a number at its end makes the server
    use the order of the config, and numbers have no meaning.
    Consequence: none from 26.05 on. In earlier releases tensors go to different arguments from those that they are
    named after.
    How it was seen: run with the 26.05 backend; 26.03 and 26.04 read in the source.
    Remedy: use INPUT__n and OUTPUT__n for all, in order.
    """
    if joined.model.release.before(NAMES_SINCE):
        for side in joined.sides:
            yield from _misplaced(joined, side)
        return
    names = [tensor.label for side in joined.sides for tensor, _ in side.pairs]
    numbered = [name for name in names if _ORDINAL.fullmatch(name)]
    if not numbered or len(numbered) == len(names):
        return
    other = next(tensor for side in joined.sides for tensor, _ in side.pairs if tensor.label not in numbered)
    yield Remark(
        kind="mixed",
        consequence=Consequence.NOTE,
        message="the model loads and works: names by number and names by place in the call can be mixed.",
        observed=f"{numbered[0]} and {other.label}",
        expected="one convention",
        remedy="No change is needed; numbers for all are understood by every release.",
        at=other.name_at,
    )


def _misplaced(joined: JoinedTables, side: TensorSide) -> RuleResult:
    """Names of 26.05 in a release that goes by the order of the config."""
    if is_numbered([tensor.label for tensor, _ in side.tensors]):
        return
    newer = name_table(joined.contract, Release(name=NAMES_SINCE))
    rows = () if newer is None else newer.inputs if side.word == "input" else newer.outputs
    for tensor, row in side.pairs:
        if (named := find_row(rows, tensor.label)) is not None and named.path != row.path:
            yield Remark(
                kind="config-order",
                message=f"Triton {joined.model.release.name} uses the order of the config here, not the names: "
                f"{tensor.label} is {row.path}, not {named.path}.",
                observed=f"{tensor.label} as {side.word} {row.slot}",
                expected=f"{side.word} {named.slot}",
                subject=tensor.label,
                remedy=f"List the {side.word}s in the order of the call, and call them all {side.word.upper()}__n.",
                at=tensor.name_at,
            )


# The numbers, which count in the order of the sample, not of the alphabet.


@RULES.rule(
    "R27",
    "numbers that refer to a different tensor than they suggest",
    Consequence.SILENTLY_WRONG,
    needs=Needs.CONTRACT,
)
@for_each_version
def numbers_count_as_given(joined: JoinedTables) -> RuleResult:
    """INPUT__k and OUTPUT__k count the tensors in the order of the sample at export and of the result as built.

    Dicts count in the order of insertion, keywords in the order of the call, regardless of the signature; nothing is
    sorted. The rule reports comments that give a tensor the name of another one, and numbers that mean a different
    tensor from the version before.

    Versions: 26.05 and later.
    Consequence: if two tensors with the same type and shape are swapped, nothing detects it: wrong numbers with HTTP
    status 200.
    How it was seen: run with the 26.05 backend.
    Remedy: follow the rows of ``aotidoctor triton names``, or use ARGS[..] and RESULT[..], which name the key.
    """
    if joined.model.release.before(NAMES_SINCE) or not joined.table.read:
        return
    comments = comments_by_tensor(joined.config, joined.model.text)
    for side in joined.sides:
        numbered = [(tensor, row) for tensor, row in side.pairs if tensor.label == row.ordinal]
        named = {row.slot: rows_in_comments(comments.get(tensor.at.line, ()), side.rows) for tensor, row in numbered}
        for tensor, row in numbered:
            if named[row.slot] and row not in named[row.slot]:
                yield _misnamed(side, tensor, row, named[row.slot])
        for group in _groups([row for _, row in numbered if row not in named[row.slot]]):
            yield Remark(
                kind="unsorted",
                consequence=Consequence.NOTE,
                message=f"the model loads and works; the {side.word}s count in the order of the sample, which is not "
                f"that of the alphabet: {rows_text(group[:_LISTED])}.",
                observed="keys that are not in alphabetical order",
                expected="a comment at each number that names its tensor",
                subject=group[0].ordinal,
                remedy="State in a comment which tensor each number is, or name them by their place in the call.",
            )
    yield from _moved(joined)


def _misnamed(side: TensorSide, tensor: TensorConfig, row: NameRow, named: Sequence[NameRow]) -> Remark:
    swap = any(_alike(row, other) for other in named)
    return Remark(
        kind="comment",
        consequence=Consequence.WASTE,
        message=f"the model loads; {tensor.label} is {row.path}, and the comment names {named[0].path}, which is "
        f"{named[0].ordinal}. "
        + ("Both have one type and one shape: the swap would not be noticed. " if swap else "")
        + f"The {side.word}s are: {rows_text(side.rows[:_LISTED])}.",
        observed=f"{tensor.label} with a comment on {named[0].path}",
        expected=f"{tensor.label} = {row.path}",
        subject=tensor.label,
        remedy=f"Write {named[0].ordinal} where {named[0].path} is meant; numbers count in the order of the sample.",
        at=tensor.name_at,
        facts={"path": row.path, "meant": named[0].path},
    )


def _alike(one: NameRow, other: NameRow) -> bool:
    """Whether a swap of the two could go unnoticed."""
    shapes = [None if row.dims is None else [dim.static for dim in row.dims] for row in (one, other)]
    return one.dtype == other.dtype and shapes[0] == shapes[1]


def _groups(rows: Sequence[NameRow]) -> Iterator[list[NameRow]]:
    """Values of one dict, in an order that is not the alphabet's, two of which could be swapped unseen."""
    dicts: dict[str, list[tuple[str, NameRow]]] = {}
    for row in rows:
        key = key_of(row)
        if key is not None:
            dicts.setdefault(key[0], []).append((key[1], row))
    for items in dicts.values():
        keys = [key for key, _ in items]
        found = [row for _, row in items]
        if keys != sorted(keys) and any(_alike(one, two) for at, one in enumerate(found) for two in found[at + 1 :]):
            yield found


def _moved(joined: JoinedTables) -> RuleResult:
    """Numbers of the config that named another tensor in the version before."""
    older = [item for item in joined.model.versions if item.number < joined.version.number]
    tables = (
        (version, name_table(version.contract, joined.model.release))
        for version in reversed(older)
        if version.contract is not None
    )
    version, table = next(((version, table) for version, table in tables if table and table.read), (None, None))
    if version is None or table is None:
        return
    for side, rows in ((joined.inputs, table.inputs), (joined.outputs, table.outputs)):
        old = {row.slot: row for row in rows}
        changed = [
            (tensor, row, old[row.slot])
            for tensor, row in side.pairs
            if tensor.label == row.ordinal and row.slot in old and old[row.slot].path != row.path
        ]
        if changed:
            yield _renumbered(joined, version, side, changed)


def _renumbered(
    joined: JoinedTables,
    version: ServedVersion,
    side: TensorSide,
    changed: Sequence[tuple[TensorConfig, NameRow, NameRow]],
) -> Remark:
    unseen = any(_alike(new, old) for _, new, old in changed)
    listed = "; ".join(f"{tensor.label} was {old.path} and is {new.path}" for tensor, new, old in changed[:_LISTED])
    numbers = f"{version.number} and {joined.version.number}"
    return Remark(
        kind="renumbered",
        consequence=Consequence.SILENTLY_WRONG if unseen else Consequence.WASTE,
        message=f"the model loads; between versions {numbers} the {side.word}s changed their order: {listed}. Clients "
        "of the version before "
        + (
            "get wrong numbers with HTTP status 200."
            if unseen
            else "send and receive different tensors from the intended ones."
        ),
        observed=listed,
        expected=f"the order of version {version.number}",
        subject=changed[0][0].label,
        remedy="Export with the sample in the old order, or name the tensors by their place in the call.",
        at=changed[0][0].name_at,
    )
