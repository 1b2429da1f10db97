"""Build blame chains for assertion messages of a log, operators that refuse an index, and unchecked indices.

A GPU prints one line per thread that failed, so equal ones are counted, not repeated. A fallback operator checks its
own indices and says nothing of the kernel, the input or the element: what it was called with is in the source of the
package; the integers are in the inputs file.

``config.assert_indirect_indexing=False`` leaves the checks out of the code, which then silently reads other memory.
What an input makes a kernel read is compared with the memory of the table itself: an index is reported only where its
element lies beyond all of it, whatever the other terms of the offset are. A kernel that reads on a condition is left
alone, since the condition may be the check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from aotidoctor.kernels.value_trees import Computed, KernelCheck, Number, Value, Variable, factor, reads
from aotidoctor.localize.blame.chain import Suspect, chain_for, chain_of
from aotidoctor.localize.blame.failing_elements import (
    INDEX,
    OFFSETS,
    CheckQuery,
    Failure,
    IndexedTensor,
    constant_number,
    failing_element,
    indexed_tensor,
    out_of_range,
)
from aotidoctor.localize.blame.package_program import (
    INTEGERS,
    CallMemories,
    InputMemory,
    PackageProgram,
    program_of,
    sources_of,
)
from aotidoctor.localize.call_timeline import text_of
from aotidoctor.model.case import Case
from aotidoctor.model.localization import Chain
from aotidoctor.model.record import record

# Assertion messages, in stderr of a run or in a log.
_ASSERTION = re.compile(
    r"(?<![^\s:])(?P<file>[^\s:]+):(?P<line>\d{1,9}): [^\n`]{0,400}?block: \[(?P<block>\d+,\d+,\d+)\], "
    r"thread: \[(?P<thread>\d+,\d+,\d+)\] Assertion `(?P<text>[^`\n]{1,1000}?)` failed"
)
OUT_OF_BOUNDS = re.compile(
    r"index out of bounds: (?:0 <= )?(?P<variable>\w+) < (?P<bound>[^\s`\"]+(?: [-+] [^\s`\"]+)*)"
)
_FROM = re.compile(r"Exception raised from (?P<kernel>(?:cpp|triton)_\w+) at [^\s:]+:(?P<line>\d+)")
# A grid of a million threads may print as many lines.
_MOST = 100_000


@record
class DeviceAssert:
    """An assertion that failed on the GPU.

    ``file`` and ``line`` are those of the kernel's source on the machine that compiled it; ``block`` and ``thread`` the
    first that failed, ``count`` the number of threads that did.
    """

    text: str
    file: str
    line: int
    block: tuple[int, ...]
    thread: tuple[int, ...]
    count: int = 1

    @property
    def failure(self) -> Failure | None:
        """The check in the kernel's text; None for an assertion of other code (ATen has its own)."""
        found = OUT_OF_BOUNDS.match(self.text)
        if found is None:
            return None
        return Failure(kind=INDEX, variable=found["variable"], bound=found["bound"], source_line=self.line)


def device_asserts(text: str) -> tuple[DeviceAssert, ...]:
    """Every assertion once, in the order of the log."""
    found: dict[tuple[str, str, str], list[re.Match[str]]] = {}
    for one in islice(_ASSERTION.finditer(text), _MOST):
        found.setdefault((one["file"], one["line"], one["text"]), []).append(one)
    return tuple(
        DeviceAssert(
            text=first["text"],
            file=first["file"],
            line=int(first["line"]),
            block=_numbers(first["block"]),
            thread=_numbers(first["thread"]),
            count=len(several),
        )
        for several in found.values()
        for first in several[:1]
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def failures_in(text: str) -> tuple[Failure, ...]:
    """The failures in a log, assertions of the GPU first."""
    on_device = [failure for one in device_asserts(text) if (failure := one.failure) is not None]
    rest = _ASSERTION.sub("", text)
    place = _FROM.search(rest)
    raised = [
        Failure(
            kind=INDEX,
            variable=one["variable"],
            bound=one["bound"],
            kernel=place["kernel"] if place is not None else None,
            line=int(place["line"]) if place is not None else None,
        )
        for one in OUT_OF_BOUNDS.finditer(rest)
    ]
    return tuple(dict.fromkeys((*on_device, *raised)))


def chains_in(case: Case, text: str) -> Sequence[Chain]:
    """The blame chain of each failed check in a log, from the package and the words of the log alone."""
    found = (chain_of(case, failure) for failure in failures_in(text))
    return tuple(dict.fromkeys(chain for chain in found if chain is not None))


# Operators of ATen that refused an index.
_NAME = re.compile(r"[A-Za-z_]\w{0,200}")
_BAG = "embedding_bag"


def operator_chain(program: PackageProgram, failure: Failure) -> tuple[str, Chain] | None:
    """The kind of the fault (``index`` or ``offsets``) and its chain; None where the call is not known."""
    # The call on the line that the runtime named; else the only one of that name.
    calls = program.calls(failure.kernel or "")
    exact = [at for at in calls if program.call(at).line == failure.line]
    at = exact[0] if exact else calls[0] if len(calls) == 1 else None
    if at is None:
        return None
    if _BAG in program.call(at).name:
        arguments = program.call(at).arguments
        rows, origin = _rows(program, arguments[0])
        indices, offsets = (_input_argument(program, at, name) for name in (*arguments[1:3], "", "")[:2])
        if offsets is not None and offsets.values:
            reach = len(indices.values) if indices is not None else None
            wrong = _bad_offset(offsets, reach)
            if wrong is not None:
                place, why = wrong
                named = f"{indices.path}.shape[0]" if indices is not None else None
                return OFFSETS, _chain(program, at, offsets, [place], f"offset {why}", bound=reach, origin=named)
        bad = _outside(indices, rows) if indices is not None else []
        if indices is not None and bad:
            value = indices.values[bad[0]]
            return INDEX, _chain(
                program, at, indices, bad, f"index {value} of {rows}", bound=rows, origin=origin, index=value
            )
        return INDEX, _unfollowed_chain(program, at, arguments[1:2], rows, origin)
    return INDEX, _indexing(program, at, failure)


def _bad_offset(offsets: InputMemory, reach: int | None) -> tuple[int, str] | None:
    """The first offset that breaks a rule, and the rule."""
    before = 0
    for place, value in enumerate(offsets.values):
        if place == 0 and value != 0:
            return 0, f"{value}, which has to be 0"
        if value < before:
            return place, f"{value} after {before}, which must not decrease"
        if reach is not None and value > reach:
            return place, f"{value} beyond the {reach} indices"
        before = value
    return None


def _indexing(program: PackageProgram, at: int, failure: Failure) -> Chain:
    """Any other operator: the one integer input with the value, or with values beyond the bound, that was named."""
    arguments = program.call(at).arguments
    size = int(failure.bound) if failure.bound is not None and failure.bound.isdigit() else None
    guilty = []
    inputs = (_input_argument(program, at, name) for name in dict.fromkeys(_names(arguments)))
    for given in (one for one in inputs if one is not None):
        places = [place for place, value in enumerate(given.values) if value == failure.value]
        if not places and (failure.value is None or size is not None):
            places = _outside(given, size)
        if places:
            guilty.append((given, places))
    if len(guilty) != 1:
        return _unfollowed_chain(program, at, arguments, size, None)
    given, places = guilty[0]
    value = given.values[places[0]]
    return _chain(
        program, at, given, places, f"index {value}" + (f" of {size}" if size else ""), bound=size, index=value
    )


def _outside(given: InputMemory, bound: int | None) -> list[int]:
    return [place for place, value in enumerate(given.values) if value < 0 or (bound is not None and value >= bound)]


def _rows(program: PackageProgram, name: str) -> tuple[int | None, str | None]:
    """Rows of the table, and what to call them."""
    root = program.root(name)
    constant, leaf = program.constants.get(root), program.leaves.get(root)
    if constant is not None and constant.shape:
        return constant.shape[0], f"{constant.fqn}.shape[0]"
    tensor = program.tensors.get(leaf.path) if leaf is not None else None
    return (
        (tensor.shape[0], f"{leaf.path}.shape[0]")
        if leaf is not None and tensor is not None and tensor.shape
        else (None, None)
    )


def _input_argument(program: PackageProgram, at: int, name: str) -> InputMemory | None:
    """The input that the argument is, if it is one and still holds what the caller passed."""
    leaf = program.leaves.get(program.root(name))
    tensor = program.tensors.get(leaf.path) if leaf is not None else None
    if leaf is None or tensor is None or tensor.dtype not in INTEGERS or program.writer(name, at) is not None:
        return None
    values = tensor.elements() if tensor.elements is not None else None
    if values is None:
        return None
    return InputMemory(path=leaf.path, shape=tensor.shape, values=[int(one) for one in values])


def _names(arguments: Sequence[str]) -> Iterator[str]:
    """Names of tensors, also those in a list of handles."""
    for text in arguments:
        yield from (name.removesuffix("_handle") for name in _NAME.findall(text[:4000]))


def _chain(
    program: PackageProgram,
    at: int,
    given: InputMemory,
    places: Sequence[int],
    what: str,
    *,
    bound: int | None = None,
    origin: str | None = None,
    index: int | None = None,
) -> Chain:
    call = program.call(at)
    return Chain(
        kernel=call.name,
        what=what,
        elements=given.origin(places[0]),
        count=len(places),
        direct=True,
        index=index,
        bound=bound,
        origin=origin,
        operators=tuple(call.origins),
    )


def _unfollowed_chain(
    program: PackageProgram, at: int, arguments: Sequence[str], bound: int | None, origin: str | None
) -> Chain:
    """Without an element: the inputs that the indices may have been computed from."""
    call = program.call(at)
    known = [
        name
        for name in _names(arguments)
        if program.root(name) in program.leaves or program.writer(name, at) is not None
    ]
    sources, through = sources_of(program, at, known if len(known) == 1 else ())
    return Chain(
        kernel=call.name,
        what=f"index out of 0..{bound - 1}" if bound else "an index that the operator refuses",
        sources=sources,
        through=through,
        bound=bound,
        origin=origin,
        operators=tuple(call.origins),
    )


# Indices that nothing checks. A lambda that is called on a condition.
_CONDITIONAL = re.compile(r"\? *\w+\(\)|decltype\(\w+\(\)\)|\bif *\(tmp")
_MOST_QUESTIONS = 200


def unchecked_chain(case: Case) -> tuple[Failure, Chain] | None:
    """The first element of an input that makes a kernel read outside of a table; None where none is known to."""
    program = program_of(case)
    if program is None or program.contract.bound_checks:
        return None
    if not any(tensor.dtype.startswith(("int", "uint")) for tensor in program.tensors.values()):
        return None
    tried: set[tuple[str, Value, int]] = set()
    for at, call in enumerate(program.contract.kernels):
        body = program.bodies.get(call.name) if call.kind == "cpp" else None
        text = text_of(program.case.model, body) if body is not None else None
        if text is None or _CONDITIONAL.search(text) is not None:
            continue
        failure = Failure(kind=INDEX, kernel=call.name)
        for suspect in _suspects(program, at):
            if len(tried) >= _MOST_QUESTIONS:
                return None
            tried.add((call.name, suspect.question.value, at))
            found = failing_element(suspect.question, CallMemories(program, at), exactly=True)
            if found is not None and found.elements:
                return failure, chain_for(program, failure, suspect, found)
    return None


def _suspects(program: PackageProgram, at: int) -> Iterator[Suspect]:
    flow = program.flow(program.call(at).name)
    memories = CallMemories(program, at)
    for access in dict.fromkeys(flow.accesses) if flow is not None else ():
        for index in _indices(access.at):
            table, step = indexed_tensor(program, at, access.parameter), factor(access.at, index)
            stride = constant_number(step, memories) if step is not None else None
            if table is None or stride is None or stride < 1 or not _only_adds(access.at, index):
                continue
            limit = _reach(table, stride)
            if limit is None:
                continue
            check = KernelCheck(
                variable="", bound=str(limit), line=0, value=index, limit=Number(limit), mask=None, loops=()
            )
            question = CheckQuery(value=index, limit=check.limit, mask=None, loops=access.loops, bad=out_of_range)
            yield Suspect(at=at, question=question, check=check)


def _indices(offset: Value) -> Iterator[Value]:
    """The terms of an offset that come from elements: ``tmp0`` of ``x2 + 24*tmp0``."""
    match offset:
        case Computed(operation="+", operands=operands):
            for operand in operands:
                yield from _indices(operand)
        case Computed(operation="*", operands=(left, right)) if not reads(left):
            yield from _indices(right)
        case Computed(operation="*", operands=(left, right)) if not reads(right):
            yield from _indices(left)
        case _ if reads(offset):
            yield offset


def _reach(table: IndexedTensor, stride: int) -> int | None:
    """How many indices in steps of ``stride`` elements lie inside of the table's memory; None where it is not known."""
    if len(table.shape) != len(table.stride) or None in (*table.shape, *table.stride):
        return None
    pairs = [(size or 0, step or 0) for size, step in zip(table.shape, table.stride, strict=True)]
    if any(size < 1 or step < 0 for size, step in pairs):
        return None
    return sum((size - 1) * step for size, step in pairs) // stride + 1


def _only_adds(offset: Value, index: Value) -> bool:
    """Whether nothing beside the index can take anything off the offset."""
    if offset == index:
        return True
    match offset:
        case Number(value=value):
            return value >= 0
        case Variable():
            return True
        case Computed(operation="+" | "*", operands=operands):
            return all(_only_adds(one, index) for one in operands)
        case _:
            return False
