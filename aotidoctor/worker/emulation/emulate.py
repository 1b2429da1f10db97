"""Emulate a CUDA package on the CPU and report every access that would fail on a GPU; job ``emulate``.

Stages: ``setup``, ``inputs``, ``load`` (wrapper, constants, kernels), ``run1``, ``reference``, ``done``. The result
has ``outputs`` as the job ``run`` has them, and ``emulation``: findings, what was not carried out, and the launches.

The wrapper is replayed once or twice, by the quick way or with every value, depending on size and time.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.contract import ConstantSpec, ModelContract
from aotidoctor.model.jobs import Run
from aotidoctor.model.record import record
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.contract.wrapper_statements import read_statements
from aotidoctor.readers.contract.wrapper_text import find_sections
from aotidoctor.readers.package.constants import read_constants
from aotidoctor.readers.package.read_package import read_artifact
from aotidoctor.worker import reference_program, run_reference
from aotidoctor.worker.call import ModelCall, read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.emulation.engine import EmulationEngine, kernel_functions
from aotidoctor.worker.emulation.interpreter import Libdevice, install_interpreter
from aotidoctor.worker.emulation.shims import call_operator
from aotidoctor.worker.emulation.storage import (
    EmulationFindings,
    FollowedCalls,
    PendingSteps,
    WrapperTensor,
    device_copy,
    empty_storage,
)
from aotidoctor.worker.emulation.wrapper import LostValue, Replay
from aotidoctor.worker.sandbox import confine_replay
from aotidoctor.worker.tensors import describe, digest, rebuild_result
from aotidoctor.worker.treatments import treat
from aotidoctor.worker.user_code import load_setup
from aotidoctor.worker.values.match_values import Candidates, reference_candidates

# The passes. Bytes of inputs and constants from which on the addresses are checked before anything is computed.
LARGE = 16 << 20
# About what the full way takes for one lane of one access, and its share of the time limit.
SECONDS_A_LANE = 6e-8
SHARE_OF_FULL = 0.75
_PIECE = 16 << 20
COMPUTED = "the values that are computed"
VALUES = "only addresses and masks were checked, because there are so many lanes: no numbers, no NaN, no outputs"


@dataclass(slots=True, kw_only=True)
class ReplayPass:
    """One replay of the whole wrapper: what was found, the launches, the outputs."""

    found: EmulationFindings
    engine: EmulationEngine
    outputs: list[tuple[str, Any]]

    @property
    def late(self) -> list[tuple[str, str]]:
        """What was left out or aborted for lack of time, and why."""
        words = ("the time for the emulation", "did not end")
        return [(what, why) for what, why in self.found.not_emulated if any(one in why for one in words)]

    def result(self) -> dict[str, Any]:
        """The result as the probe reads it."""
        return {**self.found.result(), "launched": self.engine.number, "in_full": self.engine.in_full}


@record
class EmulationJob:
    """One job: what to emulate. ``limit`` is in seconds, for all passes together."""

    payload: Run
    channel: Channel
    model: ModelEntry
    contract: ModelContract
    stored: Mapping[str, Any]
    call: ModelCall
    limit: float
    candidates: Candidates | None = None

    def replay(self, seconds: float, *, quick: bool) -> ReplayPass:
        """Run one pass; ``quick``: only addresses and masks, with values where an address needs them."""
        found = EmulationFindings()
        engine = EmulationEngine(
            functions=kernel_functions(self.model.wrapper_cpp or ""),
            found=found,
            channel=self.channel,
            seconds=seconds,
            deadline=time.monotonic() + seconds,
            named=frozenset(self.payload.emulate_kernels),
        )
        replay = Replay(
            inputs=[device_copy(path, tensor) for path, tensor in _order_tensors(self.contract, self.call)],
            constants=_constants(self.contract.constants, self.stored),
            found=found,
            launch=engine.launch,
            operator=call_operator,
            nodes=_nodes(str(self.channel.user_cwd / self.payload.package), self.model),
            pending=PendingSteps() if quick else None,
            followed=None if quick or self.candidates is None else FollowedCalls(candidates=self.candidates),
        )
        try:
            replay.run(read_statements(find_sections(self.model.wrapper_cpp or "").body))
        finally:
            self.channel.put(emulation={**found.result(), "launched": engine.number})
        if replay.followed is not None:
            made = [(spec.path, replay.outputs.get(at)) for at, spec in enumerate(self.contract.outputs)]
            known = [(path, one) for path, one in made if isinstance(one, WrapperTensor) and one.storage.known]
            self.channel.put(watch=replay.followed.result(known))
        outputs = _outputs(self.contract, replay, found)
        if replay.pending is not None:
            # The steps and the replay with its weights refer to each other: two passes would need twice the memory.
            replay.pending.steps.clear()
        return ReplayPass(found=found, engine=engine, outputs=outputs)

    @property
    def size(self) -> int:
        """Bytes of inputs and constants."""
        inputs: int = sum(tensor.numel() * tensor.element_size() for _, tensor in self.call.tensors())
        constants: int = sum(one.content.size for one in self.stored.values() if one.content is not None)
        return inputs + constants


def run_passes(job: EmulationJob, *, with_values: bool) -> ReplayPass:
    """Choose and run the passes. ``with_values``: the caller needs values. Named kernels are examined first."""
    way = job.payload.emulate_way
    ends = time.monotonic() + job.limit
    first = None
    named = bool(job.payload.emulate_kernels)
    if way == "quick" or (way == "auto" and (named or (job.size >= LARGE and not with_values))):
        first = job.replay(job.limit, quick=True)
        left = ends - time.monotonic()
        if way == "quick" or first.found.findings or first.engine.lanes * SECONDS_A_LANE > left / 2:
            return first
    share = SHARE_OF_FULL if first is None else 1.0
    full = job.replay((ends - time.monotonic()) * share, quick=False)
    if not full.late or full.found.findings or way == "full":
        return full
    last = first or job.replay(ends - time.monotonic(), quick=True)
    for what, why in full.late:
        last.found.skip(COMPUTED, f"{what[:80]}: {why}")
    return last


def _constants(specs: Sequence[ConstantSpec], stored: Mapping[str, Any]) -> list[WrapperTensor | LostValue]:
    """The constants in the order of the wrapper, each in an allocation of its own."""
    made: list[WrapperTensor | LostValue] = []
    for spec in specs:
        found = stored.get(spec.original_fqn)
        if spec.from_folded or found is None or found.content is None:
            why = "it is computed when the package is loaded" if spec.from_folded else None
            why = why or getattr(found, "problem", None) or "not in the package"
            made.append(LostValue(f"the constant {spec.name}: {why}"))
            continue
        one = empty_storage(spec.name, spec.dtype or "float32", tuple(found.shape or ()), tuple(found.stride or ()))
        begins, storage = (found.offset or 0) * one.itemsize, one.storage
        if begins + storage.size > found.content.size:
            made.append(LostValue(f"the constant {spec.name}: its data are cut off"))
            continue
        # Piece by piece: the largest constant is not to be in memory twice.
        for at in range(0, storage.size, _PIECE):
            piece = found.content.read_at(begins + at, min(_PIECE, storage.size - at))
            storage.bytes[at : at + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
        storage.all_written()
        made.append(one)
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


def _order_tensors(contract: ModelContract, call: ModelCall) -> list[tuple[str, Any]]:
    """The caller's tensors in the order of the compiled code's inputs, by their paths where these are known."""
    given = call.tensors()
    order = {leaf.path: leaf.input_index for leaf in contract.leaves if leaf.input_index is not None}
    if len(given) == len(order) and all(path in order for path, _ in given):
        return sorted(given, key=lambda pair: order[pair[0]] or 0)
    return given


def _outputs(contract: ModelContract, replay: Replay, found: EmulationFindings) -> list[tuple[str, Any]]:
    """Outputs by path; one that could not be computed is None."""
    made: list[tuple[str, Any]] = []
    for at, spec in enumerate(contract.outputs):
        value, pending = replay.outputs.get(at), replay.pending
        deferred = isinstance(value, WrapperTensor) and pending is not None and pending.is_left_out(value.storage)
        if not isinstance(value, WrapperTensor) or not (deferred or value.storage.known):
            why = "something that was not executed may have written to it"
            found.lose(spec.path, value.why if isinstance(value, LostValue) else why)
            made.append((spec.path, None))
            continue
        if deferred:
            found.skip(COMPUTED, VALUES)
        count = value.has_unwritten()
        if count:
            found.add("uninitialized", buffer=value.name, output=spec.path, count=count, launch=None, kernel=None,
                      allocation=value.storage.name)  # fmt: skip
        made.append((spec.path, None if deferred else value.torch()))
    return made


def emulate(payload: Run, channel: Channel) -> dict[str, Any]:
    """Read the package, its inputs and constants, replay its wrapper, and report each stage through the channel."""
    payload, applied = treat.prepare_payload(payload, channel)
    load_setup(payload, channel)
    channel.enter("inputs")
    call = read_call(payload.inputs, channel)
    call = treat.apply_steps(payload.treatment, call, applied)
    channel.put(applied=applied, inputs=call.describe(values=False))
    channel.enter("load")
    package = str(channel.user_cwd / payload.package)
    artifact = read_artifact(package, crc_limit=0)
    model = artifact.model(payload.model_name) or artifact.models[0]
    contract = read_contract(artifact, model)
    if contract is None or model.wrapper_cpp is None:
        channel.put(emulation={"problem": "the package has no wrapper.cpp that can be read"})
        return {}
    try:
        install_interpreter(Libdevice())
    except ImportError as error:
        channel.put(emulation={"problem": f"Triton is not installed here ({error})", "install": True})
        return {}
    stored = read_constants(artifact, model, contract.constants, contract.weights)
    job = EmulationJob(
        payload=payload, channel=channel, model=model, contract=contract, stored=stored, call=call,
        limit=payload.emulate_seconds,
    )  # fmt: skip
    _run(job)
    return {}


def _run(job: EmulationJob) -> None:
    """Run the passes; report the outputs, and how they differ from the reference's."""
    payload, channel, call = job.payload, job.channel, job.call
    if payload.watch is not None and payload.watch.reference:
        job = replace(job, candidates=reference_candidates(payload, call, channel)[0])
    # Opened before files cannot be opened any more.
    kept = (channel.user_cwd / payload.keep_outputs).open("wb") if payload.keep_outputs else None
    confine_replay(payload, channel)
    channel.enter("run1")
    done = run_passes(job, with_values=bool(payload.reference or payload.keep_outputs))
    described = [
        {**describe(path, tensor, values=True), "sha256": digest(tensor)}
        for path, tensor in done.outputs
        if tensor is not None
    ]
    channel.put(emulation=done.result(), outputs=[described])
    if payload.reference and all(tensor is not None for _, tensor in done.outputs):
        # Compare the outputs with the reference's, in the structure of the reference's result.
        channel.enter("reference")
        ours: Any = None
        with suppress(Exception):
            reference_program.share_reference(payload.reference or "", channel)
            program = reference_program.load_reference(payload.reference or "", channel)
            theirs = reference_program.call_reference(program, call.copy() or call)[1]
            ours = rebuild_result(theirs, dict(done.outputs).get) if theirs is not None else None
        # What failed here fails again there, and is reported.
        model: Any = _NoModel()
        channel.put(**run_reference.check_reference(payload, model, call, (None, ours), channel))
    if kept is not None:
        with kept:
            torch.save({path: None if tensor is None else tensor.clone() for path, tensor in done.outputs}, kept)


class _NoModel:
    """Replacement of a loaded package: the weights were not read the way a loaded package's are."""

    def __getattr__(self, name: str) -> Any:
        """Nothing of it is there."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise LookupError("the package was emulated, not loaded")
