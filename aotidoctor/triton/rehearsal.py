"""Plan what the server would do with a user's tensors, and explain how its answers differ from the plain call's.

A client sends each tensor under a name of the config, in the type that the config gives it; the backend puts it into
the slot that its release makes of the name, and answers with the outputs behind the names of the config. The worker
does that with real tensors (job ``rehearse``), and compares with the plain call.

Which tensor a client intends by a name: a name by place in the call states it (``ARGS[1][a]``). An ordinal states only
where the server will put the tensor; the intention may be in a comment beside it, or come from the user (``--send
INPUT__1="args[1]['b']"``). Otherwise the ordinal is taken literally, and any other name by the order of the config.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from aotidoctor.model.evidence import FactValue
from aotidoctor.model.record import JsonObject, JsonValue, as_list, objects, record
from aotidoctor.model.serving_config import Given, ModelConfig, NameRow, NameTable, TensorConfig
from aotidoctor.triton.call_spec import SPLITS_SINCE, data_types
from aotidoctor.triton.serving import Release, ServedModel
from aotidoctor.triton.tensor_names import NAMES_SINCE, resolve

if TYPE_CHECKING:
    from aotidoctor.model.run import Outcome

# Intended tensors.
_ORDINAL = re.compile(r"(?:INPUT|OUTPUT)__(\d+)")
_LAST_KEY = re.compile(r"\['([^']+)'\]$")


@record
class IntendedTensor:
    """The tensor that a client intends by a name; ``row`` is None where nothing is known.

    ``why`` is ``said``, ``comment``, ``name``, ``ordinal`` or ``order``.
    """

    row: NameRow | None
    why: str


def _intended_tensor(
    at: int,
    tensors: Sequence[TensorConfig],
    rows: Sequence[NameRow],
    comments: Sequence[Given[str]],
    sends: Mapping[str, str],
) -> IntendedTensor:
    name = tensors[at].label
    if name in sends:
        return IntendedTensor(row=next((row for row in rows if row.path == sends[name]), None), why="said")
    # Comments on the lines of a tensor, where it has lines of its own.
    first = tensors[at].at.line
    lines = {first, *(field.at.line for field in tensors[at].tree.fields)}
    others = {
        line
        for number, other in enumerate(tensors)
        if number != at
        for line in (other.at.line, *(field.at.line for field in other.tree.fields))
    }
    remarked = _in_comments([item.value for item in comments if item.at.line in lines - others], rows)
    if remarked is not None:
        return IntendedTensor(row=remarked, why="comment")
    # `ARGS[1][a]` of `args[1]['a']`, for releases that have no such names; `KWARGS[a]`, as the documents say.
    by_name = next(
        (
            row
            for row in rows
            if row.forward == name
            or re.sub(
                r"\['([^']*)'\]", r"[\1]", re.sub(r"^(args|kwargs|result)", lambda found: found[1].upper(), row.path)
            )
            == name
        ),
        None,
    )
    if by_name is not None:
        return IntendedTensor(row=by_name, why="name")
    ordinal = _ORDINAL.fullmatch(name)
    slot = at if ordinal is None else int(ordinal[1])
    return IntendedTensor(
        row=next((row for row in rows if row.slot == slot), None), why="order" if ordinal is None else "ordinal"
    )


def _in_comments(texts: Sequence[str], rows: Sequence[NameRow]) -> NameRow | None:
    """The only row whose path, or last key as a word, is in a comment."""
    for text in texts:
        whole = [row for row in rows if row.path in text.replace('"', "'")]
        if len(whole) == 1:
            return whole[0]
        keys = [(row, found[1]) for row in rows if (found := _LAST_KEY.search(row.path))]
        keyed = [row for row, key in keys if re.search(rf"(?<!\w){re.escape(key)}(?!\w)", text)]
        if len(keyed) == 1 and not whole:
            return keyed[0]
    return None


# The plan.
MERGED = 2


class CannotRehearseError(Exception):
    """No rehearsal is possible; the text says why."""


@record
class ClientTensor:
    """One name of the config. ``intended`` is the tensor that a client intends, ``row`` the one that the server uses.

    ``dtype`` is torch's name of the config's type. ``shape`` is what the backend sees of one request, the batch left
    out where the server batches; -1 is any size.
    """

    name: str
    intended: IntendedTensor
    row: NameRow
    dtype: str
    shape: tuple[int, ...]
    line: int

    @property
    def crossed(self) -> bool:
        """Whether the server uses another tensor than the intended one."""
        return self.intended.row is not None and self.intended.row.path != self.row.path


@record
class Rehearsal:
    """Plan of a rehearsal. ``requests`` are merged in one execution; ``splits``: the server splits the answer again.

    ``max_batch`` is 0 where the server does not batch. ``gpu`` is the index of the GPU, None for the CPU. ``notes`` are
    the assumptions.
    """

    inputs: tuple[ClientTensor, ...]
    outputs: tuple[ClientTensor, ...]
    wanted: int
    max_batch: int
    requests: int
    splits: bool
    gpu: int | None
    notes: tuple[str, ...] = ()


def plan_rehearsal(
    model: ServedModel, table: NameTable, *, requests: int | None = None, sends: Mapping[str, str] | None = None
) -> Rehearsal:
    """Plan the rehearsal of ``model``; ``sends`` maps names to the user's paths.

    Raises:
        CannotRehearseError: the server would not load the model, or would refuse every request.
    """
    config, release = model.config, model.release
    if config is None or not table.read:
        raise CannotRehearseError("the server would not load it")
    inputs = tuple(_wires(config.inputs, table.inputs, config, sends or {}, release))
    outputs = tuple(_wires(config.outputs, table.outputs, config, sends or {}, release))
    # Two names for one slot leave another empty: every request fails before the compiled code is reached.
    seen: dict[int, str] = {}
    for wire in inputs:
        if wire.row.slot in seen:
            names = f"{seen[wire.row.slot]} and {wire.name}"
            raise CannotRehearseError(f"{names} are both {wire.row.path}, so a different input is never set")
        seen[wire.row.slot] = wire.name
    merged, notes = requests or MERGED, tuple[str, ...]()
    scheduler = config.scheduling.name if config.scheduling is not None else ""
    if scheduler != "dynamic_batching" or config.batch_size <= 1:
        why = "dynamic_batching with max_batch_size above 1"
        unmerged = f"one request at a time: without {why} the server never merges requests"
        merged, notes = 1, (unmerged,) if (requests or 1) > 1 else ()
    kinds, groups = model.settled.kinds if model.settled is not None else (), model.instance_groups
    first_gpu = groups[0].gpus[0].value if groups and groups[0].gpus else 0
    return Rehearsal(
        inputs=inputs,
        outputs=outputs,
        wanted=table.wanted,
        max_batch=config.batch_size,
        requests=merged,
        splits=release.since(SPLITS_SINCE),
        gpu=first_gpu if kinds[:1] == ("KIND_GPU",) else None,
        notes=notes,
    )


def rehearsal_payload(rehearsal: Rehearsal) -> JsonObject:
    """JSON form of the plan, for the worker."""
    return {
        "inputs": [_wire(wire) for wire in rehearsal.inputs],
        "outputs": [_wire(wire) for wire in rehearsal.outputs],
        "max_batch": rehearsal.max_batch,
        "requests": rehearsal.requests,
        "splits": rehearsal.splits,
        "gpu": rehearsal.gpu,
    }


def _wire(wire: ClientTensor) -> JsonObject:
    row, sent = wire.row, wire.intended.row
    dims: list[JsonValue] | None = None if row.dims is None else [dim.static for dim in row.dims]
    shape: list[JsonValue] = [*wire.shape]
    return {
        "name": wire.name,
        "path": sent.path if sent is not None else None,
        "sent_slot": sent.slot if sent is not None else None,
        "slot": row.slot,
        "dtype": wire.dtype,
        "shape": shape,
        "compiled": {"dtype": row.dtype, "dims": dims, "least": row.dims[0].min if row.dims else None},
    }


def _wires(
    tensors: Sequence[TensorConfig],
    rows: Sequence[NameRow],
    config: ModelConfig,
    sends: Mapping[str, str],
    release: Release,
) -> Iterator[ClientTensor]:
    types = data_types(release)
    taken = resolve(rows, [tensor.label for tensor in tensors])
    for at, (tensor, row) in enumerate(zip(tensors, taken, strict=True)):
        written = tensor.data_type.value if tensor.data_type is not None else "no data_type"
        if row is None:
            raise CannotRehearseError(f"the server finds no tensor for the name {tensor.label}")
        if written not in types:
            raise CannotRehearseError(f"{tensor.label} is {written}, which no tensor of the backend can be")
        yield ClientTensor(
            name=tensor.label,
            intended=_intended_tensor(at, tensors, rows, config.comments, sends),
            row=row,
            dtype=types[written],
            shape=tuple(size.value for size in tensor.shape),
            line=tensor.name_at.line,
        )


# Wording. Headlines of findings, by kind.
TITLES = {
    "swapped": "tensors are swapped in the server",
    "unseen": "names that refer to different tensors than they suggest",
    "merged": "responses contain rows of different requests",
    "retyped": "bytes of one type are read as a different type",
    "static-batch": "the batch that was compiled is not the one that is served",
    "sizes": "sizes that the code was not compiled for",
    "output-type": "an output of a different type from the config",
    "scalar": "an output that the server cannot send",
    "refused": "the server refuses requests like the sample",
    "fails": "every request like the sample fails",
    "crashes": "a request like the sample ends the server",
    "plain-fails": "the package also fails without a server",
}


def ending_words(outcome: Outcome) -> str:
    """Describe in a few words how a child ended."""
    if outcome.error is not None:
        lines = outcome.error.message.strip().splitlines()
        return f"{outcome.error.type}: {lines[0][:200] if lines else ''}"
    # Not at the top: the rules alone have no runs.
    from aotidoctor.model.run import Exited, OutOfMemory, Signalled, TimedOut

    match outcome.ending:
        case Signalled(name=name):
            return f"{name} in {outcome.stage}"
        case TimedOut(limit=limit):
            return f"no end within {limit:g} s in {outcome.stage}"
        case OutOfMemory(reason=reason):
            return f"killed for memory ({reason})"
        case Exited(code=code):
            return f"exit status {code} in the middle of {outcome.stage}"
        case other:
            return other.reason


def crossing_names(wires: Iterable[ClientTensor], verb: str) -> str:
    """Names that do not lead to the intended tensor, with both paths."""
    return ", ".join(f"{wire.name}, meant to be {intended_path(wire)}, {verb} {wire.row.path}" for wire in wires)


def intended_path(wire: ClientTensor) -> str:
    """The user's path of the intended tensor."""
    return wire.intended.row.path if wire.intended.row is not None else "nothing known"


def right_name(wire: ClientTensor) -> str:
    """Correct name for the intended tensor."""
    right = wire.intended.row
    return f'name: "{right.ordinal}" for {right.path}' if right is not None else f"{wire.name} elsewhere"


def answer_difference(answer: JsonObject, wire: ClientTensor) -> str:
    """Describe how an answer differs from the plain call's."""
    if answer.get("what") == "beyond":
        return f"{sizes_text(sizes(answer.get('shape')))} values that are not an output of the model"
    if answer.get("what") == "shape":
        shape, wanted = _pair(answer.get("shape"))
        return f"shape {shape} instead of {wanted}"
    if answer.get("what") == "dtype":
        return f"{wire.dtype} where the plain call returns a different type"
    far, numel = number(answer.get("far")), number(answer.get("numel"))
    largest = answer.get("max_abs_diff")
    off = largest if isinstance(largest, str) else f"{largest if isinstance(largest, int | float) else math.nan:.3g}"
    other = answer.get("same_as")
    known = f": they are output {other} of the plain call" if isinstance(other, int) else ""
    return f"wrong numbers in {wire.name} ({far} of {numel}, off by up to {off}){known}"


def answer_text(answer: JsonObject) -> str:
    """Summary of an answer for a table."""
    what = str(answer.get("what"))
    if what in ("values", "nan"):
        return f"{number(answer.get('far'))} of {number(answer.get('numel'))} values differ"
    if what == "shape":
        return f"shape {_pair(answer.get('shape'))[0]}"
    return f"{answer.get('dtype')} {sizes_text(sizes(answer.get('shape')))}" if "agrees" not in answer else what


def facts_of(answer: JsonObject) -> dict[str, FactValue]:
    """Facts of an answer."""
    names = ("request", "what", "far", "numel", "max_abs_diff", "same_as", "foreign", "bytes")
    return {name: value for name in names if isinstance(value := answer.get(name), str | int | float)}


def _pair(value: JsonValue) -> tuple[str, str]:
    both = as_list(value)
    return (sizes_text(sizes(both[0])), sizes_text(sizes(both[1]))) if len(both) == 2 else ("?", "?")


def sizes_text(sizes: Sequence[int]) -> str:
    """Format sizes as a config writes them."""
    return "[ " + ", ".join(map(str, sizes)) + " ]" if sizes else "[ ]"


def sizes(value: JsonValue) -> tuple[int, ...]:
    """Sizes from a JSON list; empty for anything else."""
    return tuple(int(size) for size in as_list(value) if isinstance(size, int))


def number(value: JsonValue) -> int:
    """A number from JSON, 0 for anything else."""
    return int(value) if isinstance(value, int | float) else 0


@record
class RuleReason:
    """A rule's explanation of a difference; ``rule`` is empty where no rule explains it."""

    kind: str
    words: str
    rule: str = ""
    remedy: str = ""
    wire: ClientTensor | None = None


@record
class DifferenceReasons:
    """Explanations of the differences in one rehearsal. ``result`` is the child's JSON."""

    plan: Rehearsal
    release: Release
    result: JsonObject

    @property
    def requests(self) -> int:
        """Number of merged requests: fewer than planned where a batch has no room for them."""
        return number(self.result.get("merged")) or self.plan.requests

    def merging(self, wire: ClientTensor, answer: JsonObject) -> Iterator[RuleReason]:
        """Requests that were merged and are not split again."""
        if self.requests == 1 or self.plan.splits:
            return
        words = ""
        if answer.get("what") == "beyond":
            words = (
                f"it gets {answer.get('bytes')} bytes from beyond the end of the buffer: heap, or other clients' data"
            )
        elif number(answer.get("foreign")):
            words = f"{number(answer.get('foreign'))} rows of it belong to a different client's request"
        if words:
            remedy = f"no dynamic_batching before Triton {SPLITS_SINCE}"
            yield RuleReason(rule="R34", kind="merged", words=words, remedy=remedy, wire=wire)

    def all(self, output: ClientTensor | None) -> Iterator[RuleReason]:
        """Differences between the intention and the server's behaviour, the likeliest cause first."""
        rule = "R26" if self.release.before(NAMES_SINCE) else "R27"
        if output is not None and output.crossed:
            yield RuleReason(
                rule=rule,
                kind="swapped",
                words=crossing_names([output], "answers with"),
                remedy=right_name(output),
                wire=output,
            )
        crossed = [wire for wire in self.plan.inputs if wire.crossed]
        if crossed:
            remedy = "; ".join(map(right_name, crossed))
            yield RuleReason(
                rule=rule, kind="swapped", words=crossing_names(crossed, "goes into"), remedy=remedy, wire=crossed[0]
            )
        for wire in self.plan.inputs:
            if wire.row.dtype is not None and wire.row.dtype != wire.dtype:
                words = f"{wire.name} is sent as {wire.dtype}, and its bytes are read as {wire.row.dtype}"
                words += self._beyond(wire)
                remedy = f"data_type: {wire.row.data_type or wire.row.dtype}"
                yield RuleReason(rule="R19", kind="retyped", words=words, remedy=remedy, wire=wire)
        yield from self._compiled_sizes()

    def _compiled_sizes(self) -> Iterator[RuleReason]:
        sent = {str(item.get("name")): sizes(item.get("shape")) for item in objects(self.result.get("sent"))}
        for wire in self.plan.inputs:
            shape = sent.get(wire.name, ())
            for at, dim in enumerate(wire.row.dims or ()):
                if dim.static is not None and at < len(shape) and shape[at] != dim.static:
                    batch = bool(self.plan.max_batch) and at == 0
                    words = f"{wire.name} has {shape[at]} in dim {at}, the code was compiled for {dim.static}"
                    words += self._beyond(wire)
                    remedy = "compile it with a dynamic batch" if batch else "dims as compiled"
                    kind, rule = ("static-batch", "R31") if batch else ("sizes", "R21")
                    yield RuleReason(rule=rule, kind=kind, words=words, remedy=remedy, wire=wire)

    def _beyond(self, wire: ClientTensor) -> str:
        for item in objects(self.result.get("padded")):
            if item.get("name") == wire.name:
                return f", {item.get('bytes')} of them beyond what was sent (zeros here; anything in a server)"
        return ""
