"""The config beside the names of each package that would be served: what the rules about tensors look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest

from aotidoctor.model.contract import Contract
from aotidoctor.model.record import record
from aotidoctor.model.serving import Consequence, NotJudged, Remark, Said, ServedModel, ServedVersion
from aotidoctor.model.serving_config import ModelConfig, Position, TensorConfig
from aotidoctor.model.serving_names import NameRow, NameTable, Obstacle
from aotidoctor.triton.names import name_table
from aotidoctor.triton.resolve import resolve

Pair = tuple[TensorConfig, NameRow]


@record
class Side:
    """The inputs or the outputs: ``tensors`` of the config with the row that each is taken for, None for none."""

    word: str
    rows: tuple[NameRow, ...]
    tensors: tuple[tuple[TensorConfig, NameRow | None], ...]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The tensors that stand for a row."""
        return tuple((tensor, row) for tensor, row in self.tensors if row is not None)

    @property
    def unlisted(self) -> tuple[NameRow, ...]:
        """The rows that no tensor stands for."""
        listed = {row.slot for _, row in self.pairs}
        return tuple(row for row in self.rows if row.slot not in listed)


@record
class Joined:
    """One served version: its package's names and the config's."""

    model: ServedModel
    config: ModelConfig
    version: ServedVersion
    contract: Contract
    table: NameTable
    inputs: Side
    outputs: Side

    @property
    def sides(self) -> tuple[Side, Side]:
        """Inputs, then outputs."""
        return self.inputs, self.outputs

    def place_of(self, obstacle: Obstacle) -> Position | None:
        """Where the config writes what an obstacle is about, None where it does not."""
        paths = obstacle.path.split(", ")
        pairs = (*self.inputs.pairs, *self.outputs.pairs)
        return next((tensor.at for tensor, row in pairs if row.path in paths), None)


def each_version(model: ServedModel, ask: Callable[[Joined], Said]) -> Said:
    """What ``ask`` says of every served version whose call spec is known; what it says of all of them is said once."""
    config = model.config
    if config is None:
        return (NotJudged(reason="config.pbtxt does not parse"),)
    said: list[tuple[int, Remark | NotJudged]] = []
    asked = 0
    for version, contract in model.contracts:
        table = name_table(contract, model.release)
        if table is None:
            reason = f"version {version.number}: the package does not contain its call spec (no wrapper.cpp in it)"
            said.append((version.number, NotJudged(reason=reason)))
            continue
        asked += 1
        said.extend((version.number, item) for item in ask(_join(model, config, version, contract, table)))
    return _merged(said, asked)


def _merged(said: Sequence[tuple[int, Remark | NotJudged]], asked: int) -> Said:
    merged: list[Remark | NotJudged] = []
    for number, item in said:
        same = [other for _, other in said].count(item)
        if asked > 1 and same < asked and isinstance(item, Remark):
            merged.append(replace(item, message=f"version {number}: {item.message}"))
        elif item not in merged:
            merged.append(item)
    return merged


def _join(
    model: ServedModel, config: ModelConfig, version: ServedVersion, contract: Contract, table: NameTable
) -> Joined:
    def side(word: str, rows: tuple[NameRow, ...], tensors: tuple[TensorConfig, ...]) -> Side:
        # Where the spec does not parse, the server gets to no name.
        taken = resolve(rows, [tensor.label for tensor in tensors if table.read])
        return Side(word=word, rows=rows, tensors=tuple(zip_longest(tensors, taken)))

    return Joined(
        model=model,
        config=config,
        version=version,
        contract=contract,
        table=table,
        inputs=side("input", table.inputs, config.inputs),
        outputs=side("output", table.outputs, config.outputs),
    )


def obstacle_remarks(joined: Joined, rule: str) -> list[Remark]:
    """What a rule has to say of the obstacles that carry its id, each at its place in the config."""
    found = (item for item in joined.table.obstacles if item.rule == rule)
    return [replace(remark_of(item), at=joined.place_of(item)) for item in found]


def remark_of(obstacle: Obstacle) -> Remark:
    """The remark that an obstacle is."""
    return Remark(
        kind=obstacle.kind,
        consequence=Consequence(obstacle.letter),
        message=f"{obstacle.message} No config can serve this package." if obstacle.letter != "S" else obstacle.message,
        observed=obstacle.observed,
        expected=obstacle.expected,
        subject=obstacle.path,
        remedy=obstacle.remedy,
        facts={"path": obstacle.path},
    )


def obstacles_of(model: ServedModel, rule: str) -> Said:
    """What a rule about the call spec says: the obstacles that carry its id."""
    return each_version(model, lambda joined: obstacle_remarks(joined, rule))


def unread(joined: Joined) -> Said:
    """Why names cannot be looked up, where the server does not get that far."""
    if joined.table.read:
        return ()
    first = joined.table.obstacles[0]
    return (NotJudged(reason=f"the server cannot parse the call spec ({first.rule}), so there are no names"),)


def unrecorded(what: str, labels: Sequence[str]) -> Said:
    """That the package does not record ``what`` of these tensors; nothing where there are none."""
    return [NotJudged(reason=f"the package does not record {what} of {', '.join(labels)}")] if labels else []


def rows_text(rows: Iterable[NameRow]) -> str:
    """Rows of the table, in one line: ``INPUT__1 = KWARGSscale = kwargs['scale']; ...``."""
    return "; ".join(" = ".join((*row.names, row.path)) for row in rows)
