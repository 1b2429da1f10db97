"""Contract, inputs and host as plain values for the JSON report. Long things are counted, not listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model.case import Case
from aotidoctor.model.contract import Contract, Dim, LeafSpec
from aotidoctor.model.host import Host
from aotidoctor.reports.json.artifact import NAMES_LISTED, picked, record

if TYPE_CHECKING:
    from aotidoctor.model.inputs import LeafValue
    from aotidoctor.model.serving_names import NameRow, NameTable

# A report of `run` or `check` shows this many constants and kernels; `inspect` shows all.
_LISTED = 50
_CONSTANT = "name original_fqn dtype shape stride device_type data_size kind from_folded"
_KERNEL = "name kind line origins source_nodes arguments grid warps shared device_code"


def contract(found: Contract | None, *, whole: bool) -> dict[str, object] | None:
    """What the compiled code expects; ``whole`` lists all constants and kernels."""
    if found is None:
        return None
    listed = None if whole else _LISTED
    return {
        **picked(found, "model_name source member n_inputs n_outputs n_constants"),
        "leaves": [_leaf(leaf) for leaf in found.leaves],
        **picked(found, "outputs symbols"),
        "constants": [picked(item, _CONSTANT) for item in found.constants[:listed]],
        "kernels": [picked(kernel, _KERNEL) for kernel in found.kernels[:listed]],
        "n_kernels": len(found.kernels),
        "bound_checks": found.bound_checks[:listed],
        **picked(found, "custom_ops needs weights"),
        "in_spec": found.in_spec if whole else None,
        "out_spec": found.out_spec if whole else None,
        **picked(found, "unknown_lines unread problems"),
    }


def _leaf(leaf: LeafSpec) -> dict[str, object]:
    return {
        **picked(leaf, "index path kind input_index generated_name triton_names dtype rank"),
        "dims": [_dim(dim) for dim in leaf.dims] if leaf.dims is not None else None,
        **picked(leaf, "strides device_type used source_line check_line"),
    }


def names(table: NameTable) -> dict[str, object]:
    """The tensors of a package under the names of a release of Triton."""
    return {
        **picked(table, "release servable"),
        "inputs": [_name_row(row) for row in table.inputs],
        "outputs": [_name_row(row) for row in table.outputs],
        "obstacles": table.obstacles,
    }


def _name_row(row: NameRow) -> dict[str, object]:
    return {**record(row), "dims": [_dim(dim) for dim in row.dims] if row.dims is not None else None}


def _dim(dim: Dim) -> dict[str, object]:
    return {**picked(dim, "static min max"), "expr": str(dim.expr) if dim.expr is not None else None}


def inputs(case: Case) -> dict[str, object] | None:
    """What was passed, or why it could not be read; None when no inputs were given."""
    error, found = case.inputs_error, case.inputs
    if error is not None:
        return {"path": case.inputs_path, "problem": str(error), "cause": error.cause, "leaves": []}
    if found is None:
        return None
    return {
        **picked(found, "path format form sha256 trusted globals notes"),
        "leaves": [{"path": path, **_value(value)} for path, value in found.leaves()],
        "problem": None,
        "cause": None,
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
        **picked(
            found,
            "system machine python cpu_model cpu_flags cores threads memory_available memory_total address_space_limit",
        ),
        **picked(found, "torch torch_problem gpus cuda_driver libraries"),
        "missing_symbols": found.missing_symbols[:NAMES_LISTED],
        "n_missing_symbols": len(found.missing_symbols),
        **picked(found, "symbols_checked symbols_problem glibc abi_versions executable_stack executable_stack_why"),
        **({"profile": found.profile, "unstated": found.unstated} if found.profile is not None else {}),
        **picked(found, "openmp_runtimes tmpdir tools environment in_container distribution platform packages"),
    }
