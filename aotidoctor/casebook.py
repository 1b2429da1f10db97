"""From paths to a ``Case``: the stages that read, in order. Executes nothing from the package or the inputs file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from aotidoctor.artifact import read_artifact, read_exported
from aotidoctor.contract import read_contract
from aotidoctor.host import read_host
from aotidoctor.inputs import generate_inputs, read_inputs
from aotidoctor.model.artifact import Artifact, ExportedFacts, ModelEntry
from aotidoctor.model.case import Case, Options
from aotidoctor.model.contract import Contract
from aotidoctor.model.errors import InputsError
from aotidoctor.model.inputs import InputSet
from aotidoctor.model.run import JsonObject
from aotidoctor.model.tree import Container


def open_case(
    path: str,
    inputs_path: str | None,
    options: Options,
    environ: Mapping[str, str],
    *,
    on_artifact: Callable[[Artifact], None] | None = None,
) -> Case:
    """Read everything that can be read. ``on_artifact`` is told of the artifact as soon as it is known."""
    artifact = read_artifact(path)
    if on_artifact is not None:
        on_artifact(artifact)
    model = select_model(artifact, options.model_name)
    contract = read_contract(artifact, model) if model is not None else None
    case = Case(
        artifact=artifact,
        host=read_host(artifact=artifact, environ=environ),
        options=options,
        model=model,
        contract=contract,
        inputs_path=inputs_path,
        reference=read_reference(options.reference),
    )
    return with_inputs(case)


def select_model(artifact: Artifact, name: str | None) -> ModelEntry | None:
    """The entry called ``name`` (``model`` when None is given), else the only one there is, else None.

    PyTorch's loader would not take the only one under another name; the ``model_name`` check says so, and the rest of
    the package is examined all the same.
    """
    found = artifact.model(name or "model")
    if found is None and len(artifact.models) == 1:
        return artifact.models[0]
    return found


def read_reference(path: str | None) -> ExportedFacts | None:
    """The static facts of an exported program; None for a ``module.py:function`` reference or an unreadable file."""
    if path is None or ".py:" in path:
        return None
    facts = read_exported(path)
    return facts[0] if facts else None


def with_inputs(case: Case) -> Case:
    """The case with its inputs: read from the file, generated, or none."""
    inputs: InputSet | None = None
    error: InputsError | None = None
    generated: JsonObject | None = None
    try:
        if case.inputs_path is not None:
            inputs = _read(case.inputs_path, case)
        elif case.options.generate and case.contract is not None:
            inputs, generated = generate_inputs(case.contract, seed=case.options.seed)
    except InputsError as raised:
        error = raised
    return replace(case, inputs=inputs, inputs_error=error, generated=generated)


def _read(path: str, case: Case) -> InputSet:
    return read_inputs(path, trust_pickle=case.options.trust_pickle, expected=expected_trees(case.contract))


def expected_trees(contract: Contract | None) -> tuple[Container[int], Container[int]] | None:
    """The call spec's trees, which decide how an ambiguous inputs file is meant."""
    if contract is None or contract.args is None or contract.kwargs is None:
        return None
    return contract.args, contract.kwargs
