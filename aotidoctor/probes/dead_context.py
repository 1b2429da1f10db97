"""Find the first CUDA error of a process: after it the context is dead, and every call fails alike.

Later messages of the process are no evidence.
"""

from __future__ import annotations

import re

from aotidoctor.model.evidence import FactValue
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome
from aotidoctor.probes.symptoms import Symptom, line_at, recognise

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
