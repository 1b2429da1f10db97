"""The wrapper replayed: once or twice, by the quick way or with every value, as size and time ask for."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.contract import ConstantSpec, Contract
from aotidoctor.model.jobs import Run
from aotidoctor.model.record import record
from aotidoctor.readers.contract.statements import statements
from aotidoctor.readers.contract.text import find_sections
from aotidoctor.worker.call import Call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.emulation.engine import Engine, functions
from aotidoctor.worker.emulation.followed import Followed
from aotidoctor.worker.emulation.found import Found
from aotidoctor.worker.emulation.pending import Pending
from aotidoctor.worker.emulation.shims import call_operator
from aotidoctor.worker.emulation.storage import Tensor, empty, of_torch
from aotidoctor.worker.emulation.variables import Lost
from aotidoctor.worker.emulation.wrapper import Replay
from aotidoctor.worker.values.candidates import Candidates

# Bytes of inputs and constants from which on the addresses are looked at before anything is computed.
LARGE = 16 << 20
# What the full way takes for one lane of one access, about; and what share of the time it is given.
SECONDS_A_LANE = 6e-8
SHARE_OF_FULL = 0.75
_PIECE = 16 << 20
COMPUTED = "the values that are computed"
VALUES = "only addresses and masks were checked, because there are so many lanes: no numbers, no NaN, no outputs"


@dataclass(slots=True, kw_only=True)
class Pass:
    """The whole wrapper replayed once: what was found, the launches, the outputs."""

    found: Found
    engine: Engine
    outputs: list[tuple[str, Any]]

    @property
    def late(self) -> list[tuple[str, str]]:
        """What was left out, or broken off, for time, and why."""
        words = ("the time for the emulation", "did not end")
        return [(what, why) for what, why in self.found.not_emulated if any(one in why for one in words)]

    def result(self) -> dict[str, Any]:
        """As the probe reads it."""
        return {**self.found.result(), "launched": self.engine.number, "in_full": self.engine.in_full}


@record
class Job:
    """What is to be emulated. ``limit`` is in seconds, for all passes together."""

    payload: Run
    channel: Channel
    model: ModelEntry
    contract: Contract
    stored: Mapping[str, Any]
    call: Call
    limit: float
    candidates: Candidates | None = None

    def replayed(self, seconds: float, *, quick: bool) -> Pass:
        """One pass; ``quick``: only addresses and masks, with values where an address needs them."""
        found = Found()
        engine = Engine(
            functions=functions(self.model.wrapper_cpp or ""),
            found=found,
            channel=self.channel,
            seconds=seconds,
            deadline=time.monotonic() + seconds,
            named=frozenset(self.payload.emulate_kernels),
        )
        replay = Replay(
            inputs=[of_torch(path, tensor) for path, tensor in _ordered(self.contract, self.call)],
            constants=_constants(self.contract.constants, self.stored),
            found=found,
            launch=engine.launch,
            operator=call_operator,
            nodes=_nodes(str(self.channel.user_cwd / self.payload.package), self.model),
            pending=Pending() if quick else None,
            followed=None if quick or self.candidates is None else Followed(candidates=self.candidates),
        )
        wrapper = find_sections(self.model.wrapper_cpp or "")
        try:
            replay.run(_statements(wrapper.body.text, wrapper.body.line))
        finally:
            self.channel.put(emulation={**found.result(), "launched": engine.number})
        if replay.followed is not None:
            told = [(spec.path, replay.outputs.get(at)) for at, spec in enumerate(self.contract.outputs)]
            self.channel.put(watch=replay.followed.result(
                [(path, one) for path, one in told if isinstance(one, Tensor) and one.storage.known]
            ))  # fmt: skip
        outputs = _outputs(self.contract, replay, found)
        if replay.pending is not None:
            # They hold the replay and its weights, and it holds them: two passes would be twice the memory.
            replay.pending.steps.clear()
        return Pass(found=found, engine=engine, outputs=outputs)

    @property
    def size(self) -> int:
        """Bytes of inputs and constants."""
        inputs: int = sum(tensor.numel() * tensor.element_size() for _, tensor in self.call.tensors())
        constants: int = sum(one.content.size for one in self.stored.values() if one.content is not None)
        return inputs + constants


def passes(job: Job, *, asked: bool) -> Pass:
    """``asked``: values are wanted, and not addresses alone. A kernel that was named is looked at first."""
    way = job.payload.emulate_way
    ends = time.monotonic() + job.limit
    first = None
    named = bool(job.payload.emulate_kernels)
    if way == "quick" or (way == "auto" and (named or (job.size >= LARGE and not asked))):
        first = job.replayed(job.limit, quick=True)
        left = ends - time.monotonic()
        if way == "quick" or first.found.findings or first.engine.lanes * SECONDS_A_LANE > left / 2:
            return first
    share = SHARE_OF_FULL if first is None else 1.0
    full = job.replayed((ends - time.monotonic()) * share, quick=False)
    if not full.late or full.found.findings or way == "full":
        return full
    last = first or job.replayed(ends - time.monotonic(), quick=True)
    for what, why in full.late:
        last.found.skip(COMPUTED, f"{what[:80]}: {why}")
    return last


def _constants(specs: Sequence[ConstantSpec], stored: Mapping[str, Any]) -> list[Tensor | Lost]:
    """The constants in the order of the wrapper, each in an allocation of its own."""
    made: list[Tensor | Lost] = []
    for spec in specs:
        found = stored.get(spec.original_fqn)
        if spec.from_folded or found is None or found.content is None:
            why = "it is computed when the package is loaded" if spec.from_folded else None
            why = why or getattr(found, "problem", None) or "not in the package"
            made.append(Lost(f"the constant {spec.name}: {why}"))
        else:
            made.append(_constant(spec, found))
    return made


def _constant(spec: ConstantSpec, found: Any) -> Tensor | Lost:
    """Read piece by piece: a copy of the largest one would be felt."""
    import numpy as np

    made = empty(spec.name, spec.dtype or "float32", tuple(found.shape or ()), tuple(found.stride or ()))
    begins, storage = (found.offset or 0) * made.itemsize, made.storage
    if begins + storage.size > found.content.size:
        return Lost(f"the constant {spec.name}: its data are cut off")
    for at in range(0, storage.size, _PIECE):
        piece = found.content.read_at(begins + at, min(_PIECE, storage.size - at))
        storage.bytes[at : at + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
    storage.all_written()
    return made


def _nodes(package: str, model: ModelEntry) -> list[dict[str, Any]]:
    """The calls of the proxy executor, from the package's JSON; none where it cannot be read."""
    if model.extern_member is None:
        return []
    try:
        with zipfile.ZipFile(package) as archive:
            document = json.loads(archive.read(model.extern_member))
        return [entry["node"] for entry in document["nodes"]]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return []


def _statements(text: str, line: int) -> list[tuple[int, str]]:
    """Those behind the signature of ``run_impl``."""
    found = list(statements(text, line))
    start = next((at for at, (_, one) in enumerate(found) if one.endswith(") {")), -1)
    return found[start + 1 : -1] if found and found[-1][1].startswith("}") else found[start + 1 :]


def _ordered(contract: Contract, call: Call) -> list[tuple[str, Any]]:
    """The caller's tensors in the order of the compiled code's inputs, by their paths where these are known."""
    given = call.tensors()
    order = {leaf.path: leaf.input_index for leaf in contract.leaves if leaf.input_index is not None}
    if len(given) == len(order) and all(path in order for path, _ in given):
        return sorted(given, key=lambda pair: order[pair[0]] or 0)
    return given


def _outputs(contract: Contract, replay: Replay, found: Found) -> list[tuple[str, Any]]:
    """Outputs by path; one that could not be had is None."""
    made: list[tuple[str, Any]] = []
    for at, spec in enumerate(contract.outputs):
        value = replay.outputs.get(at)
        if isinstance(value, Tensor) and replay.pending is not None and replay.pending.is_left_out(value.storage):
            found.skip(COMPUTED, VALUES)
            made.append((spec.path, None))
            _tell_unwritten(value, spec.path, found)
            continue
        if not isinstance(value, Tensor) or not value.storage.known:
            why = value.why if isinstance(value, Lost) else "something that was not executed may have written to it"
            found.skip(spec.path, why)
            made.append((spec.path, None))
            continue
        _tell_unwritten(value, spec.path, found)
        made.append((spec.path, value.torch()))
    return made


def _tell_unwritten(value: Tensor, path: str, found: Found) -> None:
    count = value.has_unwritten()
    if count:
        found.add("uninitialized", buffer=value.name, output=path, count=count, launch=None, kernel=None,
                  allocation=value.storage.name)  # fmt: skip
