"""Split wrapper.cpp into its sections, statements and lists, and count what is not understood.

Two thirds of a wrapper are the same in every package. Only three parts hold the contract: the constructor of the model,
the check functions and ``run_impl``. They are found once, by plain search, so the time grows only with the size.

The generator writes a statement per line, with a few exceptions: calls whose arguments are on lines of their own, raw
strings, and comments between ``/*`` and ``*/``, which hold the source of Triton kernels and are left out.

Every statement of these parts is read by a rule, known and skipped on purpose, or counted as not understood. The kind
of fact that may be missing decides which checks report that they could not examine everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field, replace

from aotidoctor.model.contract import Unread
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
class WrapperSection:
    """A part of a file and the number of its first line, counted from 1."""

    text: str
    line: int


@record
class Wrapper:
    """The parts of a wrapper; a part that is not there is empty.

    ``head`` is the text before the constructor: declarations and settings of kernels. ``launches`` is the text between
    the constructor and the checks: the Triton kernels of a GPU package. ``closed``: the end of ``run_impl`` was found
    where the generator marks it.
    """

    head: str
    constructor: WrapperSection
    launches: WrapperSection
    checks: WrapperSection
    body: WrapperSection
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

    def cut(start: int, end: int) -> WrapperSection:
        return WrapperSection(text=text[start:end], line=1 + text.count("\n", 0, start))

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


def _after_brace(text: str, start: int) -> int:
    """The end of the function that ``start`` is in: its brace begins a line."""
    at = text.find("\n}", start)
    return at + 2 if at >= 0 else len(text)


# Statements. No statement of the generator is on more lines than this.
MOST_LINES = 400
_RAW, _RAW_END = 'R"(', ')"'
_OPEN = ("(", ",", "=", "<<")


def split_statements(text: str, line: int) -> Iterator[tuple[int, str]]:
    """``(line, statement)``, blank lines left out; ``line`` is the number of the first line of ``text``."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        start = at
        found = lines[at].strip()
        at += 1
        if found.startswith("/*"):
            at = next((one for one in range(start, len(lines)) if "*/" in lines[one]), len(lines)) + 1
            if at > len(lines):
                # The rest is inside the comment.
                yield line + start, f"{found} without its end"
            continue
        if not found.startswith("//") and (found.endswith(_OPEN) or (_RAW in found and _RAW_END not in found)):
            at, found = _joined(lines, start)
        if found:
            yield line + start, found


def _joined(lines: list[str], start: int) -> tuple[int, str]:
    """The statement that begins at ``start``, on one line, and where the next one begins."""
    parts: list[str] = []
    raw = False
    for at in range(start, min(start + MOST_LINES, len(lines))):
        text = lines[at].strip()
        parts.append(text)
        if raw:
            raw = _RAW_END not in text
        elif _RAW in text:
            raw = _RAW_END not in text.rpartition(_RAW)[2]
        if not raw and not text.endswith(_OPEN) and not text.startswith("//"):
            return at + 1, " ".join(parts)
    # Torn: the lines so far count as one statement that is not understood; going back could take unbounded time.
    return start + len(parts), " ".join(parts)


# Functions of the C shim that only look at handles, or move them.
_RUNTIME = re.compile(
    r"aoti_torch_(?:get_\w+|new_uninitialized_tensor|check_inf_and_nan|print_tensor_handle|save_tensor_handle|"
    r"delete_tensor_object|clone_preserve_strides|\w+_to_ivalue|record_function_\w+|warn|set_\w+|create_\w+)$"
)

# Operators of the C shim that are not called after a device, in any release; those of a device are all operators.
_OPERATOR = re.compile(
    r"aoti_torch_(?:(?:cpu|cuda|xpu|mps|mtia|hpu|aten)_\w+|item_\w+|_embedding_bag|_fft_c2c|_mm_plus_mm_out|_scaled_mm(?:_v2)?|"
    r"_scaled_dot_product_(?:efficient|flash)_attention(?:_v2)?|addmm_out|bmm_out|mm_out|convolution|copy_|index_put_out|"
    r"nonzero|repeat_interleave_Tensor|scatter_out|scatter_reduce_out|tensor_copy_|view_as_real|view_dtype|zero_|"
    r"proxy_executor_call_function)"
)


def is_runtime(function: str) -> bool:
    """Whether ``function`` is one of the runtime, not an operator: it moves handles and reads no elements."""
    return _RUNTIME.match(function) is not None


def is_operator(function: str) -> bool:
    """Whether a function of the C shim is an operator of some release. Other functions are custom operators' own."""
    return not function.startswith("aoti_torch_") or _OPERATOR.fullmatch(function) is not None


# Statements that were not understood, counted by kind of fact, each kind with its first example.
LONGEST_EXAMPLE = 160
# The first word that occurs decides the kind; a statement without any of them may hold anything.
_WORDS = (
    ("output_handles", "output"),
    ("launchKernel", "launch"),
    ("loadKernel", "device-code"),
    ("assert", "assert"),
    ("constants_", "constant"),
    ("inputs", "input"),
    ("input_handles", "input"),
    ("int_array", "buffer"),
    ("empty_strided", "buffer"),
    ("alloc", "buffer"),
    ("reinterpret_tensor", "buffer"),
    ("std::move", "buffer"),
    ("grid", "launch"),
    ("_size", "symbol"),
    ("_stride", "symbol"),
    ("sizes", "symbol"),
    ("strides", "symbol"),
)
_SYMBOL = re.compile(r"(?:auto|int64_t|double) [a-z]+\d+\b")
_CALL = re.compile(r"[\w:.>-]+\(")


@record(kw_only=False, frozen=False)
class NotUnderstood:
    """Collect statements that are not understood, of one part (``constructor``, ``checks``, ``launches``, ``body``)."""

    part: str
    found: dict[str, Unread] = field(default_factory=dict)

    def note(self, fact: str, line: int, text: str) -> None:
        """Note one statement that was not understood and may hold a ``fact``."""
        known = self.found.get(fact)
        if known is None:
            example = text if len(text) <= LONGEST_EXAMPLE else text[:LONGEST_EXAMPLE] + "..."
            self.found[fact] = Unread(part=self.part, fact=fact, count=1, line=line, example=example)
        else:
            self.found[fact] = replace(known, count=known.count + 1)

    def items(self) -> tuple[Unread, ...]:
        """All kinds in the order in which they were met."""
        return tuple(self.found.values())


def fact_kind(text: str) -> str:
    """The kind of fact that a statement may hold, by its words."""
    head = text[:2000]
    for word, fact in _WORDS:
        if word in head:
            return fact
    if _SYMBOL.match(head) is not None:
        return "symbol"
    return "call" if _CALL.match(head) is not None else "statement"
