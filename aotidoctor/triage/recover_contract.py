"""No wrapper.cpp in the package: recover its contract by probing the loaded code in a child.

The package's own input checks are asked with stand-in tensors (on the meta device, so nothing can be read), one
complaint at a time, until dtype, dims, bounds, strides and device of each input are known. The kernels never run.
"""

from __future__ import annotations

from dataclasses import replace

from aotidoctor.model.artifact import RUNNABLE_KINDS
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes import succeeded
from aotidoctor.probes.payload import base_payload, device_of
from aotidoctor.readers.contract import recovered_contract
from aotidoctor.triage.open_case import completed, with_inputs
from aotidoctor.triage.session import Session

CODE, NAME = "AD-RUN-014", "recover_contract"


def recover_contract(session: Session) -> None:
    """Replace the case's missing contract by a recovered one, or say why there is none."""
    reason = _why_not(session)
    if reason is not None:
        session.leave_out(CODE, NAME, reason)
        return
    name = session.case.model.name if session.case.model is not None else "model"
    request = Request(
        probe=NAME,
        job="recover",
        payload=replace(base_payload(session.case), model_name=name),
        env={"AOTI_RUNTIME_CHECK_INPUTS": "1"},
        timeout=session.case.options.timeout,
        purpose="the contract from the package's own input checks",
    )
    outcome = session.run(request)
    if outcome is None or not succeeded(outcome):
        session.leave_out(CODE, NAME, session.refusal() if outcome is None else _failure(outcome))
        return
    contract = recovered_contract(name, outcome.result)
    session.case = with_inputs(replace(session.case, contract=completed(contract, session.case.reference)))


def _why_not(session: Session) -> str | None:
    case = session.case
    if case.artifact.kind not in RUNNABLE_KINDS or case.artifact.bad_crc or case.artifact.names_unsafe:
        return "the file is not executed"
    if case.model is None or not case.model.shared_objects:
        return "there is no shared object to probe"
    if case.host.torch is None:
        return "torch is not installed here"
    return "a CUDA package is not probed" if device_of(case) != "cpu" else None


def _failure(outcome: Outcome) -> str:
    if outcome.error is not None:
        return f"probing failed in {outcome.stage}: {outcome.error.type}: {outcome.error.message[:200]}"
    return f"the probing child ended in {outcome.stage}"
