"""Family spec, the numbers: INPUT__k and OUTPUT__k count in the order of the sample, not of the alphabet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aotidoctor.model.serving import Consequence, Family, Needs, Remark, RuleResult, ServedVersion
from aotidoctor.model.serving_config import NameRow, TensorConfig
from aotidoctor.triton.tensor_names import (
    NAMES_SINCE,
    JoinedTables,
    TensorSide,
    comments_by_tensor,
    for_each_version,
    key_of,
    name_table,
    rows_in_comments,
    rows_text,
)

RULES = Family("spec")

_LISTED = 12


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
