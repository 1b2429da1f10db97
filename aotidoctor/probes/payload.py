"""The payload of the worker's ``run`` job, from the case. Every probe changes one thing against this base."""

from __future__ import annotations

from aotidoctor.model.case import Case
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.run import Request

OBSERVE: list[JsonValue] = ["outputs", "mutation", "alias", "values"]


def device_of(case: Case) -> str:
    """The device type the package is loaded on: as asked for, else as it was compiled."""
    if case.options.device:
        return case.options.device.partition(":")[0]
    needs = case.contract.needs.device_type if case.contract is not None else None
    if needs is None and case.model is not None:
        needs = next((meta.values.get("AOTI_DEVICE_KEY") for meta in case.model.metadata if meta.values), None)
    return needs or "cpu"


def device_index_of(case: Case) -> int:
    """The index in ``--device cuda:1``, -1 where none was given."""
    index = (case.options.device or "").partition(":")[2]
    return int(index) if index.isdigit() else -1


def model_name_of(case: Case) -> str:
    """The name the loader is asked for: as given, else ``model`` as PyTorch's own loader does."""
    return case.options.model_name or "model"


def base_payload(case: Case) -> JsonObject:
    """What the plain run is: the package, the inputs, nothing changed."""
    return {
        "package": case.artifact.path,
        "kind": case.artifact.kind.value,
        "model_name": model_name_of(case),
        "device": device_of(case),
        "device_index": device_index_of(case),
        "inputs": inputs_payload(case),
        "setup": case.options.setup,
        "custom_op_libraries": list(case.options.custom_op_libraries),
        "threads": case.options.threads,
        "calls": 2,
        "weights": case.options.weights,
        "treatment": [],
        "observe": list(OBSERVE),
        "perturb": None,
        "reference": None,
        **({"imports": list(case.options.imports)} if case.options.imports else {}),
    }


def inputs_payload(case: Case) -> JsonObject | None:
    """How the worker gets the tensors: from the inputs file, or from a generated document; None to load only."""
    if case.generated is not None:
        return {"json": case.generated}
    if case.inputs is None or case.inputs.path is None:
        return None
    return {
        "path": case.inputs.path,
        "format": case.inputs.format,
        "form": case.inputs.form,
        "trusted": case.inputs.trusted,
        "plan": case.inputs.plan,
    }


def run_request(case: Case, probe: str, purpose: str, **changes: JsonValue) -> Request:
    """The base payload with ``changes``, as a request of the ``run`` job with the user's limits."""
    return Request(
        probe=probe,
        job="run",
        payload={**base_payload(case), **changes},
        fresh=device_of(case) != "cpu",
        timeout=case.options.timeout,
        memory_limit=case.options.memory_limit,
        purpose=purpose,
    )
