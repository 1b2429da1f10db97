"""Describe a package's contract, its inputs and the host as rows of text, and where findings about them point.

The contract stands beside the inputs, leaf by leaf. Marks come from findings; nothing is judged here. Most debug
settings are baked in when the package is compiled: setting them for an existing package silently changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from urllib.parse import quote

from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Gpu, Host
from aotidoctor.model.contract import (
    MOST_SIZES,
    ConstantSpec,
    Dim,
    KernelCall,
    LeafSpec,
    ModelContract,
    OutputSpec,
    Unread,
)
from aotidoctor.model.evidence import Evidence, FileSource, list_names, plural
from aotidoctor.model.inputs import LeafValue, PlainValue, TensorDesc
from aotidoctor.model.report import Report
from aotidoctor.model.torch_names import is_row_major
from aotidoctor.reports.executorch_view import executorch_summary, precompiled_summary
from aotidoctor.reports.text import one_line, size

# The contract beside the inputs. How generated code rounds a quotient up.
_ROUNDED_UP = re.compile(r"^\(\((.+) \+ \((\d+) - 1\)\) / \(\2\)\)$")


def leaves(report: Report) -> tuple[tuple[str, LeafSpec | None, LeafValue | None], ...]:
    """Path, what is expected and what was passed for it, in the order of the contract, then what was not expected."""
    contract, inputs = report.case.contract, report.case.inputs
    given = dict(inputs.leaves()) if inputs is not None else {}
    if contract is not None and differing_places(report, "nested-alike"):
        # Each tensor has the place that its number gives it.
        given = dict(zip((spec.path for spec in contract.leaves), given.values(), strict=False))
    specs = {spec.path: spec for spec in contract.leaves} if contract is not None else {}
    objects = differing_places(report, "object")
    paths = (path for path in dict.fromkeys((*specs, *given)) if path not in objects)
    return tuple((path, specs.get(path), given.get(path)) for path in paths)


def differing_places(report: Report, kind: str) -> frozenset[str | None]:
    """Where the tree of the call differs in this way: ``object`` where a structure was expected, ``nested-alike``."""
    return frozenset(item.subject for item in report.findings if (item.code, item.kind) == ("AD-IN-002", kind))


def unexpected_text(report: Report) -> str:
    """Text for a leaf that the contract does not have."""
    return "unknown" if report.case.contract is None else "not expected"


def missing_text(objects: Container[str | None], path: str) -> str:
    """Text for a leaf that was not passed; ``objects`` are the places that hold one."""
    return "inside an object" if any(outer in objects for outer in outer_paths(path)) else "missing"


def is_ordinary(value: TensorDesc) -> bool:
    """True for the strides of a tensor that was just made, and where none are known."""
    return not value.stride or is_row_major(value.shape, value.stride)


def names_leaf(subject: str | None, path: str) -> bool:
    """True when a finding's subject is the leaf or a property of it (``args[0].stride``)."""
    return subject is not None and (subject == path or subject.startswith(f"{path}."))


def by_leaf(findings: Iterable[Evidence]) -> Mapping[str, list[Evidence]]:
    """The findings by each path that ``names_leaf`` holds for."""
    found: dict[str, list[Evidence]] = {}
    for item in findings:
        subject = item.subject or ""
        for path in (subject, *(outer for outer in outer_paths(subject) if subject[len(outer)] == ".")):
            found.setdefault(path, []).append(item)
    return found


def outer_paths(path: str) -> Iterator[str]:
    """``args[0]`` and ``args`` of ``args[0].x``."""
    return (path[:at] for at in range(len(path) - 1, 0, -1) if path[at] in ".[")


def leaf_text(spec: LeafSpec, *, strides: bool = True) -> str:
    """``float32[s77:2..64, 16] (16, 1) cpu``; what is unknown is ``?``."""
    if spec.kind == "constant":
        return "a value baked in at export" + (f" ({spec.dtype})" if spec.dtype else "")
    if spec.kind == "unknown":
        return "unknown"
    parts = stride_texts(spec) if strides else ()
    steps = f" ({', '.join(parts)})" if any(step != "?" for step in parts) else ""
    device = f" {spec.device_type}" if spec.device_type else ""
    aligned = f" aligned to {spec.alignment} bytes" if spec.alignment is not None else ""
    return f"{spec.dtype or '?'}[{', '.join(size_texts(spec))}]{steps}{device}{aligned}"


def stride_texts(spec: LeafSpec) -> tuple[str, ...]:
    """``('8*s27', '1')``: a number, else an expression in symbols, else ``?``; empty where unknown."""
    steps = spec.strides or ()
    parts = [*(spec.stride_exprs or ()), *[None] * len(steps)]
    return tuple(
        str(step) if step is not None else "?" if expr is None else str(expr)
        for step, expr in zip(steps, parts, strict=False)
    )


def size_texts(spec: LeafSpec) -> list[str]:
    """A word for each dim, ``?`` where only the rank is known; ``…`` for an unknown number of dims."""
    parts = [dim_text(dim) for dim in spec.dims] if spec.dims is not None else ["?"] * (spec.rank or 0)
    return parts if spec.rank is not None else [*parts, "…"]


def dim_text(dim: Dim) -> str:
    """``16``, ``s77:2..64``, ``s77``, ``2..``, ``8|16`` (one of them), ``?``."""
    if dim.static is not None:
        return str(dim.static)
    if dim.among:
        return "|".join(map(str, dim.among)) if len(dim.among) <= MOST_SIZES else f"one of {len(dim.among)} sizes"
    name = str(dim.expr) if dim.expr is not None else ""
    if dim.min is None and dim.max is None:
        return name or "?"
    low = "" if dim.min is None else str(dim.min)
    high = "" if dim.max is None else str(dim.max)
    return f"{name}:{low}..{high}" if name else f"{low}..{high}"


def value_text(value: LeafValue, *, strides: bool = True) -> str:
    """Describe a passed value as ``leaf_text`` does, with whatever makes it unusual."""
    match value:
        case PlainValue(type="ndarray", dtype=dtype, shape=shape):
            return f"ndarray {dtype or '?'}[{', '.join(map(str, shape or ()))}]"
        case PlainValue(type="None"):
            return "None"
        case PlainValue(type=kind, text=text):
            return f"{kind} {one_line(text)}"
        case TensorDesc():
            sizes = ", ".join(map(str, value.shape))
            steps = f" ({', '.join(map(str, value.stride))})" if value.stride and strides else ""
            flags = unusual(value)
            if value.stats is not None and value.stats.nan + value.stats.inf:
                flags.append(f"{value.stats.nan} NaN, {value.stats.inf} Inf")
            return f"{value.dtype}[{sizes}]{steps} {value.device}" + (f" {', '.join(flags)}" if flags else "")


def unusual(value: TensorDesc) -> list[str]:
    """List the properties that ordinary tensors do not have."""
    flags = [name for name, on in (("conj", value.conj), ("neg", value.neg), ("quantized", value.quantized)) if on]
    flags += [value.layout] if value.layout != "strided" else []
    return [*flags, *([value.subclass] if value.subclass is not None else [])]


def output_text(output: OutputSpec) -> str:
    """``float32[s77, 8] cpu``."""
    sizes = ", ".join(output.shape) if output.shape is not None else "…"
    return f"{output.dtype or '?'}[{sizes}]" + (f" {output.device_type}" if output.device_type else "")


def constant_text(constant: ConstantSpec) -> str:
    """``float32[8, 16] (16, 1) cpu``."""
    sizes = ", ".join(map(str, constant.shape)) if constant.shape is not None else "…"
    steps = f" ({', '.join(map(str, constant.stride))})" if constant.stride else ""
    return f"{constant.dtype or '?'}[{sizes}]{steps}" + (f" {constant.device_type}" if constant.device_type else "")


def kernel_text(kernel: KernelCall) -> str:
    """Kind, ATen origins, how it is launched as far as a GPU matters, and whether it may fail in silence."""
    origins = f"{kernel.kind}: {', '.join(kernel.origins)}" if kernel.origins else kernel.kind
    silent = "status not checked: if it fails, its output is unfinished and nothing is raised"
    return "; ".join(part for part in (origins, launch_text(kernel), silent if kernel.unchecked else "") if part)


def launch_text(kernel: KernelCall) -> str:
    """``grid ceil(xnumel / 128), 4 warps, 256 bytes shared``; sizes of 1 at the end of a grid are left out."""
    sizes = [_ROUNDED_UP.sub(r"ceil(\1 / \2)", size) for size in kernel.grid]
    while len(sizes) > 1 and sizes[-1] == "1":
        sizes.pop()
    parts = [f"grid {' x '.join(sizes)}"] if sizes else []
    if kernel.warps is not None:
        parts.append(f"{kernel.warps} warp{'' if kernel.warps == '1' else 's'}")
    if kernel.shared not in (None, "0"):
        parts.append(f"{kernel.shared} bytes shared")
    return ", ".join(parts)


def contract_summary(case: Case) -> str:
    """Kind, models, and the size of the contract on one line."""
    if case.artifact.executorch is not None:
        return executorch_summary(case.artifact.executorch)
    if case.artifact.precompiled is not None:
        return precompiled_summary(case.artifact.precompiled)
    models = plural(len(case.artifact.models), "model")
    contract = case.contract
    if contract is None:
        names = list_names([model.name for model in case.artifact.models])
        why = "no contract can be read from it"
        several = len(case.artifact.models) > 1 and case.model is None
        return f"{case.artifact.kind.value} with {models}; {f'--model-name shows one: {names}' if several else why}"
    parts = (plural(contract.n_inputs, "input"), plural(contract.n_outputs or len(contract.outputs), "output"))
    constants = plural(contract.n_constants or len(contract.constants), "constant")
    where = f" on {contract.needs.device_type}" if contract.needs.device_type else ""
    return f"{case.artifact.kind.value} with {models}: {', '.join(parts)}, {constants}{where}"


def unread_text(item: Unread) -> str:
    """Statements that were not understood: how many, what they may hold, and the first."""
    where = f"line {item.line}: " if item.line else ""
    holds = "any fact" if item.fact == "statement" else f"a fact of kind {item.fact!r}"
    return f"{plural(item.count, 'statement')} of the {item.part} may contain {holds}; {where}{one_line(item.example)}"


def needs_rows(contract: ModelContract) -> tuple[tuple[str, str], ...]:
    """List the known requirements of the package on a host."""
    needs = contract.needs
    threads = ", ".join(f"{kernel} {count}" for kernel, count in needs.baked_threads.items())
    rows = (
        ("device", needs.device_type or ""),
        ("compute capability", needs.compute_capability or ""),
        ("GPU code", list_names(needs.gpu_code, 8)),
        ("GPU code missing", ", ".join(needs.missing_gpu_code)),
        ("CPU instructions", ", ".join(needs.isa) + (" (built with -march=native)" if needs.march_native else "")),
        ("threads baked in", threads),
        ("built by torch", needs.torch_version or ""),
        ("built by Python", needs.python_version or ""),
        ("built for CUDA", needs.cuda_version or ""),
        ("C++11 ABI", "" if needs.cxx11_abi is None else "yes" if needs.cxx11_abi else "no"),
        ("custom operators", ", ".join(contract.custom_ops)),
        ("weights", contract.weights),
        ("random operators", ", ".join(needs.random_ops)),
        ("reads uninitialised", ", ".join(needs.uninitialized_ops)),
    )
    return tuple((label, one_line(text)) for label, text in rows if text)


# The host.
_VECTOR = ("amx", "asimd", "avx", "f16c", "fma", "sse4", "sve", "vnni")


# What a line rests on: a profile that does not state it has no such line.
_FACTS = {
    "python": {"python"},
    "torch": {"torch"},
    "CPU": {"cpu_model", "cores"},
    "memory": {"memory_total"},
    "GPUs": {"gpus"},
    "CUDA driver": {"cuda_driver"},
    "missing symbols": {"libraries"},
    "vector units": {"cpu_flags"},
    "executable stack": {"executable_stack"},
}


def host_rows(host: Host, *, whole: bool) -> tuple[tuple[str, str], ...]:
    """Label and text of what is known; ``whole`` adds what seldom decides a case."""
    symbols = list_names([symbol.name for symbol in host.missing_symbols], 3)
    if host.symbols_problem is not None:
        symbols = f"not looked up: {host.symbols_problem}"
    memory = (("available", host.memory_available), ("in all", host.memory_total))
    found = host.tmpdir
    if found is None:
        tmpdir = ""
    else:
        free = f", {size(found.free_bytes)} free" if found.free_bytes is not None else ""
        tmpdir = f"{found.path}{free}" + (f", {found.problem}" if found.problem else "")
    always = (
        ("profile", host.profile or ""),
        ("not stated", ", ".join(sorted(host.unstated))),
        ("system", f"{host.system} {host.machine}{' (container)' if host.in_container else ''}"),
        ("python", host.python),
        ("torch", _torch(host)),
        ("CPU", f"{host.cpu_model or 'unknown'}, {host.cores} cores, {host.threads} threads"),
        ("memory", ", ".join(f"{size(count)} {word}" for word, count in memory if count is not None)),
        ("GPUs", ", ".join(_gpu(gpu) for gpu in host.gpus) or "none"),
        ("CUDA driver", host.cuda_driver or ""),
        ("missing libraries", ", ".join(name for name, path in host.libraries.items() if path is None)),
        ("missing symbols", symbols),
        ("temporary folder", tmpdir),
    )
    if host.executable_stack or not host.executable_stack_why:
        stack = ""
    else:
        answer = "refused" if host.executable_stack is False else "not known"
        stack = f"{answer}: {host.executable_stack_why}"
    further = (
        ("vector units", ", ".join(sorted(flag for flag in host.cpu_flags if flag.startswith(_VECTOR)))),
        ("glibc", host.glibc or ""),
        ("OpenMP runtimes", ", ".join(host.openmp_runtimes)),
        ("tools", ", ".join(f"{name} {path or 'absent'}" for name, path in host.tools.items())),
        ("address space", size(host.address_space_limit) if host.address_space_limit else ""),
        ("executable stack", stack),
    )
    known = always + (further if whole else ())
    return tuple(row for row in known if row[1] and not _FACTS.get(row[0], set()) & host.unstated)


def host_summary(host: Host) -> str:
    """System, torch and GPUs on one line; of a profile, what it is called."""
    if host.profile is not None:
        return f"{host.profile}: {host.system} {host.machine}, a profile that leaves out {len(host.unstated)} facts"
    gpus = plural(len(host.gpus), "GPU") if host.gpus else "no GPU"
    return f"{host.system} {host.machine}, torch {_torch(host)}, {gpus}"


def _torch(host: Host) -> str:
    if host.torch is None:
        return f"not usable: {host.torch_problem}" if host.torch_problem else "not installed"
    return f"{host.torch.version} ({f'CUDA {host.torch.cuda}' if host.torch.cuda else 'CPU build'})"


def _gpu(gpu: Gpu) -> str:
    capability = f" (sm_{gpu.compute_capability})" if gpu.compute_capability else ""
    memory = f" {size(gpu.memory_total)}" if gpu.memory_total else ""
    return f"{gpu.index}: {gpu.name}{capability}{memory}"


# Where a finding points, for formats that other tools read.
# As RFC 3986 has it for a path; what stands for something else in a reference is escaped.
_PATH = "/-._~!$&'()*+,;=@"


def is_member(artifact: Artifact, file: str) -> bool:
    """Whether ``file`` is the name of a member of the archive, not of a file."""
    if artifact.kind is ArtifactKind.AOTI_DIRECTORY:
        return False
    return any(member.name == file for model in artifact.models for member in model.members) or any(
        member.name == file for member in artifact.members
    )


def place_of(report: Report, finding: Evidence) -> FileSource | None:
    """The place in a file that a finding is about.

    Output of a run about a kernel, a call or an input refers to the line of the generated code that makes the call or
    checks the input; None where there is no such line.
    """
    source, contract = finding.source, report.case.contract
    if isinstance(source, FileSource) and (source.line is not None or contract is None):
        return source
    if contract is not None and contract.member is not None and finding.subject:
        calls = (kernel.line for kernel in contract.kernels if kernel.name == finding.subject)
        named = (leaf for leaf in contract.leaves if names_leaf(finding.subject, leaf.path))
        lines = (*calls, *(leaf.check_line or leaf.source_line for leaf in named))
        line = next((line for line in lines if line is not None), None)
        if line is not None:
            return FileSource(file=contract.member, line=line)
    return source if isinstance(source, FileSource) else None


def finding_text(finding: Evidence) -> str:
    """Put a finding into one text: subject, observation, and its message where that adds something."""
    message, observed = finding.message, finding.observed
    if not message:
        message = f"observed {observed}, expected {finding.expected}" if finding.expected else observed
    elif observed and observed not in message:
        message = f"{observed} ({message})"
    about = f"{finding.subject}: " if finding.subject and finding.subject not in message else ""
    return f"{about}{message}" or finding.code


def file_uri(path: str) -> str:
    """A path as a URI reference: absolute paths with their scheme, relative ones as they are."""
    text = one_line(path, 4000).replace("\\", "/")
    while text.startswith("./"):
        text = text[2:]
    return f"file://{quote(text, safe=_PATH)}" if text.startswith("/") else quote(text, safe=_PATH)
