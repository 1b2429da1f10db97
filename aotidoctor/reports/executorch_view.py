"""Show what a file holds that is no package, on one line and as rows: of ExecuTorch, or of torch.compile."""

from __future__ import annotations

from aotidoctor.model.artifact import SharedObject
from aotidoctor.model.evidence import list_names, plural, shorten
from aotidoctor.model.other_artifacts import (
    FORMS,
    CompiledFunction,
    Delegate,
    ExecutorchFile,
    PlanTensor,
    Precompiled,
    PteMethod,
)
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
        if blob.code is not None:
            rows += [(f"  {label}", text) for label, text in code_rows(blob.code)]
    rows += [("needs from a .ptd", key) for key in found.needed_data]
    return tuple(rows)


def code_rows(item: SharedObject) -> tuple[tuple[str, str], ...]:
    """What is linked into a library beside its machine code, and what it leaves to the process that loads it."""
    kernels = plural(len(item.kernel_symbols), "kernel") if item.kernel_symbols else "code"
    functions = [ref.name for ref in item.undefined if ref.name.startswith("cuda") and ref.library is None]
    linked = any(name.startswith(("libcudart", "libtorch")) for name in item.needed)
    rows = (
        ("needs", ", ".join(item.needed)),
        ("GPU code inside", f"{kernels} for {', '.join(item.gpu_targets)}" if item.gpu_targets else ""),
        ("stack", "executable (GNU_STACK RWE)" if item.executable_stack else ""),
        ("not linked", f"libcudart, of which it uses {list_names(functions, 3)}" if functions and not linked else ""),
    )
    return tuple(row for row in rows if row[1])


def _delegate_text(delegate: Delegate) -> str:
    specs = (f"{key}={value}" for key, value in delegate.compile_specs.items())
    keys = (f"{label} {key}" for label, key in (("code", delegate.code_key), ("weights", delegate.weights_key)) if key)
    return "; ".join(word for word in (delegate.backend, ", ".join(specs), *keys, delegate.problem) if word)


def precompiled_summary(found: Precompiled) -> str:
    """What the artifact is, the call of its function, and who made it, on one line."""
    parts = [FORMS[found.form]]
    if found.functions:
        first = found.functions[0]
        several = f" and {len(found.functions) - 1} more" if len(found.functions) > 1 else ""
        parts.append(
            f"{one_line(_call_text(first), 120)}{several}{f' on {first.device_type}' if first.device_type else ''}"
        )
        if first.torch is not None:
            parts.append(f"made by torch {first.torch}{f', Python {first.python}' if first.python else ''}")
    if found.entries:
        parts.append(plural(len(found.entries), "cache entry", "cache entries"))
    return one_line("; ".join(parts), 300)


def precompiled_rows(found: Precompiled) -> tuple[tuple[str, str], ...]:
    """All of an artifact of torch.compile, as labelled lines."""
    rows = [("form", FORMS[found.form]), ("key", found.key or ""), ("torch key", found.torch_key or "")]
    for one in found.functions:
        state = [f"{one.threads} threads"] if one.threads is not None else []
        state += [f"gradients {'on' if one.grad_mode else 'off'}"] if one.grad_mode is not None else []
        made = (("torch", one.torch), ("Python", one.python), ("toolkit", one.toolkit), ("Triton", one.triton))
        rows += [
            ("function", _call_text(one)),
            ("  source", one.source or ""),
            ("  backend", one.backend or ""),
            ("  device", one.device_type or ""),
            ("  made by", ", ".join(f"{name} {version}" for name, version in made if version)),
            ("  GPU", one.gpu or ""),
            ("  guarded state", ", ".join(state)),
            ("  the loader gives", list_names(one.external, 8)),
            *(("  guard", guard) for guard in one.guards),
        ]
    counted: dict[str, list[int]] = {}
    for entry in found.entries:
        counted.setdefault(entry.type, []).append(entry.size)
    rows += [
        ("cache", f"{kind}: {plural(len(sizes), 'entry', 'entries')}, {sum(sizes):,} bytes")
        for kind, sizes in counted.items()
    ]
    rows += [("path out of it", path) for path in found.stale]
    return tuple((label, one_line(text)) for label, text in rows if text)


def _call_text(function: CompiledFunction) -> str:
    marks = {2: "*", 4: "**"}
    shown = []
    for at, one in enumerate(function.parameters[:16]):
        earlier = {other.kind for other in function.parameters[:at]}
        shown += ["*"] if one.kind == 3 and not earlier & {2, 3} else []
        shown.append(f"{marks.get(one.kind, '')}{one.name}{f'={one.default}' if one.default is not None else ''}")
    return f"{function.name}({', '.join(shown)})"
