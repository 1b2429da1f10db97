"""Job ``emulate``: carry a CUDA package out on the CPU, and tell every access that a GPU would not have survived.

Stages: ``setup``, ``inputs``, ``load`` (wrapper, constants, kernels), ``run1``, ``reference``, ``done``. The result has
``outputs`` as the job ``run`` has them, and ``emulation``: findings, what was not carried out, and the launches.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.contract import Contract
from aotidoctor.model.jobs import Run
from aotidoctor.readers.contract import read_contract
from aotidoctor.readers.package import read_artifact, read_package_constants
from aotidoctor.worker.call import Call, read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.emulation.lanes.libdevice import Libdevice
from aotidoctor.worker.emulation.passes import Job, passes
from aotidoctor.worker.setup_module import load_setup
from aotidoctor.worker.treatments import treat
from aotidoctor.worker.values.observe import candidates_of


def emulate(payload: Run, channel: Channel) -> dict[str, Any]:
    """Do it."""
    payload, applied = treat.prepare(payload, channel)
    load_setup(payload, channel)
    channel.enter("inputs")
    call = read_call(payload.inputs, channel)
    call = treat.apply(payload.treatment, call, applied)
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
        _install()
    except ImportError as error:
        channel.put(emulation={"problem": f"Triton is not installed here ({error})", "install": True})
        return {}
    stored = read_package_constants(artifact, model, contract.constants, contract.weights)
    _run(payload, channel, model, contract, stored, call)
    return {}


def _install() -> None:
    import triton  # noqa: F401

    from aotidoctor.worker.emulation.lanes.interpreter import install

    install(Libdevice())


def _run(  # noqa: PLR0917
    payload: Run,
    channel: Channel,
    model: ModelEntry,
    contract: Contract,
    stored: Mapping[str, Any],
    call: Call,
) -> None:
    """In full where that is quickly done or asked for; what is large is looked at by the quick way first."""
    job = Job(
        payload=payload, channel=channel, model=model, contract=contract, stored=stored, call=call,
        limit=payload.emulate_seconds,
    )  # fmt: skip
    if payload.watch is not None and payload.watch.reference:
        job = replace(job, candidates=candidates_of(payload, call, channel)[0])
    channel.enter("run1")
    done = passes(job, asked=bool(payload.reference or payload.keep_outputs))
    channel.put(emulation=done.result(), outputs=[_describe_all(done.outputs)])
    if payload.reference and all(tensor is not None for _, tensor in done.outputs):
        _compare(payload, call, dict(done.outputs), channel)
    if payload.keep_outputs:
        _save(channel.user_cwd / payload.keep_outputs, done.outputs)


class _NoModel:
    """Stands for a loaded package: its weights were not read the way a loaded one's are."""

    def __getattr__(self, name: str) -> Any:
        """Nothing of it is there."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise LookupError("the package was emulated, not loaded")


def _compare(payload: Run, call: Call, outputs: dict[str, Any], channel: Channel) -> None:
    """Hold the outputs against the reference's, arranged as it arranges its own."""
    from aotidoctor.worker import reference
    from aotidoctor.worker.leaves import rebuild_result

    channel.enter("reference")
    ours: Any = None
    with suppress(Exception):
        reference.share_reference(payload.reference or "", channel)
        program = reference.load_reference(payload.reference or "", channel)
        theirs = reference.attempt(program, call.copy() or call)[1]
        ours = rebuild_result(theirs, outputs.get) if theirs is not None else None
    # What failed fails again, and is told.
    model: Any = _NoModel()
    channel.put(**reference.check_reference(payload, model, call, (None, ours), channel))


def _describe_all(outputs: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    from aotidoctor.worker.describe import describe, digest

    return [
        {**describe(path, tensor, values=True), "sha256": digest(tensor)}
        for path, tensor in outputs
        if tensor is not None
    ]


def _save(path: Path, outputs: list[tuple[str, Any]]) -> None:
    import torch

    torch.save({path: None if tensor is None else tensor.clone() for path, tensor in outputs}, path)
