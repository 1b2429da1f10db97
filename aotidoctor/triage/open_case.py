"""Open a case: read package, host, inputs and reference from their paths, in the order of the stages.

Executes nothing from the package or the inputs file.
"""

from __future__ import annotations

import platform
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aotidoctor.model.artifact import PRECOMPILED_KINDS, ArtifactKind, ModelEntry, StorageContent
from aotidoctor.model.case import Case, Host, Options, file_of, user_function
from aotidoctor.model.errors import CannotExamineError, InputsError, LimitReachedError, UsageError
from aotidoctor.model.evidence import NotChecked, describe_failure, limit_not_checked, list_names, shorten
from aotidoctor.readers.host.host_facts import read_host
from aotidoctor.readers.package.blob import opened_blob, registered_source
from aotidoctor.readers.package.read_package import MAX_MODELS, read_artifact, read_damage, read_exported
from aotidoctor.readers.package.zip_archive import DEFAULT_CRC_LIMIT, NO_CRC_LIMIT
from aotidoctor.triage.missing_file import examining_file, no_such_file, refuse_missing_code, unreadable_file

if TYPE_CHECKING:
    from aotidoctor.model.artifact import Artifact, ExportedFacts, StampSeen
    from aotidoctor.model.contract import ConstantSpec, ModelContract
    from aotidoctor.model.inputs import Container, InputSet
    from aotidoctor.model.other_artifacts import ExecutorchFile, Precompiled, PteMethod
    from aotidoctor.model.record import JsonObject
    from aotidoctor.readers.package.blob import Blob

T = TypeVar("T")
HERE_NAME = "here"
MAX_SETUP_CHARS = 1 << 20


def open_case(
    path: str,
    inputs_path: str | None,
    options: Options,
    environ: Mapping[str, str],
    *,
    crc_limit: int = DEFAULT_CRC_LIMIT,
    on_contents: Callable[[Artifact], None] | None = None,
    live: InputSet | None = None,
) -> tuple[Case, list[NotChecked]]:
    """Read everything that can be read. ``on_contents`` gets the artifact before its checksums are compared.

    ``crc_limit`` is that of ``read_artifact``, without ``--verify-data``. ``live`` are inputs that are described
    already, in place of a file's.

    A reader that fails by a fault of its own costs only what it would have read, and becomes a ``NotChecked``.

    Raises:
        CannotExamineError: the setup file or a library of operators is not there.
    """
    refuse_missing_code(options)
    failed: list[NotChecked] = []
    limit = NO_CRC_LIMIT if options.verify_data else crc_limit
    artifact, model, contract = open_package(path, options.model_name, failed, crc_limit=limit, on_contents=on_contents)
    host = _read_guarded("host", partial(host_of, options, artifact, environ), _bare_host(options.host), failed)
    reference = _read_guarded("reference", partial(read_reference, options.reference), None, failed)
    none: Mapping[str, str] = {}
    merged = _read_guarded("reference", partial(read_merged, options.reference, reference), none, failed)
    stamp = _read_guarded("stamp", partial(stamp_of, artifact, model, contract), None, failed)
    contract = _read_guarded("stamp", partial(with_stamp, contract, reference, stamp), contract, failed)
    contract = _read_guarded("reference", partial(with_reference, contract, reference), contract, failed)
    weights, next_weights = (
        _read_guarded("weights", partial(_saved_weights, saved), None, failed)
        for saved in (options.weights, options.next_weights)
    )
    case = Case(
        artifact=artifact,
        host=host,
        options=options,
        model=model,
        contract=contract,
        inputs_path=inputs_path,
        setup_loads=setup_loads(options.setup),
        weights=weights,
        next_weights=next_weights,
        reference=reference,
        merged=merged,
        stamp=stamp,
    )
    return _read_guarded("inputs", partial(with_inputs, case, live), case, failed), failed


def _saved_weights(path: str | None) -> tuple[ConstantSpec, ...] | None:
    if path is None:
        return None
    from aotidoctor.readers.inputs.saved_weights import read_weights

    return read_weights(path)


def stamp_of(artifact: Artifact, model: ModelEntry | None, contract: ModelContract | None) -> StampSeen | None:
    """Stamp of the package's origin; None where it carries none."""
    if model is None or all(one.stamp is None for one in model.metadata):
        return None
    from aotidoctor.readers.package.constants import read_stamp

    return read_stamp(artifact, model, contract)


def with_stamp(
    contract: ModelContract | None, reference: ExportedFacts | None, seen: StampSeen | None
) -> ModelContract | None:
    """Complete the contract from the package's stamp; a reference has priority for the inputs."""
    if contract is None or seen is None or seen.stamp is None:
        return contract
    needs = contract.needs
    contract = replace(contract, needs=replace(needs, torch_version=needs.torch_version or seen.stamp.torch))
    return with_reference(contract, seen.stamp.facts) if reference is None else contract


def with_reference(contract: ModelContract | None, reference: ExportedFacts | None) -> ModelContract | None:
    """Complete what the package leaves open of its inputs from the program that it was made of."""
    if contract is None or reference is None:
        return contract
    from aotidoctor.readers.provenance.compare_program import complete_contract

    return complete_contract(contract, reference)


def with_library_texts(case: Case, failed: list[NotChecked]) -> Case:
    """Complete the case from the texts of a bare library, which is not loaded."""
    if case.contract is not None or case.artifact.kind is not ArtifactKind.BARE_SO:
        return case
    from aotidoctor.readers.contract.sourceless_contract import library_contract
    from aotidoctor.readers.package.blob import path_blob
    from aotidoctor.readers.package.shared_object import read_texts

    texts = read_texts(path_blob(case.artifact.path, case.artifact.size))
    found = _read_guarded("contract", partial(library_contract, texts, "model"), None, failed)
    known = replace(case, contract=with_reference(found, case.reference))
    return case if found is None else with_inputs(known, case.inputs if case.inputs_path is None else None)


EXECUTORCH_KINDS = (ArtifactKind.EXECUTORCH_PROGRAM, ArtifactKind.EXECUTORCH_DATA)


def with_executorch(case: Case, failed: list[NotChecked]) -> Case:
    """Add what an ExecuTorch file holds, the contract of its method, and its data files.

    What is not examined of them goes to ``failed``.
    """
    if case.artifact.kind not in EXECUTORCH_KINDS:
        return case
    verify, name = case.options.verify_data, case.options.model_name
    read = _read_guarded("executorch", partial(_executorch_file, case.artifact.path, name, verify), None, failed)
    if read is None:
        return case
    found, contract = read
    data = [
        _read_guarded("data", partial(_executorch_file, path, None, verify), None, failed) for path in case.options.data
    ]
    models = tuple(_method_entry(found, method) for method in found.methods[:MAX_MODELS])
    unnamed = contract is None or contract.args is None
    if unnamed and found.methods and (case.inputs_path is not None or case.inputs is not None):
        names = list_names([shorten(method.name, 60) for method in found.methods])
        reason = f"inputs are compared with the method that --model-name names: one of {names}"
        failed.append(NotChecked(code="AD-PTE-IN", name="executorch_inputs", reason=reason))
    case = replace(
        case,
        artifact=replace(case.artifact, executorch=found, models=models),
        model=next((one for one in models if contract is not None and one.name == contract.model_name), None),
        contract=contract,
        data=tuple(item[0] for item in data if item is not None),
    )
    return with_inputs(case, case.inputs if case.inputs_path is None else None)


def with_precompiled(case: Case, failed: list[NotChecked]) -> Case:
    """Add what an artifact of torch.compile holds, and the contract of a call of it; nothing is unpickled."""
    if case.artifact.kind not in PRECOMPILED_KINDS:
        return case
    from aotidoctor.readers.inputs.compiled_function import function_contract, sort_functions

    found = _read_guarded("precompiled", partial(_precompiled, case), None, failed)
    if found is None:
        return case
    # A function takes an argument by position or by name: the inputs tell in which way it is called.
    found = sort_functions(found, case.inputs)
    case = replace(case, artifact=replace(case.artifact, precompiled=found))
    if found.function is None:
        return case
    contract = _read_guarded("contract", partial(function_contract, found.function, case.inputs), None, failed)
    return replace(case, contract=contract)


def _precompiled(case: Case) -> Precompiled:
    from aotidoctor.readers.inputs.precompiled import read_precompiled

    path, verify = case.artifact.path, case.options.verify_data
    if (remote := registered_source(path)) is not None:
        return read_precompiled(case.artifact, StorageContent(remote.size, remote.read_at), verify=verify)
    if Path(path).is_dir():
        return read_precompiled(case.artifact, None)
    with examining_file(path), opened_blob(path) as (blob, _):
        return read_precompiled(case.artifact, StorageContent(blob.size, blob.read_at), verify=verify)


def _method_entry(program: ExecutorchFile, method: PteMethod) -> ModelEntry:
    codes = tuple(blob.code for blob in program.code_of(method) if blob.code is not None)
    targets = dict.fromkeys(target for code in codes for target in code.gpu_targets)
    return ModelEntry(
        name=method.name, layout="executorch", members=(), shared_objects=codes, gpu_targets=tuple(targets)
    )


def _executorch_file(path: str, method: str | None, verify: bool) -> tuple[ExecutorchFile, ModelContract | None]:

    if (remote := registered_source(path)) is not None:
        return _executorch_content(path, remote, method, verify)
    with examining_file(path), opened_blob(path) as (blob, mode):
        if not stat.S_ISREG(mode):
            raise CannotExamineError(f"{path}: not a regular file")
        return _executorch_content(path, blob, method, verify)


def _executorch_content(
    path: str, content: Blob, name: str | None, verify: bool
) -> tuple[ExecutorchFile, ModelContract | None]:
    """The file, and the contract of its method ``name``, without a call spec where it might be another one."""
    from aotidoctor.readers.contract.sourceless_contract import library_contract
    from aotidoctor.readers.executorch.method_contract import method_contract
    from aotidoctor.readers.executorch.read_executorch import blob_of, read_executorch
    from aotidoctor.readers.package.shared_object import read_texts

    found = read_executorch(path, content, verify=verify)
    named = found.method(name)
    method = named or next((one for one in found.methods if name is None and found.code_of(one)), None)
    if method is None:
        return found, None
    blobs = found.code_of(method)
    code = library_contract(read_texts(blob_of(content, blobs[0])), method.name) if len(blobs) == 1 else None
    targets = [target for blob in blobs if blob.code is not None for target in blob.code.gpu_targets]
    contract = method_contract(found, method, code, targets)
    return found, contract if named is not None else replace(contract, args=None, kwargs=None)


def open_package(
    path: str,
    model_name: str | None,
    failed: list[NotChecked],
    *,
    crc_limit: int = DEFAULT_CRC_LIMIT,
    on_contents: Callable[[Artifact], None] | None = None,
) -> tuple[Artifact, ModelEntry | None, ModelContract | None]:
    """Read the file alone: artifact, the model that would be loaded, its contract. Failures go to ``failed``."""
    artifact = read_artifact(path, crc_limit=crc_limit, on_contents=on_contents)
    model = select_model(artifact, model_name)
    if model is None:
        return artifact, None, None
    # Not at the top, here and below: a command pays for what its case needs.
    from aotidoctor.readers.contract.read_contract import read_contract

    return artifact, model, _read_guarded("contract", partial(read_contract, artifact, model), None, failed)


def _read_guarded(name: str, read: Callable[[], T], otherwise: T, failed: list[NotChecked]) -> T:
    try:
        return read()
    except LimitReachedError as reached:
        failed.append(limit_not_checked(f"read_{name}", reached))
    except UsageError:
        raise
    except CannotExamineError as error:
        failed.append(NotChecked(code=f"AD-READ-{name.upper()}", name=f"read_{name}", reason=str(error)))
    except Exception:  # noqa: BLE001 - the guard around readers: the rest of the case is still worth examining
        failed.append(NotChecked(code=f"AD-READ-{name.upper()}", name=f"read_{name}", reason=describe_failure()))
    return otherwise


def host_of(options: Options, artifact: Artifact | None, environ: Mapping[str, str]) -> Host:
    """Host to examine for: this machine, or that of a profile, with its torch or another one.

    Raises:
        UsageError: there is no such profile or release.
        CannotExamineError: the profile cannot be read.
    """
    if options.host in (None, HERE_NAME) and options.torch is None:
        return read_host(artifact=artifact, environ=environ)
    from aotidoctor.readers.host import profiles

    here = options.host in (None, HERE_NAME)
    host = read_host(artifact=None, environ=environ, survey=True) if here else profiles.read_profile(options.host or "")
    if options.torch is not None:
        host = profiles.with_torch(host, options.torch)
    return host if artifact is None else profiles.for_artifact(host, artifact)


def _bare_host(profile: str | None) -> Host:
    """Substitute for a host that could not be read; nothing is known of a profile's machine."""
    unstated = frozenset(item.name for item in fields(Host)) if profile is not None else frozenset[str]()
    return Host(
        system=platform.system(),
        machine=platform.machine(),
        python=platform.python_version(),
        profile=profile,
        unstated=unstated,
    )


def select_model(artifact: Artifact, name: str | None) -> ModelEntry | None:
    """The entry called ``name`` (default ``model``), else the only one there is, else None.

    PyTorch's loader would not take the only one under another name; the ``model_name`` check reports that, and the
    rest of the package is examined all the same.
    """
    found = artifact.model(name or "model")
    if found is None and len(artifact.models) == 1:
        return artifact.models[0]
    return found


def read_reference(path: str | None) -> ExportedFacts | None:
    """Static facts of an exported program; None for a ``module.py:function`` reference or an unreadable file."""
    if path is None or user_function(path) is not None:
        return None
    facts = read_exported(path)
    return facts[0] if facts else None


def read_merged(path: str | None, reference: ExportedFacts | None) -> Mapping[str, str]:
    """Inputs of the exported program that another one stands in for."""
    if path is None or reference is None:
        return {}
    from aotidoctor.readers.inputs.read_inputs import read_examples
    from aotidoctor.readers.package.constants import read_program_archive
    from aotidoctor.readers.package.exported_program import merged_inputs

    archive = read_program_archive(path)
    return {} if isinstance(archive, str) else merged_inputs(archive, read_examples)


def setup_loads(setup: str | None) -> bool | None:
    """Whether a setup file may load weights after the model, by its text: nothing of it is executed here."""
    text = _setup_text(setup)
    return None if text is None else "after_load" in text


def defines_operators(setup: str | None) -> bool:
    """Whether a setup file defines operators in Python, by its text: the first call of one imports torch._dynamo."""
    text = _setup_text(setup) or ""
    return "custom_op(" in text or "triton_op(" in text


def _setup_text(setup: str | None) -> str | None:
    if setup is None or not setup.endswith(".py"):
        return None
    try:
        with Path(setup).open(encoding="utf-8", errors="replace") as file:
            return file.read(MAX_SETUP_CHARS)
    except (OSError, ValueError):
        return None


def reference_problem(reference: str | None) -> str | None:
    """Text for a ``--reference`` that is not there or may not be read; of ``module.py:function``, the module's file."""
    return None if reference is None else unreadable_file(file_of(reference), "--reference")


def check_reference(reference: str | None) -> None:
    """Raise CannotExamineError where the file is missing, or damaged in a way that PyTorch would not notice."""
    if (problem := reference_problem(reference)) is not None:
        raise CannotExamineError(problem)
    if damage := read_damage(reference or ""):
        raise CannotExamineError(f"{reference} {damage}")


def refuse_damaged(artifact: Artifact, *, executed: bool = True) -> None:
    """Raise CannotExamineError for a package that is not there and, if it is to be ``executed``, a damaged one."""
    if artifact.kind is ArtifactKind.MISSING:
        raise CannotExamineError(no_such_file(artifact.path))
    if executed and (artifact.names_unsafe or artifact.bad_crc):
        why = artifact.problem or "it is damaged or names files outside its folder, so it is not executed"
        raise CannotExamineError(f"{artifact.path}: {why}")


def require_contract(case: Case, unread: Sequence[NotChecked], advice: str) -> ModelContract:
    """The contract, whole and with one reading; ``advice`` says what else would decide between several.

    Raises CannotExamineError.
    """
    path, contract = case.artifact.path, case.contract
    if contract is None:
        reason = case.artifact.problem or next((item.reason for item in unread), "no wrapper.cpp of a model in it")
        raise CannotExamineError(f"{path}: it does not contain a contract: {reason}")
    if contract.args is None or contract.kwargs is None:
        raise CannotExamineError(f"{path}: it does not contain a call spec")
    if contract.readings:
        raise CannotExamineError(f"{path}: {contract.open_leaves}; {advice}")
    return contract


def with_inputs(case: Case, live: InputSet | None = None) -> Case:
    """Add the inputs to the case: ``live`` ones, read from the file, generated, or none."""
    inputs = live
    error: InputsError | None = None
    generated: JsonObject | None = None
    contract = case.contract
    try:
        if case.inputs_path is not None or inputs is not None:
            from aotidoctor.readers.contract.sourceless_contract import resolve_leaves
            from aotidoctor.readers.inputs.read_inputs import read_inputs

            trust, trees = case.options.trust_pickle, expected_trees(contract)
            inputs = inputs or read_inputs(case.inputs_path or "", trust_pickle=trust, expected=trees)
            contract = None if contract is None else resolve_leaves(contract, inputs)
        elif case.options.generate and case.contract is not None:
            from aotidoctor.readers.inputs.live_and_generated import generate_inputs

            inputs, generated = generate_inputs(case.contract, seed=case.options.seed)
    except InputsError as raised:
        error = raised
    return replace(case, contract=contract, inputs=inputs, inputs_error=error, generated=generated)


def expected_trees(contract: ModelContract | None) -> tuple[Container[int], Container[int]] | None:
    """Trees of the call spec, which decide how an ambiguous inputs file is read."""
    if contract is None or contract.args is None or contract.kwargs is None:
        return None
    return contract.args, contract.kwargs
