"""A config.pbtxt for a package. Whether the server would take it is for the rules to say."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.contract import Dim
from aotidoctor.model.record import record
from aotidoctor.model.serving import PLATFORM, Release
from aotidoctor.model.serving_names import NameRow, NameTable
from aotidoctor.triton.obstacles import listable
from aotidoctor.triton.shapes import dims_text

ORDINAL, FORWARD = "ordinal", "forward"
# Before, an empty file name means model.pt.
_DEFAULT_SINCE = "26.04"


@record
class Wanted:
    """What the config is to be: the largest batch (0: no batching), and how tensors are named."""

    max_batch_size: int = 0
    naming: str = ORDINAL


@record
class Written:
    """``text`` is the config; ``problems`` say what the package does not tell, so that none can be written."""

    text: str
    problems: tuple[str, ...] = ()


def write_config(table: NameTable, release: Release, device: str, wanted: Wanted) -> Written:
    """The config. Outputs that no response can hold are left out, and named in a comment."""
    batch = _batch(table) if wanted.max_batch_size > 0 else None
    reasons = {row.slot: _left_out(row, batch) for row in table.outputs}
    outputs = [row for row in table.outputs if reasons[row.slot] is None]
    problems = [_untold(row) for row in table.inputs if row.data_type is None or row.dims is None]
    if not outputs:
        problems += [f"{row.label}: {reasons[row.slot]}" for row in table.outputs]
    lines = [
        f"# For Triton {release.name}. The package goes to <this folder>/1/model.pt2.",
        f'platform: "{PLATFORM}"',
        'backend: "pytorch"',
        *(['default_model_filename: "model.pt2"'] if release.before(_DEFAULT_SINCE) else []),
        f"max_batch_size: {wanted.max_batch_size}",
        "input [",
        *_tensors(table.inputs, wanted),
        "]",
        *(f"# left out: {_comment(row)} ({reasons[row.slot]})" for row in table.outputs if reasons[row.slot]),
        "output [",
        *_tensors(outputs, wanted),
        "]",
        "instance_group [",
        "  {",
        "    count: 1",
        *(["    kind: KIND_GPU", "    gpus: [ 0 ]"] if device == "cuda" else ["    kind: KIND_CPU"]),
        "  }",
        "]",
    ]
    return Written(text="\n".join(lines) + "\n", problems=tuple(problems))


def _batch(table: NameTable) -> Dim | None:
    """The dim that the inputs begin with."""
    return next((row.dims[0] for row in table.inputs if row.dims), None)


def _left_out(row: NameRow, batch: Dim | None) -> str | None:
    """Why an output cannot stand in the config, None where it can."""
    words = {"none": "None", "number": "a number, without dims", "shifted": "after an empty dict"}
    if row.kind in words:
        return words[row.kind]
    if row.dims == ():
        return "without dims"
    if row.dtype is None or row.dims is None:
        return "the package does not record its type" if row.dtype is None else "the package does not record its dims"
    if not listable(row):
        return f"no type for {row.dtype}" if row.data_type is None else "a second output has the same name"
    if batch is not None and row.dims[0].expr != batch.expr:
        return f"its first dim is not the batch: {dims_text(row.dims)}"
    return None


def _untold(row: NameRow) -> str:
    if row.dtype is not None and row.data_type is None:
        return f"no type for {row.label}, which is {row.dtype}"
    return f"the package does not record {'the type' if row.dtype is None else 'the dims'} of {row.label}"


def _tensors(rows: Sequence[NameRow], wanted: Wanted) -> list[str]:
    lines = []
    for row in rows:
        lines += [
            "  {",
            f'    name: "{_escaped(_name(row, wanted.naming))}"  # {_comment(row)}',
            f"    data_type: {row.data_type}",
            *_dims(row.dims or (), batched=wanted.max_batch_size > 0),
            "  }" + ("" if row is rows[-1] else ","),
        ]
    return lines


def _name(row: NameRow, naming: str) -> str:
    """By its number, or by its place in the call; keywords always by number, which every release reads alike."""
    if naming == ORDINAL or row.forward is None or row.forward.startswith("KWARGS"):
        return row.ordinal
    return row.forward


def _comment(row: NameRow) -> str:
    told = row.dtype or ""
    return "".join(letter if letter.isprintable() else "?" for letter in f"{row.path}: {told}") + dims_text(
        row.dims or ()
    )


def _dims(dims: Sequence[Dim], *, batched: bool) -> list[str]:
    """Dims as the config has them. They cannot be empty: beside a batch, the one element is reshaped away."""
    sizes = ["-1" if dim.static is None else str(dim.static) for dim in (dims[1:] if batched else dims)]
    alone = ["    reshape { shape: [ ] }"] if batched and not sizes else []
    return [f"    dims: [ {', '.join(sizes or ['1'])} ]", *alone]


def _escaped(name: str) -> str:
    """The name as a string of the text format."""
    return "".join(
        f"\\{letter}" if letter in '"\\' else letter if letter.isprintable() else _octal(letter) for letter in name
    )


def _octal(letter: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in letter.encode("utf-8", "surrogatepass"))
