"""Write a report in the fields of a bug form, PyTorch's or Triton's, with versions and a script for the call.

The headings are those that GitHub makes of PyTorch's forms (``bug-report.yml``, ``pt2-bug-report.yml``), and those of
the Triton server's ``bug_report.md``. Where the report lacks what a form asks for, the field says so. The versions have
the fields, names and order of PyTorch's ``collect_env``, taken from what was read of the host, without importing torch:
what only a running torch or a tool could tell is ``Could not collect``.

The script makes the same call with torch alone, from metadata: inputs are made up, shapes and types kept. It is written
and never run; `repro` builds one that is certified. Names and values of others are written as Python literals, so that
nothing in them can become code.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Host
from aotidoctor.model.inputs import MAPPINGS, Container, Leaf, LeafValue, PlainValue, TensorDesc, Tree
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports.markdown import (
    Budget,
    block_text,
    code,
    details,
    fence,
    first_lines,
    fit_parts,
    named_sections,
    prose,
)
from aotidoctor.reports.package_view import is_ordinary
from aotidoctor.reports.page import place_page, report_view, run_page
from aotidoctor.reports.page.report_view import headline
from aotidoctor.reports.text import one_line

# The host in the fields of ``collect_env``.
UNKNOWN = "Could not collect"
NO_CUDA = "No CUDA"
_ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_ISA = 2000


def host_versions(host: Host) -> str:
    """The text that ``python -m torch.utils.collect_env`` would print, as far as it is known."""
    named = host.distribution or (host.system.lower() if host.system else None)
    build = host.torch
    without = build is not None and not (build.cuda or build.hip)
    bare = without and not host.gpus and host.cuda_driver is None and not host.tools.get("nvcc")
    nothing = NO_CUDA if bare else None
    hip = "N/A" if build is not None and not build.hip else _without(host) if build is None else None
    settings = {name: host.environment[name] for name in _ALLOCATOR if name in host.environment}
    groups = (
        _torch(host),
        (
            ("OS", f"{named} ({host.machine})" if named else None),
            ("GCC version", None),
            ("Clang version", None),
            ("CMake version", None),
            ("Libc version", f"glibc-{host.glibc}" if host.glibc else None),
        ),
        (
            ("Python version", host.python or None),
            ("Python platform", host.platform),
            ("Is CUDA available", _without(host) if build is None else "False" if without else None),
            ("CUDA runtime version", nothing),
            ("CUDA_MODULE_LOADING set to", "N/A" if without else host.environment.get("CUDA_MODULE_LOADING")),
            (
                "GPU models and configuration",
                "\n".join(f"GPU {gpu.index}: {one_line(gpu.name)}" for gpu in host.gpus) or nothing,
            ),
            ("Nvidia driver version", host.cuda_driver or nothing),
            ("cuDNN version", nothing),
            ("Is XPU available", _without(host) if build is None else "False" if build.xpu is None else None),
            ("HIP runtime version", hip),
            ("MIOpen runtime version", hip),
            ("Is XNNPACK available", None),
            ("Caching allocator config", str(settings) if settings else "N/A" if host.environment else None),
        ),
    )
    blocks = ["\n".join(f"{label}: {_value(text)}" for label, text in group) for group in groups]
    # As lscpu spells it. The CPUs are those that the process may use.
    rows = [("Architecture", host.machine), ("CPU(s)", str(host.cores))]
    rows += [("Model name", host.cpu_model)] if host.cpu_model else []
    rows += [("Flags", " ".join(sorted(host.cpu_flags)))] if host.cpu_flags else []
    cpu = "\n".join(f"{label + ':':<41}{one_line(text, _ISA)}" for label, text in rows)
    pip = [f"[pip3] {one_line(name)}=={one_line(version)}" for name, version in host.packages.items()]
    packages = "\n".join([*(pip or [f"[pip3] {UNKNOWN}"]), f"[conda] {UNKNOWN}"])
    return "\n\n".join([*blocks, f"CPU:\n{cpu}", f"Versions of relevant libraries:\n{packages}"])


def _value(text: str | None) -> str:
    if text is None:
        return UNKNOWN
    # A text of several lines starts on a line of its own.
    return f"\n{text}\n" if "\n" in text else one_line(text, 400)


def _without(host: Host) -> str | None:
    """What is said of torch where there is none: a host that was not asked may have one."""
    return "N/A" if host.torch_problem is not None else None


def _torch(host: Host) -> tuple[tuple[str, str | None], ...]:
    build = host.torch
    if build is None:
        names = ("PyTorch version", "Is debug build", "CUDA used to build PyTorch", "ROCM used to build PyTorch")
        return tuple((name, _without(host)) for name in names)
    return (
        ("PyTorch version", build.version),
        ("Is debug build", None if build.debug is None else str(build.debug)),
        ("CUDA used to build PyTorch", "N/A" if build.hip else build.cuda or "None"),
        ("ROCM used to build PyTorch", build.hip or "N/A"),
    )


# The script.
T = TypeVar("T")

# Leaves of a call; a longer script helps nobody.
LEAVES = 120
_PLAIN = frozenset(("int", "float", "bool", "str", "None"))
_DTYPES = frozenset((
    "float64", "float32", "float16", "bfloat16", "complex128", "complex64", "int64", "int32", "int16", "int8",
    "uint8", "uint16", "uint32", "uint64", "bool", "float8_e4m3fn", "float8_e5m2",
))  # fmt: skip
_FLOATS = frozenset(("float64", "float32", "float16", "bfloat16", "complex128", "complex64"))
_DEVICES = ("cpu", "cuda", "xpu", "mps")


@record
class TorchCallScript:
    """``text`` is Python; ``notes`` say what it leaves open."""

    text: str
    notes: tuple[str, ...]


def torch_script(report: Report) -> TorchCallScript | None:
    """The script; None where there is nothing to load or its call is not known."""
    case = report.case
    load = _load(report)
    if load is None:
        return None
    call = _given_inputs(report) or _expected_comment(report)
    if call is None:
        return None
    arguments, notes = call
    head = ["import torch", "import torch._inductor", ""]
    if case.contract is not None and case.contract.custom_ops:
        notes = [*notes, "its custom operators must be registered before the package is loaded"]
        head.append(f"# custom operators that must be registered: {one_line(', '.join(case.contract.custom_ops), 300)}")
    return TorchCallScript(
        text="\n".join([*head, load, *arguments, "print(model(*args, **kwargs))"]), notes=tuple(notes)
    )


def _load(report: Report) -> str | None:
    artifact, options = report.case.artifact, report.case.options
    path = _text(artifact.path)
    if artifact.kind is ArtifactKind.BARE_SO:
        return f"model = torch._export.aot_load({path}, {_text(options.device or 'cpu')})"
    if artifact.kind not in (ArtifactKind.AOTI_PACKAGE, ArtifactKind.AOTI_DIRECTORY):
        return None
    name = report.case.model.name if report.case.model is not None else "model"
    more = f", model_name={_text(name)}" if name != "model" else ""
    device = (options.device or "").partition(":")[2]
    more += f", device_index={device}" if device.isdecimal() else ""
    return f"model = torch._inductor.aoti_load_package({path}{more})"


def _text(text: str) -> str:
    return ascii(one_line(text, 400))


def _given_inputs(report: Report) -> tuple[list[str], list[str]] | None:
    """The call that was made, of its metadata."""
    found = report.case.inputs
    if found is None:
        return None
    count = len(found.leaves())
    if count > LEAVES:
        return None
    notes = [
        "the values are made up, integers within the given range: a failure that needs certain values may not show"
    ]
    other = [value.type for _, value in found.leaves() if isinstance(value, PlainValue) and _literal(value) is None]
    notes += [f"None replaces {one_line(', '.join(sorted(set(other))))}"] if other else []
    args: Tree[LeafValue] = found.args
    kwargs: Tree[LeafValue] = found.kwargs
    named = _tree(kwargs, _leaf)
    listed = [f"args = {_as_tuple(_tree(args, _leaf))}", f"kwargs = {named if named.startswith('{') else '{}'}"]
    # Containers that a plain script cannot make.
    trees = (args, kwargs)
    known = {"tuple", "list", *MAPPINGS}
    kinds = sorted({kind for tree in trees for kind in _kinds(tree) if kind not in known})
    return listed, [*notes, *([f"lists replace {one_line(', '.join(kinds))}"] if kinds else [])]


def _expected_comment(report: Report) -> tuple[list[str], list[str]] | None:
    """A call as the contract wants it, where no inputs are known."""
    contract = report.case.contract
    if contract is None or contract.args is None or contract.kwargs is None or len(contract.leaves) > LEAVES:
        return None
    leaves = contract.leaves
    args: Tree[int] = contract.args
    kwargs: Tree[int] = contract.kwargs

    def leaf(index: int) -> str:
        spec = leaves[index] if 0 <= index < len(leaves) else None
        if spec is None or spec.kind != "tensor" or spec.dims is None:
            return "None"
        sizes = (
            dim.static if dim.static is not None else max(dim.min if dim.min is not None else 2, 1) for dim in spec.dims
        )
        return _make_tensor_text(spec.dtype or "float32", tuple(sizes), spec.device_type or "cpu")

    listed = [f"args = {_as_tuple(_tree(args, leaf))}", f"kwargs = {_tree(kwargs, leaf)}"]
    return listed, ["no inputs were given: these are the smallest that the contract allows, with made-up values"]


def _as_tuple(text: str) -> str:
    return f"({text[1:-1]},)" if text.startswith("[") and len(text) > 2 else "()" if text == "[]" else text


def _tree(tree: Tree[T], leaf_text: Callable[[T], str]) -> str:
    match tree:
        case Leaf(value=value):
            return leaf_text(value)
        case Container():
            return _joined(tree.type, tree.keys, [_tree(child, leaf_text) for child in tree.children])


def _joined(kind: str, keys: tuple[str | int, ...], children: list[str]) -> str:
    if keys and kind in MAPPINGS:
        pairs = zip(keys, children, strict=False)
        return "{" + ", ".join(f"{key!a}: {child}" for key, child in pairs) + "}"
    if kind in MAPPINGS:
        return "{}"
    inner = ", ".join(children)
    if kind == "tuple":
        return f"({inner},)" if children else "()"
    return f"[{inner}]"


def _kinds(tree: Tree[LeafValue]) -> Iterable[str]:
    if isinstance(tree, Container):
        yield tree.type
        for child in tree.children:
            yield from _kinds(child)


def _leaf(value: LeafValue) -> str:
    match value:
        case PlainValue():
            return _literal(value) or "None"
        case TensorDesc():
            text = _within(value) or _make_tensor_text(value.dtype, value.shape, value.device)
            if is_ordinary(value) or value.stride is None or value.layout != "strided":
                return text
            options = _options(value.dtype, value.device)
            return f"torch.empty_strided({value.shape}, {value.stride}, {options}).copy_({text})"


def _literal(value: PlainValue) -> str | None:
    """The value as the file has it, only where it is a literal of Python."""
    if value.type not in _PLAIN:
        return None
    try:
        return ascii(ast.literal_eval(value.text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _within(value: TensorDesc) -> str | None:
    """Values of the range that was given: integers from the lowest to the highest, NaN or Inf where there was any."""
    stats = value.stats
    if stats is None or value.numel == 0:
        return None
    sizes, options = f"{value.shape}", _options(value.dtype, value.device)
    if value.dtype in _FLOATS:
        word = "nan" if stats.nan else "inf" if stats.inf else ""
        return f"torch.full({sizes}, float('{word}'), {options})" if word else None
    if not isinstance(stats.low, int) or not isinstance(stats.high, int) or value.dtype not in _DTYPES:
        return None
    if stats.low == stats.high or value.numel == 1:
        return f"torch.full({sizes}, {stats.high}, {options})"
    span = f"torch.linspace({stats.low}, {stats.high}, {value.numel}, dtype=torch.float64)"
    return f"{span}.reshape({sizes}).to({options})"


def _make_tensor_text(dtype: str, shape: tuple[int, ...], device: str) -> str:
    sizes = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    options = _options(dtype, device)
    return f"torch.{'rand' if dtype in _FLOATS else 'ones'}({sizes}, {options})"


def _options(dtype: str, device: str) -> str:
    named = dtype if dtype in _DTYPES else "float32"
    kind, _, index = device.partition(":")
    where = device if kind in _DEVICES and (not index or index.isdecimal()) else "cpu"
    return f"dtype=torch.{named}" + (f", device={where!r}" if where != "cpu" else "")


# The form.
_REPRO = "`aotidoctor repro` writes a script that was run and certified to fail with the same signature."


def render_issue(report: Report, form: str, repro: str | None = None) -> str:
    """``report`` in ``form`` (``pytorch`` or ``triton``), shorter than GitHub's limit.

    ``repro`` is the folder of ``--report repro:DIR``, where a certified reproduction is written.
    """
    parts = _pytorch if form == "pytorch" else _triton
    return fit_parts(partial(parts, report, repro))


def _pytorch(report: Report, repro: str | None, budget: Budget) -> list[str]:
    return [
        "### 🐛 Describe the bug",
        _describe_report(report),
        *_reproduction(report, repro, "####"),
        *_evidence(report, budget),
        "### Error logs",
        _error_log(report, budget),
        "### Versions",
        *_versions(report),
        *_lower(named_sections(report, budget, ("again",))),
    ]


def _triton(report: Report, repro: str | None, budget: Budget) -> list[str]:
    release, host = report.extra.get("release"), report.case.host
    version = f"Triton {prose(release)}, as given to aotidoctor" if release else "Not recorded in this report."
    where = {True: "in a container", False: "outside a container", None: "on a machine"}[host.in_container]
    if not report.diagnoses:
        expected = "No failure." if report.verdict != "healthy" else "As observed: nothing wrong was found."
    else:
        first = report.diagnoses[0]
        expected_text = next((item.expected for item in report_view.evidence_of(report, first) if item.expected), "")
        expected = prose(expected_text) if expected_text else "No failure."
    return [
        "**Description**",
        _describe_report(report),
        *_evidence(report, budget),
        "Error log:",
        _error_log(report, budget),
        "**Triton Information**\nWhat version of Triton are you using?",
        version,
        "Are you using the Triton container or did you build it yourself?",
        f"Not recorded in this report, which was made {where}.",
        details("Versions", "\n\n".join(_versions(report))),
        "**To Reproduce**",
        *_reproduction(report, repro, ""),
        *named_sections(report, budget, ("serving",)),
        "" if report.case.contract is not None else "The inputs and outputs of the model are unknown.",
        "**Expected behavior**",
        expected,
        "\n\n".join(named_sections(report, budget, ("again",))).partition("\n")[2].strip(),
    ]


def _describe_report(report: Report) -> str:
    """Verdict, package, cause and how sure."""
    head = headline(report)
    lines = [f"**{head.word}:** {prose(head.text, 300)}", ""]
    if report_view.has_artifact(report):
        lines += [f"Package: {code(report_view.artifact_text(report))}", ""]
    if note := report_view.partial_note(report):
        lines += [f"**{note}**", ""]
    return "\n".join([*lines, *first_lines(report)]).rstrip("\n")


def _reproduction(report: Report, repro: str | None, level: str) -> list[str]:
    made = torch_script(report)
    command = fence(report_view.command_text(report.argv), language="sh", budget=4000)
    title = f"{level} Minimal reproduction".strip()
    if made is None:
        parts = [title if level else "", command, "The known facts are not enough for a script that needs only torch."]
    else:
        notes = "\n".join(f"- {prose(note)}" for note in made.notes)
        parts = [
            title if level else "",
            command,
            "The same call with torch alone (written from metadata, not run):",
            fence(made.text, language="python", budget=6000),
            notes,
        ]
    folder = f"A certified reproduction was requested in {code(repro)}; attach it." if repro else ""
    return [*parts, folder or (_REPRO if made is not None else "")]


def _evidence(report: Report, budget: Budget) -> list[str]:
    place = report.localization
    rows = place_page.place_rows(place) if place is not None else []
    where = "\n".join(f"- **{label}:** {code(text, 600)}" for label, text in rows)
    runs = f"### Runs\n\n{block_text(run_page.runs_table(report), budget)}" if report.runs else ""
    named = named_sections(report, budget, ("stages", "comparison", "evidence", "contract"))
    return _lower([where, *named, runs])


def _lower(parts: list[str]) -> list[str]:
    """The parts with headings below those of the form."""
    return [f"#{part}" if part.startswith("### ") else part for part in parts]


def _versions(report: Report) -> list[str]:
    """The host that failed; of a log what it names itself, because it may come from elsewhere."""
    block = fence(host_versions(report.case.host), budget=12_000)
    if report.log is None or report.runs:
        return [block]
    named = ", ".join(f"{name} {version}" for name, version in report.log.versions.items())
    text = f"The log names {prose(named)}." if named else "The log names no versions."
    if report.case.host.torch is None and report.case.host.cpu_model is None:
        rest = "`python -m torch.utils.collect_env` lists them"
        return [text, f"This report does not describe the machine that failed; on that machine, {rest}."]
    return [text, "The machine that read the log, which may differ from the one that failed:", block]


def _error_log(report: Report, budget: Budget) -> str:
    """What the first failing run said last, or what a log said; a traceback of aotidoctor where it failed itself."""
    room_of_log = max(budget.printed, 400)
    if report.internal_error is not None:
        return fence(report.internal_error, budget=room_of_log)
    if report.log is not None:
        texts = [match.text for match in report.log.matches] or [event.text for event in report.log.events]
        return fence("\n".join(texts[: budget.rows]), budget=room_of_log) if texts else "The log contains no error."
    failed = run_page.first_failed(report.runs)
    if failed is None:
        wrong = report.case.artifact.kind in (ArtifactKind.MISSING, ArtifactKind.UNREADABLE)
        return "Nothing was run." if wrong or not report.runs else "No run failed."
    error = failed.error
    parts = [error.traceback or error.message if error is not None else "", failed.stderr_tail, failed.stdout_tail]
    text = "\n".join(part for part in parts if part.strip())
    ended = f"{failed.id} ({one_line(failed.request.probe)}) ended: {run_page.run_ending(failed)} in {failed.stage}"
    return f"{prose(ended)}\n\n{fence(text, budget=room_of_log)}" if text else prose(ended)
