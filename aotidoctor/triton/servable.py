"""Find what makes a package unservable with any config, and write a config.pbtxt for one that is servable.

Obstacles use the messages of the release. The rules decide whether the server would accept the config.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.contract import Dim, ModelContract
from aotidoctor.model.record import record
from aotidoctor.model.serving_config import NameRow, NameTable, Obstacle
from aotidoctor.triton.call_spec import BFLOAT16_SINCE, FIRST_RELEASE, ParsedSpec, SpecFailure, dims_text
from aotidoctor.triton.serving import PLATFORM, Release

# Obstacles.
# 26.03 and 26.04 compare the number of inputs with the number of strings in the call spec, which is always two.
OLD_COUNT = 2
_REMEDIES = {
    "R9": "Export a model that takes and returns tuples, lists and dicts only: wrap it in a module that converts.",
    "R10": "Export with at least one positional argument and without empty lists and tuples: wrap the model.",
    "R11": "Use strings as keys: wrap the model.",
}
_KINDS = {"R9": "type", "R10": "empty-sequence", "R11": "key"}


def old_obstacles(contract: ModelContract, inputs: Sequence[NameRow], release: Release) -> tuple[Obstacle, ...]:
    """Everything that no config can mend in a release before 26.05, which does not look at the call spec."""
    if release.before(FIRST_RELEASE):
        return (
            Obstacle(
                rule="R2",
                kind="platform",
                letter="F",
                path="model.pt2",
                observed=f"Triton {release.name}",
                expected="26.03 or later",
                message=f"the model is not loaded: unexpected platform type '{PLATFORM}'.",
                remedy="Serve with Triton 26.05 or later.",
            ),
        )
    if contract.n_inputs == OLD_COUNT:
        return _types(inputs, release)
    count = Obstacle(
        rule="R16",
        kind="two-inputs",
        letter="F",
        path="inputs",
        observed=f"{contract.n_inputs} inputs",
        expected=f"{OLD_COUNT} inputs",
        message=f"Triton {release.name} treats every model as one with {OLD_COUNT} inputs: with a different number "
        f"the model is not loaded (configuration expects N inputs, but model expects {OLD_COUNT} inputs), and with "
        f"{OLD_COUNT} every request fails.",
        remedy="Serve with Triton 26.05 or later.",
    )
    return (count, *_types(inputs, release))


def spec_obstacles(inputs: ParsedSpec, outputs: ParsedSpec) -> tuple[Obstacle, ...]:
    """Parts of the call spec that the server does not parse: it gets no further."""
    failures = [_failure(item, "input") for item in inputs.failures]
    return (*failures, *(_failure(item, "output") for item in outputs.failures))


def find_obstacles(
    contract: ModelContract, inputs: Sequence[NameRow], outputs: Sequence[NameRow], release: Release
) -> tuple[Obstacle, ...]:
    """Everything else that no config can mend, in the order in which the server would meet it."""
    # Inputs by the names that are no tensors in the compiled code (R13, R14, R15).
    count, named = contract.n_inputs, len(inputs)
    odd = [row for row in inputs if row.kind in _NO_TENSORS]
    if not odd and count != named:
        # Some are no tensors, and it is unknown which.
        odd = [row for row in inputs if row.kind == "unknown"][:1] or list(inputs[:1])
    groups: dict[str, list[NameRow]] = {}
    for row in odd:
        groups.setdefault(_NO_TENSORS.get(row.kind, "R14"), []).append(row)
    collisions = [
        Obstacle(
            rule="R28",
            kind="collision",
            letter="F",
            path=row.path,
            observed=f"{row.forward}, as a different input",
            expected="unique names",
            message=f"two inputs are both called {row.forward}, so {row.ordinal} is lost: the server counts one input "
            "less than the compiled code takes, and every request fails.",
            remedy="Choose keys without brackets.",
        )
        for row in inputs
        if row.lost
    ]
    no_tensors = [_no_tensor(rule, rows, named, count) for rule, rows in groups.items()]
    return (*no_tensors, *collisions, *_types(inputs, release), *_nothing_back(outputs))


def _failure(failure: SpecFailure, side: str) -> Obstacle:
    return Obstacle(
        rule=failure.rule,
        kind=f"{_KINDS[failure.rule]}-{side}",
        letter="F",
        path=failure.path,
        observed=failure.found,
        expected="tuples, lists and dicts with string keys, none of them empty",
        message=f"the model is not loaded: Failed to parse {side} call specification. The server's log says: "
        f"{failure.detail}",
        remedy=_REMEDIES[failure.rule],
    )


_NO_TENSORS = {"value": "R14", "unknown": "R14", "empty": "R15", "nested": "R13"}
_OBSERVED = {
    "value": "no tensor: a value baked in at export",
    "empty": "an empty dict",
    "nested": "a container inside a keyword argument",
}
_ODD_REMEDIES = {
    "R13": "Pass what is in the keyword as separate arguments: wrap the model.",
    "R14": "Export without the argument (its value is baked in anyway): wrap the model.",
    "R15": "Export without the empty dict: wrap the model.",
}


def _no_tensor(rule: str, rows: Sequence[NameRow], named: int, wanted: int) -> Obstacle:
    counts = (
        f"{', '.join(row.label for row in rows)} {'counts as one input' if len(rows) == 1 else 'count as inputs'}; the "
        f"server counts {named} in all, the compiled code takes {wanted}: "
    )
    if named == wanted:
        message = f"{counts}the numbers agree by chance, so it loads, and tensors reach the wrong arguments."
    else:
        message = (
            f"{counts}with {named} inputs the model loads, then every request fails with: expected inputs vector size "
            f"to be {wanted}, but got {named}; with {wanted} it is not loaded (configuration expects {wanted} inputs, "
            f"but model expects {named} inputs)."
        )
    return Obstacle(
        rule=rule,
        kind="by-chance" if named == wanted else {"R13": "nested", "R14": "no-tensor", "R15": "empty-dict"}[rule],
        letter="S" if named == wanted else "F",
        path=", ".join(row.path for row in rows),
        observed=_OBSERVED.get(rows[0].kind, "an argument that may not be a tensor"),
        expected="a tensor",
        message=message,
        remedy=_ODD_REMEDIES[rule],
    )


def _types(inputs: Sequence[NameRow], release: Release) -> tuple[Obstacle, ...]:
    return tuple(
        Obstacle(
            rule="R18",
            kind="no-type",
            letter="E",
            path=row.path,
            observed=str(row.dtype),
            expected=f"a dtype that Triton {release.name} has a type for",
            message=f"no data_type of Triton {release.name} represents {row.dtype}, so {row.label} cannot be sent.",
            remedy=f"Serve with Triton {BFLOAT16_SINCE} or later, or wrap the model with a cast."
            if row.dtype == "bfloat16"
            else "Wrap the model in one that takes a different dtype and converts it, and export that.",
        )
        for row in inputs
        if row.kind == "tensor" and row.dtype is not None and row.data_type is None
    )


def _nothing_back(outputs: Sequence[NameRow]) -> tuple[Obstacle, ...]:
    """No output that a response can hold: a config must list at least one."""
    if not outputs or any(map(listable, outputs)):
        return ()
    row = outputs[0]
    return (
        Obstacle(
            rule="R23",
            kind="nothing-left",
            letter="E",
            path=row.path,
            observed="no output with at least one dim and a type that Triton supports",
            expected="at least one output that a response can contain",
            message="a config must list an output, and every request fails with each available output.",
            remedy="Wrap the model to return a tensor with a dim and a type that Triton supports (unsqueeze, to).",
        ),
    )


def listable(row: NameRow) -> bool:
    """Whether a config can list the output: a tensor of one dim or more with a type of Triton's."""
    typed = row.dtype is None or row.data_type is not None
    return row.may_be_tensor and typed and row.dims != () and not row.lost


# The config.
ORDINAL, FORWARD = "ordinal", "forward"
# In earlier releases an empty file name means model.pt.
_DEFAULT_SINCE = "26.04"


@record
class ConfigOptions:
    """Options of the config: the largest batch (0: no batching), and how tensors are named."""

    max_batch_size: int = 0
    naming: str = ORDINAL


def write_config(table: NameTable, release: Release, device: str, wanted: ConfigOptions) -> tuple[str, tuple[str, ...]]:
    """Write the config. Outputs that no response can hold are left out, and named in a comment.

    Also what the package does not record, so that no valid config can be written.
    """
    batched = wanted.max_batch_size > 0
    batch = next((row.dims[0] for row in table.inputs if row.dims), None) if batched else None
    reasons = {row.slot: _left_out(row, batch) for row in table.outputs}
    outputs = [row for row in table.outputs if reasons[row.slot] is None]
    problems = [
        f"no type for {row.label}, which is {row.dtype}"
        if row.dtype is not None and row.data_type is None
        else f"the package does not record {'the type' if row.dtype is None else 'the dims'} of {row.label}"
        for row in table.inputs
        if row.data_type is None or row.dims is None
    ]
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
    return "\n".join(lines) + "\n", tuple(problems)


def _left_out(row: NameRow, batch: Dim | None) -> str | None:
    """Why a config cannot list an output, None where it can."""
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


def _tensors(rows: Sequence[NameRow], options: ConfigOptions) -> list[str]:
    lines = []
    batched = options.max_batch_size > 0
    for row in rows:
        # Keywords by their numbers always, which every release reads alike.
        numbered = options.naming == ORDINAL or row.forward is None or row.forward.startswith("KWARGS")
        name = row.ordinal if numbered else row.forward or ""
        sizes = ["-1" if dim.static is None else str(dim.static) for dim in (row.dims or ())[batched:]]
        lines += [
            "  {",
            f'    name: "{_escaped(name)}"  # {_comment(row)}',
            f"    data_type: {row.data_type}",
            # Dims cannot be empty: beside a batch, the one element is reshaped away.
            f"    dims: [ {', '.join(sizes or ['1'])} ]",
            *(["    reshape { shape: [ ] }"] if batched and not sizes else []),
            "  }" + ("" if row is rows[-1] else ","),
        ]
    return lines


def _comment(row: NameRow) -> str:
    text = f"{row.path}: {row.dtype or ''}"
    return "".join(letter if letter.isprintable() else "?" for letter in text) + dims_text(row.dims or ())


def _escaped(name: str) -> str:
    """Escape the name for a string of the text format."""
    return "".join(
        f"\\{letter}"
        if letter in '"\\'
        else letter
        if letter.isprintable()
        else "".join(f"\\{byte:03o}" for byte in letter.encode("utf-8", "surrogatepass"))
        for letter in name
    )
