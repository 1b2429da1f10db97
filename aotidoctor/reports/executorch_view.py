"""Show what an ExecuTorch program or data file holds, on one line and as rows."""

from __future__ import annotations

from aotidoctor.model.evidence import list_names, plural, shorten
from aotidoctor.model.executorch import Delegate, ExecutorchFile, PlanTensor, PteMethod
from aotidoctor.reports.text import one_line

_METHODS_SUMMED = 3


def executorch_summary(found: ExecutorchFile) -> str:
    """Methods with their tensors and backends, or the keys of a data file, on one line."""
    if not found.program:
        keys = list_names([shorten(one_line(blob.key), 24) for blob in found.named], 3)
        return f"ExecuTorch data: {plural(len(found.named), 'key')}{f' ({keys})' if keys else ''}"
    methods = [one_line(method_text(method), 300) for method in found.methods]
    backends = list_names([one_line(name, 100) for name in dict.fromkeys(item.backend for item in found.delegates)])
    data = f"; needs {plural(len(found.needed_data), 'key')} of a .ptd" if found.needed_data else ""
    listed = list_names(methods, _METHODS_SUMMED)
    count = plural(len(methods), "method")
    return f"ExecuTorch program: {count}{f': {listed}' if listed else ''}; {backends or 'no backend'}{data}"


def method_text(method: PteMethod) -> str:
    """``forward(at most float32[64, 32]) -> at most float32[64, 8]``."""
    inputs, outputs = (", ".join(map(_plan_text, values[:16])) for values in (method.inputs, method.outputs))
    return f"{method.name}({inputs}) -> {outputs or 'nothing'}"


def _plan_text(value: PlanTensor | str) -> str:
    """A tensor of a plan. Of a dynamic one the file has upper bounds, and not which of its sizes may change."""
    if isinstance(value, str):
        return value
    order = value.dim_order
    layout = f" order {','.join(map(str, order))}" if order != tuple(range(len(order))) else ""
    bound = "" if not value.dynamic else "any size of " if value.unbounded else "at most "
    return f"{bound}{value.dtype}[{', '.join(map(str, value.shape))}]{layout}"


def executorch_rows(found: ExecutorchFile) -> tuple[tuple[str, str], ...]:
    """All of an ExecuTorch file, as labelled lines."""
    rows = [("identifier", f"{found.identifier}, version {found.version}"), ("segments", str(found.n_segments))]
    for method in found.methods:
        rows.append(("method", method_text(method)))
        rows += [("  delegate", _delegate_text(delegate)) for delegate in method.delegates]
        if method.operators:
            rows.append(("  operators", list_names(method.operators, 8)))
    for blob in found.named:
        # A blob whose sha256 is another is a finding.
        proof = ", sha256 as in the key" if blob.promised is not None and blob.sha256 == blob.promised else ""
        code = (blob.code.format, blob.code.machine) if blob.code is not None else ()
        words = (_plan_text(blob.tensor) if blob.tensor is not None else "", *code)
        what = "".join(f", {word}" for word in words if word)
        rows.append(("data", f"{blob.key}: {blob.size:,} bytes{what}{proof}"))
    rows += [("needs from a .ptd", key) for key in found.needed_data]
    return tuple(rows)


def _delegate_text(delegate: Delegate) -> str:
    specs = (f"{key}={value}" for key, value in delegate.compile_specs.items())
    keys = (f"{label} {key}" for label, key in (("code", delegate.code_key), ("weights", delegate.weights_key)) if key)
    return "; ".join(word for word in (delegate.backend, ", ".join(specs), *keys, delegate.problem) if word)
