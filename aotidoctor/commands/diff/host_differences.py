"""Compare two hosts, a package with another host, and the outcomes of two examinations."""

from __future__ import annotations

import re
from dataclasses import replace

from aotidoctor.commands.diff.document_values import NONE, DifferenceTally, DocumentNode, fact_text
from aotidoctor.model import record_json
from aotidoctor.model.case import Case, Host
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.fleet import DocumentDifference
from aotidoctor.model.torch_names import VARIABLES

# Flags of /proc/cpuinfo that the code of a package can need.
_VECTOR = re.compile(r"amx|asimd|avx|bmi|f16c|fma|sse4|sve|vnni|neon")
# Before the rules of ``VARIABLES``.
_SETTINGS = (
    ("setting-device", re.compile(r"(CUDA|NVIDIA|HIP|ROCR)_VISIBLE_DEVICES|CUDA_DEVICE_ORDER")),
    ("setting-library", re.compile(r"LD_(PRELOAD|LIBRARY_PATH)")),
    ("setting-memory", re.compile(r"PYTORCH_\w{0,80}?(ALLOC|MEMORY)")),
)
# Variables for paths and terminals.
_NOISE = frozenset((
    "PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "TMPDIR", "TERM", "COLUMNS", "LANG", "LC_ALL", "CI",
    "FORCE_COLOR", "NO_COLOR", "PYTHONUNBUFFERED", "CPATH", "LIBRARY_PATH",
    "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR",
))  # fmt: skip
_COMPILERS = ("g++", "clang++", "c++")
# A smaller relative difference of memory is none.
_SAME_MEMORY = 0.1
_GIB = 1024**3


def compare_hosts(tally: DifferenceTally, a: DocumentNode, b: DocumentNode, needed: frozenset[str]) -> None:
    """Compare all facts of two hosts; ``needed`` are CPU flags that a package on either side was compiled for."""
    # What a profile does not state is no difference.
    if unstated := {*a.texts("unstated"), *b.texts("unstated")}:
        tally.unknown += [f"host: {name} (a profile does not state it)" for name in sorted(unstated)]
        a, b = a.without(unstated), b.without(unstated)
    tally.compare("platform", "system", a.text("system"), b.text("system"))
    tally.compare("platform", "machine", a.text("machine"), b.text("machine"))
    _torch(tally, a, b)
    _flags(tally, a, b, needed)
    tally.compare("system-software", "CPU", a.text("cpu_model"), b.text("cpu_model"))
    one, two = a.nodes("gpus"), b.nodes("gpus")
    if bool(one) != bool(two):
        tally.compare("gpu-none", "GPUs", _gpu_names(one) or NONE, _gpu_names(two) or NONE)
    elif one:
        tally.compare("gpu-count", "number of GPUs", len(one), len(two))
        tally.compare("gpu", "compute capability", _capabilities(one), _capabilities(two))
        if _capabilities(one) == _capabilities(two):
            tally.compare("gpu-name", "GPUs", _gpu_names(one), _gpu_names(two))
        _memory(tally, "memory of the first GPU", one[0].number("memory_total"), two[0].number("memory_total"))
    tally.compare("driver", "CUDA driver", a.text("cuda_driver") or NONE, b.text("cuda_driver") or NONE)
    tally.compare("glibc", "glibc", a.text("glibc"), b.text("glibc"))
    _libraries(tally, a, b)
    _resources(tally, a, b)
    _software(tally, a, b)


def _torch(tally: DifferenceTally, a: DocumentNode, b: DocumentNode) -> None:
    first, second = a.at("torch"), b.at("torch")
    if first.missing or second.missing:
        tally.compare("torch", "torch", _version(first), _version(second))
        return
    one, two = first.text("version"), second.text("version")
    tally.compare("torch-release", "torch release", _release(one), _release(two))
    if _release(one) == _release(two):
        tally.compare("torch-build", "torch build", one, two)
    tally.compare("torch-cuda", "CUDA of torch", first.text("cuda") or NONE, second.text("cuda") or NONE)
    for name in ("hip", "xpu"):
        tally.compare("torch-build", f"{name} of torch", first.text(name) or NONE, second.text(name) or NONE)
    tally.compare("torch-abi", "CXX11 ABI of torch", first.flag("cxx11_abi"), second.flag("cxx11_abi"))
    tally.compare("torch-build", "debug build of torch", first.flag("debug"), second.flag("debug"))
    tally.skip("paths", first.text("path"), second.text("path"))


def _version(torch: DocumentNode) -> str:
    return NONE if torch.missing else torch.text("version") or NONE


def _release(version: str | None) -> str | None:
    """``2.13`` of ``2.13.0+cpu``."""
    return None if version is None else ".".join(version.partition("+")[0].split(".")[:2])


def _flags(tally: DifferenceTally, a: DocumentNode, b: DocumentNode, needed: frozenset[str]) -> None:
    one, two = set(a.texts("cpu_flags")), set(b.texts("cpu_flags"))
    if not one or not two:
        tally.compare("isa", "CPU flags", "known" if one else None, "known" if two else None)
        return
    vector = {flag for flag in one ^ two if _VECTOR.match(flag)}
    for rule, flags in (("isa-needed", vector & needed), ("isa", vector - needed)):
        if flags:
            subject = "instructions the package needs" if rule == "isa-needed" else "vector instructions"
            tally.differ(rule, subject, _has(flags & one), _has(flags & two))
    tally.equal["host"] += len(one & two)
    tally.left_out["CPU flags without vector instructions"] += len(one ^ two) - len(vector)


def _has(flags: set[str]) -> str:
    return f"has {', '.join(sorted(flags))}" if flags else "without"


def _gpu_names(gpus: tuple[DocumentNode, ...]) -> str:
    return ", ".join(gpu.text("name") or "?" for gpu in gpus)


def _capabilities(gpus: tuple[DocumentNode, ...]) -> str | None:
    found = [gpu.text("compute_capability") for gpu in gpus]
    return None if None in found else ", ".join(f"sm_{one}" for one in dict.fromkeys(found))


def _libraries(tally: DifferenceTally, a: DocumentNode, b: DocumentNode) -> None:
    """Compare the libraries of a package that are found, but not their paths."""
    one, two = a.at("libraries"), b.at("libraries")
    for name in sorted(set(one.names()) & set(two.names())):
        found = [bool(side.text(name)) for side in (one, two)]
        tally.compare("library", name, *("found" if there else "not found" for there in found))
        tally.skip("paths", one.text(name), two.text(name))
    if a.number("symbols_checked") and b.number("symbols_checked"):
        names = [tuple(item.text("name") or "?" for item in side.nodes("missing_symbols")) for side in (a, b)]
        tally.members("symbol", "missing symbols", *names)
    names = [tuple(path.rpartition("/")[2] for path in side.texts("openmp_runtimes")) for side in (a, b)]
    tally.members("openmp", "OpenMP runtimes", *names)


def _resources(tally: DifferenceTally, a: DocumentNode, b: DocumentNode) -> None:
    for name in ("cores", "threads"):
        tally.compare("threads", name, a.number(name), b.number(name))
    _memory(tally, "memory", a.number("memory_total"), b.number("memory_total"))
    tally.skip("free memory and disk", a.number("memory_available"), b.number("memory_available"))
    limits = [side.number("address_space_limit") or NONE for side in (a, b)]
    tally.compare("memory", "limit of the address space", *limits)
    one, two = a.at("tmpdir"), b.at("tmpdir")
    if not one.missing and not two.missing:
        for name in ("exists", "writable", "noexec"):
            tally.compare("tmpdir", f"temporary folder: {name}", one.flag(name), two.flag(name))
        tally.compare("tmpdir", "temporary folder", one.text("problem") or "usable", two.text("problem") or "usable")
        tally.skip("free memory and disk", one.number("free_bytes"), two.number("free_bytes"))


def _memory(tally: DifferenceTally, subject: str, a: float | None, b: float | None) -> None:
    if a and b and abs(a - b) <= _SAME_MEMORY * max(a, b):
        tally.equal["host"] += 1
    else:
        tally.compare("memory", subject, _gib(a), _gib(b))


def _gib(count: float | None) -> str | None:
    return None if count is None else f"{count / _GIB:.1f} GiB"


def _software(tally: DifferenceTally, a: DocumentNode, b: DocumentNode) -> None:
    """Compare tools, variables, Python, the system, and packages; torch has its own rules."""
    one, two = a.mapping("tools"), b.mapping("tools")
    if one and two:
        found = [any(side.get(name) for name in _COMPILERS) for side in (one, two)]
        tally.compare("compiler", "C++ compiler", *("found" if there else "not found" for there in found))
    for name in sorted(set(one) & set(two)):
        if name not in _COMPILERS:
            tally.compare("tool", name, *("found" if side[name] else "not found" for side in (one, two)))
        tally.skip("paths", one[name], two[name])
    one, two = a.mapping("environment"), b.mapping("environment")
    for name in sorted(set(one) | set(two)):
        first, second = one.get(name), two.get(name)
        if name in _NOISE:
            tally.skip("variables of paths and terminals", first, second)
            continue
        by_prefix = next((rule for prefix, rule in VARIABLES.items() if name.startswith(prefix)), "setting")
        rule = next((rule for rule, pattern in _SETTINGS if pattern.match(name)), by_prefix)
        tally.compare(rule, name, *("not set" if value is None else f"={value}" for value in (first, second)))
    tally.compare("python", "Python", a.text("python"), b.text("python"))
    for name in ("distribution", "platform"):
        tally.compare("system-software", name, a.text(name), b.text(name))
    tally.compare("system-software", "container", a.flag("in_container"), b.flag("in_container"))
    one, two = a.mapping("packages"), b.mapping("packages")
    for name in sorted((set(one) | set(two)) - {"torch"}) if one and two else ():
        loaded = name.startswith(("nvidia-", "triton", "mkl", "intel-", "pytorch-triton")) and name != "tritonclient"
        rule = "distribution-package" if loaded else "system-software"
        tally.compare(rule, f"package {name}", *(fact_text(side.get(name, NONE)) for side in (one, two)))


# A package against another host: the host checks, on that host's report.
_LEVELS = {Severity.ERROR: "decisive", Severity.WARN: "relevant", Severity.INFO: "minor"}
_WORDS = {Severity.ERROR: "does not fit", Severity.WARN: "may not fit", Severity.INFO: "fits"}
# The check for torch is only a note, as other checks do without it; here the question is whether the package would run.
_WITHOUT_TORCH = "AD-HOST-013"
_NOT_RESOLVED = "libraries and symbols were not resolved on that host; run `aotidoctor check` there"


def compare_fit(tally: DifferenceTally, case: Case, host: DocumentNode, *, package_is_a: bool) -> None:
    """Add what the package needs and the host lacks as differences; passed checks count as equal."""
    # Imported only for this question.
    from aotidoctor.triage.static_checks import run_host_checks

    for answer in run_host_checks(replace(case, host=_host(host))):
        if isinstance(answer.found, NotChecked):
            tally.unknown.append(f"fit: {answer.check.name}: {answer.found.reason}")
            continue
        # A request of the package that this host permits is no difference.
        unfit = [item for item in answer.found if item.facts.get("permitted") is not True]
        tally.equal["fit"] += 0 if unfit else 1
        for finding in unfit:
            severity = Severity.WARN if finding.code == _WITHOUT_TORCH else finding.severity
            there = f"observed {finding.observed}, expected {finding.expected}"
            difference = DocumentDifference(
                area="fit",
                subject=finding.subject or finding.code,
                a=_WORDS[severity],
                b=there,
                level=_LEVELS[severity],
                why=finding.message or "the package does not fit this host",
                playbook=answer.check.cause,
                codes=(finding.code,),
            )
            swapped = replace(difference, a=there, b=_WORDS[severity])
            tally.differences.append(difference if package_is_a else swapped)


def _host(node: DocumentNode) -> Host:
    host = node.at("host")
    if not isinstance(host.value, dict):
        raise host.misfit("an object")
    try:
        found = record_json.from_json(Host, host.value)
    except record_json.RecordError as error:
        raise CannotExamineError(
            f"{host.file}: at {host.place}: observed {error}, expected the record of a host"
        ) from error
    return found if found.symbols_checked else replace(found, libraries={}, symbols_problem=_NOT_RESOLVED)


# Verdict, causes, findings, ends of runs, signature.
# Parts of a text that change from run to run: addresses, hashes in names of files.
_PASSING = re.compile(r"0x[0-9a-f]+|\b[a-z0-9]{40,}\b")


def compare_outcomes(tally: DifferenceTally, a: DocumentNode, b: DocumentNode) -> None:
    """Compare the outcomes of two examinations: verdicts, causes, warnings and errors, runs, signatures."""
    tally.compare("verdict", "verdict", a.text("verdict"), b.text("verdict"))
    tally.compare("verdict", "fails in", a.text("stage") or NONE, b.text("stage") or NONE)
    causes = [tuple(item.text("cause") or "?" for item in side.nodes("diagnoses")) for side in (a, b)]
    tally.members("cause", "causes", *causes)
    first, second = _loud(a), _loud(b)
    tally.equal["outcome"] += len(set(first) & set(second))
    for key in dict.fromkeys((*first, *second)):
        if (key in first) != (key in second):
            code, kind, subject = key
            name = f"{code} {kind}" + (f" {subject}" if subject else "")
            tally.differ("finding", name, first.get(key, "not found"), second.get(key, "not found"))
    # The ending of the first run of each probe; a probe that only one side ran is no difference.
    one, two = _endings(a), _endings(b)
    for probe in one:
        if probe in two:
            tally.compare("run", f"run {probe}", one[probe], two[probe])
    marks = [side.at("fingerprint") for side in (a, b)]
    if not marks[0].missing and not marks[1].missing:
        tally.compare("signature", "family of the failure", *(mark.text("family") for mark in marks))
        tally.compare("signature", "signature", *(mark.text("exact") for mark in marks))
    else:
        tally.compare("signature", "signature", *(side.text("signature") or NONE for side in (a, b)))
    tally.compare("tool-version", "aotidoctor", a.at("tool").text("version"), b.at("tool").text("version"))
    tally.skip("times", a.text("started"), b.text("started"))
    tally.skip("times", a.number("duration_s"), b.number("duration_s"))


def _loud(report: DocumentNode) -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for item in report.nodes("findings"):
        if item.text("severity") != "info":
            subject = item.text("subject") or ""
            # Only the name of a path: another folder is no other finding.
            named = _PASSING.sub("#", subject.rpartition("/")[2] if subject.startswith("/") else subject)
            key = (item.text("code") or "?", item.text("kind") or "", named)
            found.setdefault(key, (item.text("observed") or "found")[:200])
    return found


def _endings(report: DocumentNode) -> dict[str, str]:
    found: dict[str, str] = {}
    for run in report.nodes("runs"):
        error = run.at("error")
        ended = run.text("ending") or "?"
        if not error.missing:
            ended = f"raised {error.text('type')}"
        elif ended == "signalled":
            ended = run.text("signal") or ended
        elif ended == "exited":
            ended = f"exit {run.number('exit_code')}"
        found.setdefault(run.text("probe") or "?", f"{ended} in {run.text('stage') or '?'}")
    return found
