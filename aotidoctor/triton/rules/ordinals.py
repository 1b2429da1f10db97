"""Family spec, the numbers: INPUT__k and OUTPUT__k count in the order of the sample, not of the alphabet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aotidoctor.model.serving import Consequence, Family, Needs, NotJudged, Remark, Said, ServedModel, ServedVersion
from aotidoctor.model.serving_config import NameRow, NameTable, TensorConfig
from aotidoctor.triton.tensor_names import (
    NAMES_SINCE,
    JoinedTables,
    TensorSide,
    comments_by_tensor,
    each_version,
    key_of,
    name_table,
    rows_in_comments,
    rows_text,
)

RULES = Family("spec")

_SHOWN = 12


@RULES.rule(
    "R27",
    "numbers that refer to a different tensor than they suggest",
    Consequence.SILENTLY_WRONG,
    needs=Needs.CONTRACT,
)
def numbers_count_as_given(model: ServedModel) -> Said:
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
    if model.release.before(NAMES_SINCE):
        return ()
    return each_version(model, _ask)


def _ask(joined: JoinedTables) -> Said:
    if not joined.table.read:
        return ()
    comments = comments_by_tensor(joined.config, joined.model.text)
    said: list[Remark | NotJudged] = []
    for side in joined.sides:
        numbered = [(tensor, row) for tensor, row in side.pairs if tensor.label == row.ordinal]
        told = {row.slot: rows_in_comments(comments.get(tensor.at.line, ()), side.rows) for tensor, row in numbered}
        said.extend(
            _misnamed(side, tensor, row, told[row.slot])
            for tensor, row in numbered
            if told[row.slot] and row not in told[row.slot]
        )
        open_rows = [row for _, row in numbered if row not in told[row.slot]]
        said.extend(
            (
                Remark(
                    kind="unsorted",
                    consequence=Consequence.NOTE,
                    message=f"the model loads and works; the {side.word}s count in the order of the sample, which is "
                    "not that of "
                    f"the alphabet: {rows_text(group[:_SHOWN])}.",
                    observed="keys that are not in alphabetical order",
                    expected="a comment at each number that names its tensor",
                    subject=group[0].ordinal,
                    remedy="State in a comment which tensor each number is, or name them by their place in the call.",
                )
            )
            for group in _groups(open_rows)
        )
    said.extend(_moved(joined))
    return said


def _misnamed(side: TensorSide, tensor: TensorConfig, row: NameRow, named: Sequence[NameRow]) -> Remark:
    swap = any(_alike(row, other) for other in named)
    return Remark(
        kind="comment",
        consequence=Consequence.WASTE,
        message=f"the model loads; {tensor.label} is {row.path}, and the comment names {named[0].path}, which is "
        f"{named[0].ordinal}. "
        + ("Both have one type and one shape: the swap would not be noticed. " if swap else "")
        + f"The {side.word}s are: {rows_text(side.rows[:_SHOWN])}.",
        observed=f"{tensor.label} with a comment on {named[0].path}",
        expected=f"{tensor.label} = {row.path}",
        subject=tensor.label,
        remedy=f"Write {named[0].ordinal} where {named[0].path} is meant; numbers count in the order of the sample.",
        at=tensor.name_at,
        facts={"path": row.path, "meant": named[0].path},
    )


def _alike(one: NameRow, other: NameRow) -> bool:
    """Whether the two could trade places without anybody seeing it."""
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


def _moved(joined: JoinedTables) -> Iterator[Remark]:
    """Numbers of the config that meant another tensor in the version before."""
    before = _before(joined)
    if before is None:
        return
    version, table = before
    for side, rows in ((joined.inputs, table.inputs), (joined.outputs, table.outputs)):
        old = {row.slot: row for row in rows}
        changed = [
            (tensor, row, old[row.slot])
            for tensor, row in side.pairs
            if tensor.label == row.ordinal and row.slot in old and old[row.slot].path != row.path
        ]
        if changed:
            yield _renumbered(joined, version, side, changed)


def _before(joined: JoinedTables) -> tuple[ServedVersion, NameTable] | None:
    older = [item for item in joined.model.versions if item.number < joined.version.number and item.contract]
    for version in reversed(older):
        table = name_table(version.contract, joined.model.release) if version.contract is not None else None
        if table is not None and table.read:
            return version, table
    return None


def _renumbered(
    joined: JoinedTables,
    version: ServedVersion,
    side: TensorSide,
    changed: Sequence[tuple[TensorConfig, NameRow, NameRow]],
) -> Remark:
    unseen = any(_alike(new, old) for _, new, old in changed)
    listed = "; ".join(f"{tensor.label} was {old.path} and is {new.path}" for tensor, new, old in changed[:_SHOWN])
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
