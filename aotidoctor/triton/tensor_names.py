"""Name a package's tensors as a release does, and join them with the names in the config and its comments.

From 26.05 on a name is looked up. In 26.03 and 26.04 it is not: where all names end in ``__`` and a number, the number
is the place; else the order of the config is, for all of them. The rules about tensors examine the joined tables.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from itertools import zip_longest

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import Dim, LeafSpec, ModelContract, OutputSpec
from aotidoctor.model.expr import Num
from aotidoctor.model.record import record
from aotidoctor.model.serving_config import (
    ConfigMessage,
    Given,
    ModelConfig,
    NameRow,
    NameTable,
    Obstacle,
    Position,
    TensorConfig,
)
from aotidoctor.triton.call_spec import (
    ParsedSpec,
    data_type_of,
    input_names,
    output_names,
    parse_inputs,
    parse_outputs,
    walk,
)
from aotidoctor.triton.servable import find_obstacles, old_obstacles, spec_obstacles
from aotidoctor.triton.serving import Consequence, NotJudged, Release, Remark, RuleResult, ServedModel, ServedVersion

# Names of a release.
# Before that release the call spec is not looked at: any name will do, and the config's order decides.
NAMES_SINCE = "26.05"


def name_table(contract: ModelContract, release: Release) -> NameTable | None:
    """Names of the package's tensors; None where the release needs a call spec and the package has none."""
    if release.before(NAMES_SINCE):
        # The tensors as the compiled code counts them; ordinals are one way to address them.
        inputs = tuple(
            _input(leaf, leaf.input_index or 0, f"INPUT__{leaf.input_index}", None, release)
            for leaf in contract.tensor_leaves()
        )
        places = (
            NameRow(slot=item.index, ordinal=f"OUTPUT__{item.index}", forward=None, path=item.path)
            for item in contract.outputs
        )
        return NameTable(
            release=release.name,
            inputs=inputs,
            outputs=tuple(
                _output(item, place, contract, release) for item, place in zip(contract.outputs, places, strict=True)
            ),
            obstacles=old_obstacles(contract, inputs, release),
            wanted=contract.n_inputs,
        )
    if contract.in_spec is None or contract.out_spec is None:
        return None
    parsed_inputs, parsed_outputs = parse_inputs(contract.in_spec), parse_outputs(contract.out_spec)
    inputs = _inputs(contract, parsed_inputs, release)
    outputs = _outputs(contract, parsed_outputs, release)
    unparsed = spec_obstacles(parsed_inputs, parsed_outputs)
    return NameTable(
        release=release.name,
        inputs=inputs,
        outputs=outputs,
        obstacles=unparsed or find_obstacles(contract, inputs, outputs, release),
        wanted=contract.n_inputs,
        read=not unparsed,
    )


def find_row(rows: Sequence[NameRow], name: str) -> NameRow | None:
    """Row that the server finds under ``name``."""
    return next((row for row in rows if name in row.names), None)


def _inputs(contract: ModelContract, parsed: ParsedSpec, release: Release) -> tuple[NameRow, ...]:
    if parsed.root is None or len(parsed.root.children) != 2:
        return ()
    rows = []
    for slot, name in enumerate(input_names(parsed.root)):
        node, ordinal = name.node, f"INPUT__{slot}"
        leaf = next((leaf for leaf in contract.leaves if leaf.index == node.number), None)
        if node.number is None:
            kind = "nested" if any(below.number is not None for below in walk(node)) else "empty"
            rows.append(NameRow(slot=slot, ordinal=ordinal, forward=name.name, path=node.path, kind=kind))
        elif leaf is None:
            rows.append(NameRow(slot=slot, ordinal=ordinal, forward=name.name, path=node.path, kind="unknown"))
        else:
            rows.append(_input(leaf, slot, ordinal, name.name, release))
    return _mark_lost_names(rows)


def _input(leaf: LeafSpec, slot: int, ordinal: str, forward: str | None, release: Release) -> NameRow:
    return NameRow(
        slot=slot,
        ordinal=ordinal,
        forward=forward,
        path=leaf.path,
        kind="value" if leaf.kind == "constant" else leaf.kind,
        dtype=leaf.dtype,
        data_type=data_type_of(leaf.dtype, release),
        dims=leaf.dims if leaf.kind != "constant" else None,
        device_type=leaf.device_type,
        generated_name=leaf.generated_name,
        used=leaf.used,
    )


def _outputs(contract: ModelContract, parsed: ParsedSpec, release: Release) -> tuple[NameRow, ...]:
    """The outputs; each answers with what the compiled code returns at that place."""
    if parsed.root is None:
        return ()
    # Numbers in the spec are those of the contract only where both have as many tensors.
    fits = sum(node.number is not None for node in walk(parsed.root)) == len(contract.outputs)
    by_number = {output.index: output for output in contract.outputs} if fits else {}
    rows: list[NameRow] = []
    shifted = False
    for slot, name in enumerate(output_names(parsed.root)):
        ordinal = f"OUTPUT__{slot}"
        output = by_number.get(name.node.number) if name.node.number is not None else None
        shifted = shifted or name.node.number is None
        if output is None or shifted:
            # An empty dict takes a name and no place among the results, which moves all after it.
            kind = "shifted" if shifted else "unknown"
            rows.append(NameRow(slot=slot, ordinal=ordinal, forward=name.name, path=name.node.path, kind=kind))
        else:
            place = NameRow(slot=slot, ordinal=ordinal, forward=name.name, path=output.path)
            rows.append(_output(output, place, contract, release))
    return _mark_lost_names(rows)


def _output(output: OutputSpec, place: NameRow, contract: ModelContract, release: Release) -> NameRow:
    return replace(
        place,
        kind=output.kind,
        dtype=output.dtype,
        data_type=data_type_of(output.dtype, release),
        dims=None if output.shape is None else tuple(_dim(size, contract) for size in output.shape),
        device_type=output.device_type,
    )


def _dim(size: str, contract: ModelContract) -> Dim:
    """A dim of an output; the bounds are those of an input's dim that is the same size."""
    expr = parse_expr(size)
    if isinstance(expr, Num):
        return Dim(static=expr.over, expr=expr)
    for leaf in contract.leaves:
        for dim in leaf.dims or ():
            if dim.static is None and dim.expr == expr:
                return dim
    return Dim(expr=expr)


def _mark_lost_names(rows: list[NameRow]) -> tuple[NameRow, ...]:
    """Rows, each marked whose name a later one takes away: the backend keeps one place per name."""
    last = {row.forward: row.slot for row in rows}
    return tuple(replace(row, lost=last[row.forward] != row.slot) for row in rows)


# The tensor that the server takes a name for.
_NUMBERED = re.compile(r"(?:(?!__).)*__([0-9]*)", re.DOTALL)


def resolve(rows: Sequence[NameRow], names: Sequence[str]) -> tuple[NameRow | None, ...]:
    """The row of each name, None where the server finds none."""
    if all(row.forward is not None for row in rows):
        return tuple(find_row(rows, name) for name in names)
    slots = {row.slot: row for row in rows}
    return tuple(slots.get(place) for place in name_places(names))


def name_places(names: Sequence[str]) -> tuple[int, ...]:
    """Places that 26.03 and 26.04 derive from names: the number after the first ``__``, or the config's order."""
    found = [_NUMBERED.fullmatch(name) for name in names]
    # Nothing after __ is the number 0.
    numbers = [int(match[1] or 0) for match in found if match is not None]
    return tuple(numbers) if len(numbers) == len(names) else tuple(range(len(names)))


def is_numbered(names: Sequence[str]) -> bool:
    """Whether 26.03 and 26.04 go by the numbers in the names."""
    return all(_NUMBERED.fullmatch(name) for name in names)


# The valid name that an unknown one probably stands for.
_DROPPED = re.compile(r"[\s\"'\\]")


def nearest_name(name: str, rows: Sequence[NameRow]) -> str | None:
    """Closest valid name, None where none is close.

    First one that differs in case, quotes, spaces, underscores and leading zeros only; then the tensor's user path, its
    key, or its name in the generated code; then one that looks alike.
    """
    plain = _plain(name)
    for row in rows:
        known = next((valid for valid in row.names if _plain(valid) == plain), None)
        if known is not None:
            return known
    for row in rows:
        if plain in _other_names(row) and row.names:
            by_number = row.forward is None or row.forward.startswith("KWARGS")
            return row.names[0 if by_number else -1]
    valid = [known for row in rows for known in row.names]
    alike = difflib.get_close_matches(name.upper(), [known.upper() for known in valid], n=1, cutoff=0.75)
    return next((known for known in valid if alike and known.upper() == alike[0]), None)


def _plain(name: str) -> str:
    text = re.sub(r"_+", "_", _DROPPED.sub("", name).lower())
    return re.sub(r"(?<!\d)0+(?=\d)", "", text)


def _other_names(row: NameRow) -> frozenset[str]:
    """Other names for the tensor: its path, the key or field at its end, its name in the generated code, its number.

    A single result may be written as the first of several, and the first of several as the only one.
    """
    path = _plain(row.path)
    last = re.search(r"\[([^\[\]]+)\]$|\.(\w+)$", path)
    key = (last[1] or last[2]) if last is not None else None
    names = {path, row.generated_name, f"{path}[0]", key if key is not None and not key.isdigit() else None}
    if row.slot == 0 and path == "result[0]":
        names.add("result")
    side = row.ordinal.partition("__")[0].lower()
    names |= {f"{side}{row.slot}", f"{side}_{row.slot}", f"{side}[{row.slot}]"}
    return frozenset(name for name in names if name)


# Comments of a config about its tensors.
_KEY = re.compile(r"^(?P<above>.*)\[(?:'(?P<key>[^']*)'|\"(?P<other>[^\"]*)\")\]$", re.DOTALL)


def comments_by_tensor(config: ModelConfig, text: str) -> dict[int, tuple[Given[str], ...]]:
    """Comments that belong to each input and output, by the line where it begins.

    A comment behind something, or inside the braces, belongs to that tensor; one on a line of its own between two
    tensors belongs to the one below.
    """
    tensors = sorted((*config.inputs, *config.outputs), key=lambda tensor: (tensor.at.line, tensor.at.column))
    lines = text.split("\n")
    found: dict[int, tuple[Given[str], ...]] = {}
    for comment in config.comments:
        line = comment.at.line
        alone = not lines[line - 1][: comment.at.column - 1].strip() if line <= len(lines) else True
        before = [tensor for tensor in tensors if tensor.at.line <= line]
        if before and (not alone or line <= max([before[-1].tree.at.line, *_lines(before[-1].tree)])):
            owner = before[-1]
        elif alone and len(before) < len(tensors):
            owner = tensors[len(before)]
        else:
            continue
        found[owner.at.line] = (*found.get(owner.at.line, ()), comment)
    return found


def _lines(message: ConfigMessage) -> Iterator[int]:
    for item in message.fields:
        yield item.at.line
        if isinstance(item.value, ConfigMessage):
            yield from _lines(item.value)
        else:
            yield item.value.at.line


def rows_in_comments(comments: Sequence[Given[str]], rows: Sequence[NameRow]) -> tuple[NameRow, ...]:
    """Rows that comments mention: by the user's path, the name in the call, or the key at the path's end."""
    text = " ".join(comment.value for comment in comments)
    found = []
    for row in rows:
        key = key_of(row)
        words = (row.path, row.forward if row.forward != "RESULT" else None, key[1] if key is not None else None)
        for word in filter(None, words):
            start = r"(?<![\w\])'\"])" if word[0].isalnum() or word[0] == "_" else ""
            end = r"(?![\w\[(])" if word[-1].isalnum() or word[-1] == "_" else r"(?!\[)"
            if re.search(start + re.escape(word) + end, text):
                found.append(row)
                break
    return tuple(found)


def key_of(row: NameRow) -> tuple[str, str] | None:
    """``("args[1]", "a")`` of a tensor that is a value of a dict."""
    found = _KEY.match(row.path)
    return None if found is None else (found["above"], found["key"] or found["other"] or "")


# The config beside the names of each package.
Pair = tuple[TensorConfig, NameRow]


@record
class TensorSide:
    """The inputs or the outputs: ``tensors`` of the config, each with the row that the server uses, or None."""

    word: str
    rows: tuple[NameRow, ...]
    tensors: tuple[tuple[TensorConfig, NameRow | None], ...]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Tensors of the config that have a row."""
        return tuple((tensor, row) for tensor, row in self.tensors if row is not None)

    @property
    def unlisted(self) -> tuple[NameRow, ...]:
        """Rows without a tensor in the config."""
        listed = {row.slot for _, row in self.pairs}
        return tuple(row for row in self.rows if row.slot not in listed)


@record
class JoinedTables:
    """One served version: its package's names and the config's."""

    model: ServedModel
    config: ModelConfig
    version: ServedVersion
    contract: ModelContract
    table: NameTable
    inputs: TensorSide
    outputs: TensorSide

    @property
    def sides(self) -> tuple[TensorSide, TensorSide]:
        """Inputs, then outputs."""
        return self.inputs, self.outputs

    def place_of(self, obstacle: Obstacle) -> Position | None:
        """Position in the config of the tensor that an obstacle is about, None where it is not there."""
        paths = obstacle.path.split(", ")
        pairs = (*self.inputs.pairs, *self.outputs.pairs)
        return next((tensor.at for tensor, row in pairs if row.path in paths), None)


def each_version(model: ServedModel, ask: Callable[[JoinedTables], RuleResult]) -> RuleResult:
    """Apply ``ask`` to every served version whose call spec is known; a remark about all of them is made once."""
    config = model.config
    if config is None:
        return (NotJudged(reason="config.pbtxt does not parse"),)
    found: list[tuple[int, Remark | NotJudged]] = []
    count = 0
    for version, contract in model.contracts:
        table = name_table(contract, model.release)
        if table is None:
            reason = f"version {version.number}: the package does not contain its call spec (no wrapper.cpp in it)"
            found.append((version.number, NotJudged(reason=reason)))
            continue
        count += 1
        found.extend((version.number, item) for item in ask(_join(model, config, version, contract, table)))
    merged: list[Remark | NotJudged] = []
    for number, item in found:
        same = [other for _, other in found].count(item)
        if count > 1 and same < count and isinstance(item, Remark):
            merged.append(replace(item, message=f"version {number}: {item.message}"))
        elif item not in merged:
            merged.append(item)
    return merged


def for_each_version(ask: Callable[[JoinedTables], RuleResult]) -> Callable[[ServedModel], RuleResult]:
    """Make a check of a model from ``ask``, a check of one served version; see ``each_version``."""

    @wraps(ask)
    def check(model: ServedModel) -> RuleResult:
        return each_version(model, ask)

    return check


def _join(
    model: ServedModel, config: ModelConfig, version: ServedVersion, contract: ModelContract, table: NameTable
) -> JoinedTables:
    def side(word: str, rows: tuple[NameRow, ...], tensors: tuple[TensorConfig, ...]) -> TensorSide:
        # Where the spec does not parse, the server gets to no name.
        taken = resolve(rows, [tensor.label for tensor in tensors if table.read])
        return TensorSide(word=word, rows=rows, tensors=tuple(zip_longest(tensors, taken)))

    return JoinedTables(
        model=model,
        config=config,
        version=version,
        contract=contract,
        table=table,
        inputs=side("input", table.inputs, config.inputs),
        outputs=side("output", table.outputs, config.outputs),
    )


def obstacle_remarks(joined: JoinedTables, rule: str) -> list[Remark]:
    """Remarks for the obstacles that have a rule's id, each at its place in the config."""
    found = (item for item in joined.table.obstacles if item.rule == rule)
    return [replace(remark_of(item), at=joined.place_of(item)) for item in found]


def remark_of(obstacle: Obstacle) -> Remark:
    """Remark for an obstacle."""
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


def obstacles_of(model: ServedModel, rule: str) -> RuleResult:
    """Remarks of a rule about the call spec: the obstacles that have its id."""
    return each_version(model, lambda joined: obstacle_remarks(joined, rule))


def unread(joined: JoinedTables) -> RuleResult:
    """Reason why names cannot be looked up, where the server cannot parse the call spec."""
    if joined.table.read:
        return ()
    first = joined.table.obstacles[0]
    return (NotJudged(reason=f"the server cannot parse the call spec ({first.rule}), so there are no names"),)


def unrecorded_remark(what: str, labels: Sequence[str]) -> RuleResult:
    """Note that the package does not record ``what`` of these tensors; nothing where there are none."""
    return [NotJudged(reason=f"the package does not record {what} of {', '.join(labels)}")] if labels else []


def rows_text(rows: Iterable[NameRow]) -> str:
    """Format rows of the table in one line: ``INPUT__1 = KWARGSscale = kwargs['scale']; ...``."""
    return "; ".join(" = ".join((*row.names, row.path)) for row in rows)
