"""Where the parts of a ``wrapper.cpp`` are, and how its lists are cut.

Two thirds of a wrapper are the same in every package; only three parts hold the contract: the constructor of the model,
the check functions and ``run_impl``. They are found once, by plain search, so that the time grows with the size only.
"""

from __future__ import annotations

import re

from aotidoctor.model.record import record

_CONSTRUCTOR = re.compile(r":\s*AOTInductorModelBase\(\s*\d+\s*,\s*\d+\s*,\s*\d+")
_RUN_IMPL = re.compile(r"::run_impl\(")
_CHECKS = re.compile(
    r"^(?:AOTI_NOINLINE )?(?:static )?(?:AOTI_NOINLINE )?void (?:check_input_\d+|__check_inputs_outputs)\(",
    re.MULTILINE,
)
_END = re.compile(r"\n\} // \w+::run_impl")
_BRACKETS = re.compile(r"[(\[{}\]),]")


@record
class Section:
    """A part of a file and the number of its first line, counted from 1."""

    text: str
    line: int


@record
class Wrapper:
    """The parts of a wrapper; a part that is not there is empty.

    ``head`` is what stands before the constructor: declarations and settings of kernels. ``launches`` is what stands
    between the constructor and the checks: the Triton kernels of a GPU package. ``closed`` tells that the end of
    ``run_impl`` was found where the generator marks it.
    """

    head: str
    constructor: Section
    launches: Section
    checks: Section
    body: Section
    command: str
    closed: bool


def find_sections(text: str) -> Wrapper:
    """Locate the parts of ``text``."""
    base = _CONSTRUCTOR.search(text)
    start = base.start() if base is not None else 0
    constructor_end = _after_brace(text, start) if base is not None else 0
    run = _RUN_IMPL.search(text, constructor_end)
    body_start = run.start() if run is not None else len(text)
    checks = _CHECKS.search(text, constructor_end, body_start)
    checks_start = checks.start() if checks is not None else body_start
    marked = _END.search(text, body_start)
    body_end = _after_brace(text, body_start) if marked is None else marked.start() + 2
    cut = _Cutter(text)
    return Wrapper(
        head=text[:start],
        constructor=cut(start, constructor_end),
        launches=cut(constructor_end, checks_start),
        checks=cut(checks_start, body_start),
        body=cut(body_start, body_end),
        command=compile_command(text),
        closed=marked is not None,
    )


def compile_command(text: str) -> str:
    """The compile and link commands that the builder appends as comments; empty when there are none."""
    at = text.rfind("\n// Compile cmd")
    return text[at:] if at >= 0 else ""


def split_list(text: str) -> tuple[str, ...]:
    """``"s1, f(a, b), "`` to ``("s1", "f(a, b)")``: cut at the commas outside of brackets."""
    if "(" not in text and "{" not in text:
        return tuple(part for part in map(str.strip, text.split(",")) if part)
    parts, depth, start = [], 0, 0
    for mark in _BRACKETS.finditer(text):
        sign = mark.group()
        if sign == ",":
            if depth == 0:
                parts.append(text[start : mark.start()].strip())
                start = mark.end()
        else:
            depth += 1 if sign in "([{" else -1
    parts.append(text[start:].strip())
    return tuple(part for part in parts if part)


class _Cutter:
    """Cuts sections in ascending order, counting each line once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1

    def __call__(self, start: int, end: int) -> Section:
        self._line += self._text.count("\n", self._at, start)
        self._at = start
        return Section(text=self._text[start:end], line=self._line)


def _after_brace(text: str, start: int) -> int:
    """Where the function ends that ``start`` is in: its brace begins a line."""
    at = text.find("\n}", start)
    return at + 2 if at >= 0 else len(text)
