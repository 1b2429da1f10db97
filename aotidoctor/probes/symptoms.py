"""Parse the messages of a failing run into a symptom and facts. A symptom is wording, never a cause.

The wordings are in ``symptoms.toml``, which is read for the first message. After the first CUDA error of a process
later messages are no evidence: that error is found here as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cache
from pathlib import Path

from aotidoctor.model import load_toml
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome
from aotidoctor.model.torch_names import qualified_name

RAISED_FROM = re.compile(r"Exception raised from (?P<function>\S+) at (?P<file>[^\s:]+):(?P<line>\d+)")
# The C++ runtime prints the failed call, with all arguments, before it returns a bare error code.
CALL_FAILED = re.compile(
    r"Error: (?P<shim>aoti_torch_\w+)\([^\n]{0,2000}? API call failed at (?P<file>[^\s,]+), line (?P<line>\d+)"
)
# The shims print each of their exceptions; before 2.13 the caller may get a later one, or no message.
_IN_SHIM = re.compile(r"Exception in aoti_torch: ")
_NEXT_LOG_LINE = re.compile(r"^\[[A-Z]\d{4} \d\d:\d\d:\d\d\.|^Error: ", re.MULTILINE)
# The messages of compilers and linkers for a file that they do not find, and for code that they refuse.
NOT_FOUND = re.compile(
    r"error: [^\w\s./+-]?([\w./+-]{1,200})[^\w\s./+-]?(?:: No such file| file not found)|"
    r"cannot find (-l[\w.+-]{1,100})|\b((?:g\+\+|clang\+\+|c\+\+)(?:-\d{1,3})?): (?:command )?not found"
)
REFUSED_CODE = re.compile(r"\.(?:cpp|h|hpp|cuh|inl):\d{1,7}(?::\d{1,5})?: error: ")
# Only the end of long output is stored: a compiler that warns is present and has found its input.
_WARNED = re.compile(r"\.(?:cpp|h|hpp|cuh|inl):\d{1,7}(?::\d{1,5})?: warning: ")
KERNEL = re.compile(r"\b((?:cpp|triton)_\w*?fused_\w+)")


@record
class Symptom:
    """The wording that was recognised (``other`` when none was), its facts, and the line that contains it."""

    name: str
    line: str
    facts: dict[str, FactValue] = field(default_factory=dict)


@cache
def wordings() -> tuple[tuple[tuple[str, re.Pattern[str]], ...], Mapping[str, str]]:
    """Symptoms with their patterns, in order; the facts of groups whose name is not that of their fact."""
    table = load_toml(Path(__file__).with_name("symptoms.toml").read_text(encoding="utf-8"))
    return tuple((symptom, re.compile(pattern)) for symptom, pattern in table["wordings"]), table["second"]


def recognise(text: str) -> Symptom:
    """The first known wording in ``text``; kernels and places named beside it become facts."""
    patterns, second = wordings()
    for name, pattern in patterns:
        match = pattern.search(text)
        if match:
            facts: dict[str, FactValue] = {key: value for key, value in match.groupdict().items() if value is not None}
            facts |= {fact: facts.pop(group) for group, fact in second.items() if group in facts}
            if "op" in facts:
                facts["op"] = qualified_name(str(facts["op"]))
            return Symptom(name=name, line=line_at(text, match.start()), facts={**facts, **_place(text)})
    first = next((line.strip()[:300] for line in text.splitlines() if line.strip()), "")
    return Symptom(name="other", line=first, facts=_place(text))


def compiler_symptom(symptom: Symptom, text: str) -> Symptom:
    """The symptom of a package that could not be compiled at its load, from the compiler's output in ``text`` (stderr).

    The file that it did not find becomes the fact ``missing``. If it refuses code, the symptom is ``compile-failed``.
    """
    if symptom.name != "link-failed":
        return symptom
    missing = NOT_FOUND.search(text)
    if missing is not None:
        name = next(group for group in missing.groups() if group is not None)
        return replace(symptom, line=line_at(text, missing.start()), facts={**symptom.facts, "missing": name})
    refused = REFUSED_CODE.search(text) or _WARNED.search(text)
    if refused is None:
        return symptom
    line = line_at(text, refused.start()) if refused.re is REFUSED_CODE else symptom.line
    return Symptom(name="compile-failed", line=line, facts={**symptom.facts, "what": "the compiler here refuses them"})


def first_exception(text: str) -> str | None:
    """The first exception of a shim in ``text`` (of stderr), with all its lines; None without any."""
    start = _IN_SHIM.search(text)
    if start is None:
        return None
    end = _NEXT_LOG_LINE.search(text, start.end())
    return text[start.end() : end.start() if end is not None else len(text)].strip()


def _place(text: str) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {}
    raised = RAISED_FROM.search(text)
    if raised:
        facts |= {"function": raised["function"], "file": raised["file"], "file_line": int(raised["line"])}
    kernel = KERNEL.search(raised["function"] if raised else text)
    if kernel:
        facts["kernel"] = kernel[1]
    return facts


def line_at(text: str, position: int) -> str:
    """The line at the position, cut to 300 characters."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[start : end if end >= 0 else len(text)].strip()[:300]


# The first CUDA error of a process: after it the context is dead, and every call fails alike.
# The messages of the runtime for errors after which a context is unusable.
DEADLY = re.compile(
    r"illegal memory access was encountered|device-side assert triggered|misaligned address"
    r"|unspecified launch failure|illegal instruction was encountered|hardware stack error"
    r"|invalid program counter|operation not supported on global/shared address space|the launch timed out"
    r"|uncorrectable ECC error|CUDA_ERROR_(?:ILLEGAL_ADDRESS|ASSERT|MISALIGNED_ADDRESS|LAUNCH_FAILED)"
)
# The output of a kernel before the error itself is reported.
ASSERTION = re.compile(r"block: \[\d+,\s{0,4}\d+,\s{0,4}\d+\].{0,60}?Assertion .{0,600}? failed")
# Cleaning up: messages about a context that had died before.
TEARDOWN = re.compile(
    r"Failed to (?:free|destroy|unload|delete|synchronize)|terminate called|in destructor", re.IGNORECASE
)


@record
class FirstFault:
    """The first CUDA error of a process: its line, the stream with it, and the number of lines of stderr after it."""

    line: str
    stream: str
    after: int = 0


def first_fault(outcome: Outcome) -> FirstFault | None:
    """The first error that killed the context; None if none is known."""
    lines = outcome.stderr_tail.splitlines()
    errors = [index for index, line in enumerate(lines) if DEADLY.search(line) or ASSERTION.search(line)]
    early = [index for index in errors if not TEARDOWN.search(lines[index])]
    if early:
        return FirstFault(line=lines[early[0]].strip()[:300], stream="stderr", after=_after(lines))
    raised = DEADLY.search(outcome.error.message) if outcome.error is not None else None
    if raised is not None and outcome.error is not None:
        return FirstFault(line=line_at(outcome.error.message, raised.start()), stream="result", after=len(errors))
    return FirstFault(line=lines[errors[0]].strip()[:300], stream="stderr", after=_after(lines)) if errors else None


def text_before_dead_context(text: str) -> str:
    """The text up to the first error that kills the context, that line included. Assertions before it belong to it."""
    lines = text.splitlines(keepends=True)
    end = next((index for index, line in enumerate(lines) if DEADLY.search(line)), None)
    return text if end is None else "".join(lines[: end + 1])


def first_error_symptom(symptom: Symptom, outcome: Outcome) -> Symptom:
    """The symptom of the first CUDA error, if an exception with another message came after it."""
    fault = first_fault(outcome)
    return recognise(fault.line) if fault is not None and _is_after_error(outcome, fault) else symptom


def dead_context_facts(outcome: Outcome) -> dict[str, FactValue]:
    """Facts of evidence from this process; empty if nothing killed its context.

    ``tainted`` is True if it ended with another message than that of the first error, which then decides nothing.
    """
    fault = first_fault(outcome)
    if fault is None:
        return {}
    return {"first_cuda_error": fault.line, "tainted": _is_after_error(outcome, fault), "tainted_lines": fault.after}


def _is_after_error(outcome: Outcome, fault: FirstFault) -> bool:
    """Whether the exception has another message than the error before it."""
    if outcome.error is None or fault.stream == "result" or TEARDOWN.search(fault.line):
        return False
    return DEADLY.search(outcome.error.message) is None


def _after(lines: list[str]) -> int:
    last = next((index for index, line in enumerate(lines) if DEADLY.search(line)), len(lines) - 1)
    return len(lines) - last - 1
