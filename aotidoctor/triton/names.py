"""Which names a release of Triton has for the tensors of a package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.contract import Contract, Dim, LeafSpec, OutputSpec
from aotidoctor.model.expr import Num, parse_expr
from aotidoctor.model.record import record
from aotidoctor.model.serving import Release
from aotidoctor.model.serving_names import NameRow, NameTable
from aotidoctor.triton.call_spec import (
    ParsedSpec,
    SpecName,
    input_names,
    output_names,
    parse_inputs,
    parse_outputs,
    walk,
)
from aotidoctor.triton.data_types import data_type_of
from aotidoctor.triton.obstacles import find_obstacles, old_obstacles, spec_obstacles

# Before that release the call spec is not looked at: any name will do, and the config's order decides.
NAMES_SINCE = "26.05"


def name_table(contract: Contract, release: Release) -> NameTable | None:
    """The names of the package's tensors; None where it does not tell its call spec and the release asks for it."""
    if release.before(NAMES_SINCE):
        return _by_slot(contract, release)
    if contract.in_spec is None or contract.out_spec is None:
        return None
    parsed_inputs, parsed_outputs = parse_inputs(contract.in_spec), parse_outputs(contract.out_spec)
    inputs = _Inputs(contract=contract, parsed=parsed_inputs, release=release).rows()
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
    """The row that the server takes ``name`` for."""
    return next((row for row in rows if name in row.names), None)


def _by_slot(contract: Contract, release: Release) -> NameTable:
    """The tensors as the compiled code counts them; ordinals are one way to address them."""
    inputs = tuple(
        _input(leaf, leaf.input_index or 0, f"INPUT__{leaf.input_index}", None, release)
        for leaf in contract.tensor_leaves()
    )
    outputs = tuple(
        _output(
            output,
            NameRow(slot=output.index, ordinal=f"OUTPUT__{output.index}", forward=None, path=output.path),
            contract,
            release,
        )
        for output in contract.outputs
    )
    return NameTable(
        release=release.name,
        inputs=inputs,
        outputs=outputs,
        obstacles=old_obstacles(contract, inputs, release),
        wanted=contract.n_inputs,
    )


@record
class _Inputs:
    contract: Contract
    parsed: ParsedSpec
    release: Release

    def rows(self) -> tuple[NameRow, ...]:
        root = self.parsed.root
        if root is None or len(root.children) != 2:
            return ()
        return _with_lost([self._row(slot, name) for slot, name in enumerate(input_names(root))])

    def _row(self, slot: int, name: SpecName) -> NameRow:
        node = name.node
        ordinal = f"INPUT__{slot}"
        if node.number is None:
            kind = "nested" if any(below.number is not None for below in walk(node)) else "empty"
            return NameRow(slot=slot, ordinal=ordinal, forward=name.name, path=node.path, kind=kind)
        leaf = next((leaf for leaf in self.contract.leaves if leaf.index == node.number), None)
        if leaf is None:
            return NameRow(slot=slot, ordinal=ordinal, forward=name.name, path=node.path, kind="unknown")
        return _input(leaf, slot, ordinal, name.name, self.release)


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


def _outputs(contract: Contract, parsed: ParsedSpec, release: Release) -> tuple[NameRow, ...]:
    """The outputs; each answers with what the compiled code hands back at that place."""
    if parsed.root is None:
        return ()
    by_number = _outputs_by_number(contract, parsed)
    rows: list[NameRow] = []
    shifted = False
    for slot, name in enumerate(output_names(parsed.root)):
        ordinal = f"OUTPUT__{slot}"
        output = by_number.get(name.node.number) if name.node.number is not None else None
        shifted = shifted or name.node.number is None
        if output is None or shifted:
            # An empty dict takes a name and no place in what comes back, which moves all after it.
            kind = "shifted" if shifted else "unknown"
            rows.append(NameRow(slot=slot, ordinal=ordinal, forward=name.name, path=name.node.path, kind=kind))
        else:
            place = NameRow(slot=slot, ordinal=ordinal, forward=name.name, path=output.path)
            rows.append(_output(output, place, contract, release))
    return _with_lost(rows)


def _outputs_by_number(contract: Contract, parsed: ParsedSpec) -> dict[int, OutputSpec]:
    """The outputs of the contract by their number in the spec; none where the two do not fit."""
    tensors = [node for node in walk(parsed.root) if node.number is not None] if parsed.root is not None else []
    if len(tensors) != len(contract.outputs):
        return {}
    return {output.index: output for output in contract.outputs}


def _output(output: OutputSpec, place: NameRow, contract: Contract, release: Release) -> NameRow:
    return replace(
        place,
        kind=output.kind,
        dtype=output.dtype,
        data_type=data_type_of(output.dtype, release),
        dims=None if output.shape is None else tuple(_dim(size, contract) for size in output.shape),
        device_type=output.device_type,
    )


def _dim(size: str, contract: Contract) -> Dim:
    """A dim of an output; the bounds are those of an input's dim that is the same size."""
    expr = parse_expr(size)
    if isinstance(expr, Num):
        return Dim(static=expr.over, expr=expr)
    for leaf in contract.leaves:
        for dim in leaf.dims or ():
            if dim.static is None and dim.expr == expr:
                return dim
    return Dim(expr=expr)


def _with_lost(rows: list[NameRow]) -> tuple[NameRow, ...]:
    """Rows, each marked whose name a later one takes away: the backend keeps one place per name."""
    last = {row.forward: row.slot for row in rows}
    return tuple(replace(row, lost=last[row.forward] != row.slot) for row in rows)
