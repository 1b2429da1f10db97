"""Attribute stacks to a kernel, an operator or a library, and put all that points at the place into one record.

Only what is inside the frame of the compiled model counts, where the stack shows it:

- ``kernel``: a generated function (``cpp_fused_…``), and nothing but libraries that everybody calls inside it.
- ``operator``: a library that is neither PyTorch's nor everybody's, or Python code that the model called. ``proved``
  when the model's call of an operator is seen around it.
- ``libtorch``: nothing but PyTorch's own libraries.
- ``runtime``: the package's own code around its kernels.
- ``unknown``: the stack ends before any of these, or a frame cannot be attributed.

A process that hangs is classified by the stacks of its threads where a debugger gave them, else by what /proc says of
them; a lock is named only where neither operator nor kernel is around it. The debug information names the files where
the package was compiled; the same files, under the same base names, are in the package.

The record (``Localization``) holds the culprit for people and every trail for programs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from aotidoctor.localize.call_timeline import timeline
from aotidoctor.localize.comparison import read_comparison
from aotidoctor.localize.debugger_output import Backtrace, KernelTask, read_backtrace
from aotidoctor.localize.stages import custody
from aotidoctor.localize.watched_values import read_watched
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, Severity
from aotidoctor.model.localization import Frame, Localization, SourceLine, TimelineEntry
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome

# The culprit of a stack.
KERNEL, OPERATOR, LIBTORCH, RUNTIME, UNKNOWN = "kernel", "operator", "libtorch", "runtime", "unknown"
_KERNEL = re.compile(r"^((?:cpp|triton)_\w+)(?:\.\w+)*(?:\(.*)?(?: \[clone .*\])?$")
_MODEL = re.compile(r"\bAOTInductorModel(?:Base|Container)?\b|^AOTInductorModelContainer\w+$")
_DISPATCH = re.compile(
    r"\bOSSProxyExecutor::call_function\b|\bDispatcher::callBoxed\b"
    r"|^aoti_torch_(?:proxy_executor_call_function|call_dispatcher)\b"
)
_TORCH = re.compile(r"/torch/(?:lib/|_C\.)|(?:^|/)lib(?:torch|c10|caffe2|shm|aoti_)[^/]*\.so")
_PYTHON = re.compile(r"(?:^|/)(?:libpython[^/]*\.so[^/]*|python[\d.]*|_ctypes\.[^/]*\.so)$")
# Libraries that everybody calls: a failure in them is one of the caller.
_SHARED = re.compile(
    r"(?:^|/)(?:lib(?:c|m|dl|rt|pthread|util|stdc\+\+|c\+\+|c\+\+abi|gcc_s|gomp|omp|iomp5|asan|tsan|ubsan|unwind"
    r"|c_malloc_debug|mkl\w{0,40}|openblas\w{0,40}|blas|lapack|numa|tbb\w{0,40}|cuda\w{0,40}|cublas\w{0,40}|cudnn\w{0,40}|nv\w{1,40}|nccl|ffi)"
    r"|ld-linux[^/.]{0,40}|ld-musl[^/.]{0,40})(?:[-.][\w.-]{0,80})?\.so[^/]*$|\[vdso\]|linux-vdso"
)


@record
class Culprit:
    """The verdict of ``frame``: ``kernel`` is the kernel's name, ``library`` the operator's (None: Python code)."""

    where: str
    frame: Frame | None = None
    kernel: str | None = None
    library: str | None = None
    proved: bool = False


def culprit(frames: Sequence[Frame], package: Collection[str] = ()) -> Culprit:
    """The verdict on one stack, innermost frame first. ``package`` are base names of the package's own files."""
    end = next((index for index, frame in enumerate(frames) if is_model(frame)), None)
    inner = frames[:end]
    own = next((frame for frame in inner if kernel_of(frame) is not None), None)
    foreign = [frame for frame in inner if _is_foreign(frame, package)]
    if own is not None and not any(frame.index < own.index for frame in foreign):
        return Culprit(where=KERNEL, frame=own, kernel=kernel_of(own), proved=True)
    if foreign:
        return _operator(foreign, inner, reached=end is not None)
    # A source file of which nothing tells the library that it went into.
    files = [base_name(frame.file or "") for frame in inner if frame.library is None]
    if any(file.endswith((".cpp", ".cc", ".cxx", ".c", ".cu")) and file not in package for file in files):
        return Culprit(where=UNKNOWN, frame=frames[0])
    torch = next((frame for frame in inner if _TORCH.search(frame.library or "")), None)
    if torch is not None:
        return Culprit(where=LIBTORCH, frame=torch)
    if end is not None:
        return Culprit(where=RUNTIME, frame=frames[end])
    return Culprit(where=UNKNOWN, frame=frames[0] if frames else None)


def _operator(foreign: Sequence[Frame], inner: Sequence[Frame], *, reached: bool) -> Culprit:
    """The library that PyTorch called is the operator's; one that this library called is not.

    Without the model's frame the stack leads out to the interpreter that runs us all: the innermost counts then.
    """
    native = [frame for frame in foreign if not is_python(frame)]
    if not reached:
        first = native[0] if native else None
        return Culprit(where=OPERATOR if first else UNKNOWN, frame=first or foreign[0], library=_library(first))
    outermost = foreign[-1]
    proved = any(_DISPATCH.search(frame.function or "") for frame in inner if frame.index > outermost.index)
    if is_python(outermost):
        named = next((frame for frame in foreign if (frame.file or "").endswith(".py")), outermost)
        return Culprit(where=OPERATOR, frame=named, proved=proved)
    deciding = next(frame for frame in native if frame.library == outermost.library)
    return Culprit(where=OPERATOR, frame=deciding, library=_library(deciding), proved=proved)


def kernel_of(frame: Frame) -> str | None:
    """The kernel that the frame is in, without the suffixes of the compiler (``._omp_fn.0``)."""
    found = _KERNEL.match(frame.function or "")
    return found[1] if found else None


def is_python(frame: Frame) -> bool:
    """The interpreter, or a Python file."""
    return _PYTHON.search(frame.library or "") is not None or (frame.file or "").endswith(".py")


def is_model(frame: Frame) -> bool:
    """Whether a frame is the compiled model's own, around its kernels and calls."""
    return _MODEL.search(frame.function or "") is not None


def _is_foreign(frame: Frame, package: Collection[str]) -> bool:
    """Code of neither PyTorch, nor the package, nor a library that everybody calls."""
    if frame.library is None:
        return (frame.file or "").endswith(".py") and not (frame.file or "").startswith(("torch/", "aotidoctor/"))
    mine = base_name(frame.library) in package or frame.library.endswith(".wrapper.so")
    return not mine and not _TORCH.search(frame.library) and not _SHARED.search(frame.library)


def _library(frame: Frame | None) -> str | None:
    return base_name(frame.library) if frame is not None and frame.library is not None else None


def base_name(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]


# From a frame's file to the member of the package, and the lines around the frame's.
AROUND = 3
MAX_LINE = 400
_PROXY_CALL = re.compile(r"\baoti_torch_proxy_executor_call_function\(\s*proxy_executor,\s*(\d+)\b")
_DISPATCHER_CALL = re.compile(r"\baoti_torch_call_dispatcher\(\s*\"([^\"]+)\"")
# A call that spans lines may be recorded under any of them.
_CALL_LINES = 3


def with_sources(frames: Iterable[Frame], model: ModelEntry | None) -> tuple[Frame, ...]:
    """The frames, those in the package's own sources with member and excerpt."""
    members = _members(model)
    found: list[Frame] = []
    for frame in frames:
        if base_name(frame.file or "") not in members:
            found.append(frame)
            continue
        member, text = members[base_name(frame.file or "")]
        lines, line = text.splitlines(), frame.line or 0
        numbers = range(max(1, line - AROUND), min(len(lines), line + AROUND) + 1) if 1 <= line <= len(lines) else ()
        excerpt = tuple(SourceLine(number=n, text=lines[n - 1][:MAX_LINE], marked=n == line) for n in numbers)
        found.append(replace(frame, member=member, lines=excerpt))
    return tuple(found)


def package_files(model: ModelEntry | None) -> frozenset[str]:
    """Base names of the package's own sources and libraries."""
    libraries = model.shared_objects if model is not None else ()
    return frozenset(_members(model)) | {base_name(library.member) for library in libraries}


def called_operator(frames: Iterable[Frame], model: ModelEntry | None) -> str | None:
    """The custom operator that the wrapper's innermost frame was calling (``zoo::misbehave``)."""
    if model is None or model.wrapper_cpp is None or model.wrapper_member is None:
        return None
    wrapper = base_name(model.wrapper_member)
    frame = next((one for one in frames if base_name(one.file or "") == wrapper), None)
    if frame is None or frame.line is None:
        return None
    lines = model.wrapper_cpp.splitlines()
    for number in range(min(frame.line, len(lines)), max(0, frame.line - _CALL_LINES), -1):
        dispatched, proxied = _DISPATCHER_CALL.search(lines[number - 1]), _PROXY_CALL.search(lines[number - 1])
        if dispatched is not None:
            return dispatched[1]
        if proxied is not None and int(proxied[1]) < len(model.extern_nodes):
            return model.extern_nodes[int(proxied[1])].target
    return None


def _members(model: ModelEntry | None) -> Mapping[str, tuple[str, str]]:
    """Base name to (member, text) of the package's C++ sources."""
    if model is None:
        return {}
    texts = dict(model.kernel_sources)
    if model.wrapper_member is not None and model.wrapper_cpp is not None:
        texts[model.wrapper_member] = model.wrapper_cpp
    return {base_name(member): (member, text) for member, text in texts.items()}


# Where a process that does not end is: an operator, a kernel, a lock, or a library.
LOCK, LIBRARY = "lock", "library"
SPINS, SLEEPS, WAITS = "runs", "sleeps", "waits for a lock"
_LOCK = re.compile(
    r"futex|lll_lock_wait|pthread_(?:mutex|rwlock|cond|barrier|spin)_\w*|sem_wait|gomp_\w{0,60}(?:barrier|wait|lock)"
    r"|__kmp_\w{0,60}(?:wait|barrier|lock)|^do_wait\b|PyThread_acquire_lock|take_gil|std::(?:mutex|condition_variable)"
)
# How many of the innermost frames may be the waiting itself.
_DEEP = 8
_FUTEX = {"x86_64": ("202", "449"), "aarch64": ("98", "449")}


@record
class Hang:
    """The place of a hang: ``where`` is None when unknown; ``state`` is whether it runs, sleeps or waits for a lock."""

    where: str | None
    state: str | None
    culprit: Culprit | None = None
    frames: tuple[Frame, ...] = ()


def classify_hang(trace: Backtrace, package: Collection[str] = ()) -> Hang:
    """The verdict. Kernels run on many threads: one that still computes keeps the others waiting."""
    # The thread that called the model; without such a frame the first one that was started.
    called = next((thread for thread in trace.threads if any(is_model(frame) for frame in thread.frames)), None)
    numbered = [thread for thread in trace.threads if thread.tid is not None]
    main = called or min(numbered, key=lambda thread: thread.tid or 0, default=None)
    state = _state(trace.tasks, trace.machine)
    if main is None:
        return Hang(where=LOCK if state == WAITS else None, state=state)
    found = culprit(main.frames, package)
    is_at_lock = _is_at_lock(main.frames)
    for thread in trace.threads if found.where == KERNEL or is_at_lock else ():
        own = culprit(thread.frames, package)
        if own.where == KERNEL and not _is_at_lock(thread.frames):
            return Hang(where=KERNEL, state=SPINS, culprit=own, frames=thread.frames)
    where = found.where if found.where in (OPERATOR, KERNEL) else None
    if is_at_lock and where != OPERATOR:
        where = LOCK
    elif found.where in (LIBTORCH, RUNTIME):
        where = LIBRARY
    return Hang(where=where, state=state, culprit=found, frames=main.frames)


def _is_at_lock(frames: Sequence[Frame]) -> bool:
    return any(_LOCK.search(frame.function or "") for frame in frames[:_DEEP])


def _state(tasks: Sequence[KernelTask], machine: str | None) -> str | None:
    """The state of the first thread, or of any that runs: a main thread may wait for its workers."""
    if not tasks:
        return None
    if any(task.state == "R" for task in tasks):
        return SPINS
    first = min(tasks, key=lambda task: task.tid)
    waits = first.wchan.startswith("futex") or first.call in _FUTEX.get(machine or "", ())
    return WAITS if waits else SLEEPS


# The record.
_CHECKED_HEAP = "where the checked heap stopped it"
# Which trail names the culprit, the surest first: code, kinds (empty: all), and what it did.
_TRAILS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("AD-RUN-038", ("exported", "decomposed"), "the first stage that gives other values than the one before"),
    ("AD-RUN-018", ("found",), "the result is right without this step of the compiler"),
    ("AD-RUN-015", (), "called alone, on the arguments that the package passed"),
    ("AD-RUN-016", ("nan", "inf", "diverges"), "the first call that wrote bad values, from good ones"),
    (
        "AD-RUN-026",
        ("kernel", "extern", "custom", "refused", "hang"),
        "the first that fails when each launch is waited for",
    ),
    ("AD-RUN-028", ("invalid-access",), "the first report of compute-sanitizer"),
    (
        "AD-RUN-040",
        ("access", "assert", "refused", "uninitialized", "race", "nan"),
        "the first fault of the emulation, which checks every address",
    ),
    ("AD-RUN-027", ("exception",), "where the GPU's core dump saw it fault"),
    ("AD-RUN-034", ("kernel", "extern"), "the last launch printed with blocking launches, compiled again here"),
    ("AD-RUN-023", ("crash", "hang"), "where the debugger found it"),
    ("AD-RUN-025", (), _CHECKED_HEAP),
    ("AD-RUN-024", ("kernel", "extern", "custom"), "the call that was entered last"),
)
_MOST_FRAMES = 64
_MOST_CALLS = 4096


def localize(
    case: Case, findings: Sequence[Evidence], outcomes: Mapping[str, Outcome], *, failed: bool
) -> Localization | None:
    """Everything known of the place; None when no run looked for it. ``failed``: something is wrong with the case."""
    outcome = outcomes.get("kernel_values")
    watched = read_watched(case, outcome) if outcome is not None else None
    blamed: Mapping[str, FactValue] = next((item.facts for item in findings if item.facts.get("chain")), {})
    chain, kernel = (text if isinstance(text := blamed.get(name), str) else None for name in ("chain", "kernel"))
    culprit, how = _culprit(findings) if failed else (None, "")
    entries, total = _timeline(case, outcomes)
    stack = outcomes.get("backtrace") or outcomes.get("plain_run")
    frames: tuple[Frame, ...] = ()
    if stack is not None and stack.debugger_output:
        trace = read_backtrace(stack.debugger_output)
        frames = trace.stop.frames if trace.stop is not None else classify_hang(trace, package_files(case.model)).frames
        frames = with_sources(frames[:_MOST_FRAMES], case.model)
    unchecked = any(item.facts.get("unchecked") for item in findings)
    remark = "it reads there, and nothing checks the index" if unchecked else "the check that failed names it"
    found = Localization(
        culprit=culprit or (kernel if failed else None),
        how=how or (remark if chain and failed else ""),
        chain=chain if chain is not None else _chain_of_values(findings),
        check=_check(case, findings) if failed else None,
        timeline=entries,
        calls_total=total,
        frames=frames,
        fault_address=_fact(findings, "AD-RUN-023", "fault_address"),
        fault_target=_fact(findings, "AD-RUN-023", "fault_target"),
        values=watched.calls if watched is not None else (),
        notes=watched.run.notes if watched is not None else (),
        first_bad=_fact(findings, "AD-RUN-016", "kernel"),
        bisected=_fact(findings, "AD-RUN-018", "name"),
        comparison=read_comparison(compared) if (compared := outcomes.get("reference")) is not None else (),
        stages=custody(findings, outcomes),
    )
    return None if found == Localization() else found


def _culprit(findings: Sequence[Evidence]) -> tuple[str | None, str]:
    # The checked heap stopped the run earlier than without the checks, or in a kernel that frees what it damaged. The
    # debugger stops at whatever uses the damaged block, which may be anything that comes later.
    heap: Evidence | None = None
    for item in findings:
        in_kernel = item.facts.get("call_kind") == "kernel" and item.facts.get("inside") is True
        is_earlier = item.kind == "moved" or (item.kind == "same" and in_kernel)
        if item.code == "AD-RUN-025" and item.severity is not Severity.INFO and is_earlier:
            heap = heap or item
    for code, kinds, how in _TRAILS:
        if heap is not None and code == "AD-RUN-023":
            return heap.subject, _CHECKED_HEAP
        for item in findings:
            if item.code == code and item.severity is not Severity.INFO and (not kinds or item.kind in kinds):
                return item.subject, how
    return None, ""


def _chain_of_values(findings: Sequence[Evidence]) -> str | None:
    """The blame chain of bad values: kernel, what it wrote, the operator and its domain, the source line."""
    item = next((f for f in findings if f.code == "AD-RUN-016" and f.kind in ("nan", "inf", "diverges")), None)
    if item is None:
        return None
    parts = [f"{item.facts.get('kernel')}: {item.observed}"]
    operators, domain, where = (item.facts.get(name) for name in ("operators", "domain", "where"))
    if isinstance(operators, tuple) and operators:
        named = " or ".join(str(one) for one in operators[:4])
        parts.append(f"from {named}" + (f" of {domain}" if domain else "") + (f" at {where}" if where else ""))
    return "; ".join(parts)


def _timeline(case: Case, outcomes: Mapping[str, Outcome]) -> tuple[tuple[TimelineEntry, ...], int]:
    # Where launches only queue work, their order is that of a run that waited for each.
    outcome = outcomes.get("call_trace") or outcomes.get("cuda_blocking")
    if outcome is None or outcome.trace is None or outcome.trace.problem is not None:
        return (), 0
    # An exception leaves its call as well: only what neither returned nor raised was still inside.
    ended = outcome.succeeded
    return timeline(case, outcome.trace, ended=ended)[-_MOST_CALLS:], outcome.trace.total


def _check(case: Case, findings: Sequence[Evidence]) -> Frame | None:
    """The check that a blame chain begins with, as a place in the package's sources."""
    for facts in (item.facts for item in findings if item.facts.get("chain")):
        kernel, member, line = (facts.get(name) for name in ("kernel", "check_member", "check_line"))
        if isinstance(member, str) and isinstance(line, int):
            frame = Frame(index=0, function=str(kernel), file=member, line=line)
            return next(iter(with_sources((frame,), case.model)))
    return None


def _fact(findings: Sequence[Evidence], code: str, name: str) -> str | None:
    found = next((item.facts.get(name) for item in findings if item.code == code and item.facts.get(name)), None)
    return str(found) if found is not None else None
