"""Build the payload of the worker's ``run`` job from the case, and read the tensors in the job's answer.

Every probe changes one thing against this base.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.answers import Called, ObservedTensor, parse_answer
from aotidoctor.model.case import Case, user_function
from aotidoctor.model.jobs import InputsSource, Run, StoredConstant, UserCode, change_fields
from aotidoctor.model.record import JsonObject
from aotidoctor.model.run import NotStarted, Outcome, Request


def device_of(case: Case) -> str:
    """The device type the package is loaded on: that of --device, else the one that it was compiled for."""
    if case.options.device:
        return case.options.device.partition(":")[0]
    compiled = case.needs.device_type
    if compiled is None and case.model is not None:
        compiled = next((meta.values.get("AOTI_DEVICE_KEY") for meta in case.model.metadata if meta.values), None)
    return compiled or "cpu"


def device_index_of(case: Case) -> int:
    """The index in ``--device cuda:1``, -1 if none was given."""
    index = (case.options.device or "").partition(":")[2]
    return int(index) if index.isdigit() else -1


def model_name_of(case: Case) -> str:
    """The name of the model: as given, else ``model``, the default of PyTorch's own loader."""
    return case.options.model_name or "model"


def user_code(case: Case) -> UserCode:
    """The code to load before the package or the program."""
    options = case.options
    return UserCode(
        setup=options.setup, custom_op_libraries=tuple(options.custom_op_libraries), imports=tuple(options.imports)
    )


def base_payload(case: Case) -> Run:
    """The payload of the plain run: the package, the inputs, nothing changed."""
    compiled = case.artifact.precompiled
    return Run(
        code=user_code(case),
        package=case.artifact.path,
        kind=case.artifact.kind.value,
        model_name=model_name_of(case),
        device=device_of(case),
        device_index=device_index_of(case),
        inputs=inputs_source(case),
        threads=case.options.threads,
        calls=2,
        weights=case.options.weights,
        confine=not _why_free(case),
        # Those that the guards of a compiled function want; None for the process's own.
        grad_mode=compiled.function.grad_mode if compiled is not None and compiled.function is not None else None,
    )


def _why_free(case: Case) -> str:
    """What may need anything, so that no run of the case is confined; empty where there is nothing of the kind."""
    functions = (case.options.reference, case.options.model)
    if user_code(case) != UserCode() or any(user_function(one or "") is not None for one in functions):
        return "code of your own is executed"
    if device_of(case) != "cpu":
        return "a GPU is used"
    if case.model is not None and case.model.cpp_only and not case.model.shared_objects:
        return "the package is compiled when it is loaded"
    if case.artifact.precompiled is not None:
        return "a precompiled artifact unpacks itself into compile caches"
    return ""


# Jobs that load a package, and what others do that may need anything.
_LOADING = ("run", "printed", "recover", "load_time", "op_inputs", "rehearse")
_FREE = {
    "reference": "the reference is called",
    "stage": "the model is called",
    "verify": "the exported program is loaded",
    "op_alone": "one operator is called",
    "hook": "code of your own is executed",
    "try_remedy": "the model is exported and compiled again",
    **dict.fromkeys(("cut", "recompile", "lowered_dtypes"), "the exported program is compiled"),
}
_WARNING = "not confined: "


def unconfined_runs(case: Case, runs: Sequence[Outcome]) -> str:
    """Which runs could do what this user may do, and why; empty where all that executed a package was confined."""
    reasons: dict[str, list[str]] = {}
    for outcome in runs:
        job = outcome.request.job
        reason = _FREE.get(job, "") or (_why_free(case) if job in _LOADING else "")
        by_child = next((text.removeprefix(_WARNING) for text in outcome.warnings if text.startswith(_WARNING)), "")
        if (reason or by_child) and not isinstance(outcome.ending, NotStarted):
            reasons.setdefault(by_child or reason, []).append(outcome.id)
    return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())


def stored_rows(case: Case) -> tuple[StoredConstant, ...] | None:
    """The layout of the constants in the library, in their order; None if they are elsewhere or it is unknown."""
    contract = case.contract
    if contract is None or contract.weights != "so":
        return None
    rows: list[StoredConstant] = []
    for one in contract.constants:
        if one.from_folded:
            continue
        if not one.strided or one.dtype is None or one.shape is None or one.stride is None or one.data_size is None:
            return None
        rows.append(
            StoredConstant(
                name=one.fqn,
                dtype=one.dtype,
                shape=one.shape,
                stride=one.stride,
                offset=one.offset or 0,
                size=one.data_size,
            )
        )
    return tuple(rows)


def inputs_source(case: Case) -> InputsSource | None:
    """The source of the tensors: the inputs file, or a generated document; None to load only."""
    if case.generated is not None:
        return InputsSource(document=case.generated)
    if case.inputs is None or case.inputs.path is None:
        return None
    return InputsSource(path=case.inputs.path, trusted=case.inputs.trusted, plan=case.inputs.plan)


def run_request(case: Case, probe: str, purpose: str, **changes: object) -> Request:
    """The base payload with ``changes``, fields of ``Run``, as a request of the job ``run`` with the user's limits."""
    return Request(
        probe=probe,
        job="run",
        payload=change_fields(base_payload(case), changes),
        fresh=device_of(case) != "cpu",
        timeout=case.options.timeout,
        memory_limit=case.options.memory_limit,
        purpose=purpose,
    )


def run_of(outcome: Outcome) -> Run:
    """The payload of a run of the package."""
    payload = outcome.request.payload
    return payload if isinstance(payload, Run) else Run()


# Tensors of the calls of a run.
def call_outputs(outcome: Outcome, call: int) -> tuple[ObservedTensor, ...]:
    """Outputs of call number ``call`` (from 0); empty when it was not made."""
    calls = called(outcome).outputs
    return calls[call] if 0 <= call < len(calls) else ()


def called(outcome: Outcome) -> Called:
    """What the child said about its calls: inputs, constants, outputs of each call and the resident set after each."""
    return parse_answer(Called, outcome.result)


def reference_comparison(outcome: Outcome) -> JsonObject:
    """The comparison with the reference; empty when there was none."""
    found = outcome.result.get("reference")
    return found if isinstance(found, dict) else {}


def same_outputs(a: Sequence[ObservedTensor], b: Sequence[ObservedTensor]) -> bool:
    """Whether both are the same in number, dtype, shape and bytes."""
    return [(v.dtype, v.shape, v.sha256) for v in a] == [(v.dtype, v.shape, v.sha256) for v in b]
