"""Contract, inputs and host as plain values for the JSON report. Long things are counted, not listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model.case import Case
from aotidoctor.model.contract import ConstantSpec, Contract, Dim, KernelCall, LeafSpec
from aotidoctor.model.host import Host
from aotidoctor.reports.json.artifact import NAMES_LISTED, record

if TYPE_CHECKING:
    from aotidoctor.model.inputs import InputSet, LeafValue
    from aotidoctor.model.serving_names import NameRow, NameTable

# A report of `run` or `check` shows this many constants and kernels; `inspect` shows all.
_LISTED = 50


def contract(found: Contract | None, *, whole: bool) -> dict[str, object] | None:
    """What the compiled code expects; ``whole`` lists all constants and kernels."""
    if found is None:
        return None
    listed = None if whole else _LISTED
    return {
        "model_name": found.model_name,
        "source": found.source,
        "member": found.member,
        "n_inputs": found.n_inputs,
        "n_outputs": found.n_outputs,
        "n_constants": found.n_constants,
        "leaves": [_leaf(leaf) for leaf in found.leaves],
        "outputs": [record(output) for output in found.outputs],
        "symbols": [record(symbol) for symbol in found.symbols],
        "constants": [_constant(constant) for constant in found.constants[:listed]],
        "kernels": [_kernel(kernel) for kernel in found.kernels[:listed]],
        "n_kernels": len(found.kernels),
        "bound_checks": [record(check) for check in found.bound_checks[:listed]],
        "custom_ops": found.custom_ops,
        "needs": record(found.needs),
        "weights": found.weights,
        "in_spec": found.in_spec if whole else None,
        "out_spec": found.out_spec if whole else None,
        "unknown_lines": found.unknown_lines,
        "unread": [record(item) for item in found.unread],
        "problems": found.problems,
    }


def _leaf(leaf: LeafSpec) -> dict[str, object]:
    return {
        "index": leaf.index,
        "path": leaf.path,
        "kind": leaf.kind,
        "input_index": leaf.input_index,
        "generated_name": leaf.generated_name,
        "triton_names": leaf.triton_names,
        "dtype": leaf.dtype,
        "rank": leaf.rank,
        "dims": [_dim(dim) for dim in leaf.dims] if leaf.dims is not None else None,
        "strides": leaf.strides,
        "device_type": leaf.device_type,
        "used": leaf.used,
        "source_line": leaf.source_line,
        "check_line": leaf.check_line,
    }


def names(table: NameTable) -> dict[str, object]:
    """The tensors of a package under the names of a release of Triton."""
    return {
        "release": table.release,
        "servable": table.servable,
        "inputs": [_name_row(row) for row in table.inputs],
        "outputs": [_name_row(row) for row in table.outputs],
        "obstacles": [record(item) for item in table.obstacles],
    }


def _name_row(row: NameRow) -> dict[str, object]:
    return {**record(row), "dims": [_dim(dim) for dim in row.dims] if row.dims is not None else None}


def _dim(dim: Dim) -> dict[str, object]:
    expr = str(dim.expr) if dim.expr is not None else None
    return {"static": dim.static, "min": dim.min, "max": dim.max, "expr": expr}


def _constant(constant: ConstantSpec) -> dict[str, object]:
    return {
        "name": constant.name,
        "original_fqn": constant.original_fqn,
        "dtype": constant.dtype,
        "shape": constant.shape,
        "stride": constant.stride,
        "device_type": constant.device_type,
        "data_size": constant.data_size,
        "kind": constant.kind,
        "from_folded": constant.from_folded,
    }


def _kernel(kernel: KernelCall) -> dict[str, object]:
    return {
        "name": kernel.name,
        "kind": kernel.kind,
        "line": kernel.line,
        "origins": kernel.origins,
        "source_nodes": kernel.source_nodes,
        "arguments": kernel.arguments,
        "grid": kernel.grid,
        "warps": kernel.warps,
        "shared": kernel.shared,
        "device_code": kernel.device_code,
    }


def inputs(case: Case) -> dict[str, object] | None:
    """What was passed, or why it could not be read; None when no inputs were given."""
    error, found = case.inputs_error, case.inputs
    if error is not None:
        return {"path": case.inputs_path, "problem": str(error), "cause": error.cause, "leaves": []}
    if found is None:
        return None
    return _input_set(found) | {"problem": None, "cause": None}


def _input_set(found: InputSet) -> dict[str, object]:
    return {
        "path": found.path,
        "format": found.format,
        "form": found.form,
        "sha256": found.sha256,
        "trusted": found.trusted,
        "globals": found.globals,
        "notes": found.notes,
        "leaves": [{"path": path, **_value(value)} for path, value in found.leaves()],
    }


def _value(value: LeafValue) -> dict[str, object]:
    from aotidoctor.model.inputs import PlainValue, TensorDesc  # noqa: PLC0415 - without inputs nobody has imported them

    match value:
        case PlainValue():
            return {"kind": "plain", **record(value)}
        case TensorDesc():
            return {"kind": "tensor", **{key: item for key, item in record(value).items() if key != "elements"}}


def host(found: Host) -> dict[str, object]:
    """What this machine offers."""
    return {
        "system": found.system,
        "machine": found.machine,
        "python": found.python,
        "cpu_model": found.cpu_model,
        "cpu_flags": found.cpu_flags,
        "cores": found.cores,
        "threads": found.threads,
        "memory_available": found.memory_available,
        "memory_total": found.memory_total,
        "address_space_limit": found.address_space_limit,
        "torch": record(found.torch) if found.torch is not None else None,
        "torch_problem": found.torch_problem,
        "gpus": [record(gpu) for gpu in found.gpus],
        "cuda_driver": found.cuda_driver,
        "libraries": found.libraries,
        "missing_symbols": [record(symbol) for symbol in found.missing_symbols[:NAMES_LISTED]],
        "n_missing_symbols": len(found.missing_symbols),
        "symbols_checked": found.symbols_checked,
        "symbols_problem": found.symbols_problem,
        "glibc": found.glibc,
        "abi_versions": found.abi_versions,
        "executable_stack": found.executable_stack,
        "executable_stack_why": found.executable_stack_why,
        **({"profile": found.profile, "unstated": found.unstated} if found.profile is not None else {}),
        "openmp_runtimes": found.openmp_runtimes,
        "tmpdir": record(found.tmpdir) if found.tmpdir is not None else None,
        "tools": found.tools,
        "environment": found.environment,
        "in_container": found.in_container,
        "distribution": found.distribution,
        "platform": found.platform,
        "packages": found.packages,
    }
