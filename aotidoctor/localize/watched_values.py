"""Read the values of a run that was watched, one record per computing call, and find the first bad call.

Buffers get the names of wrapper.cpp (``buf0``; inputs by the user's path, constants by their original name) where the
calls of the run are those of the source, in its order; else the names of the kernel's parameters.

The first bad call has bad results although what it read was good: not finite, or not among the values of the reference.
What a call read leads to the call that had written it, so a bad value is followed up to its origin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from math import prod

from aotidoctor.localize.call_timeline import KernelOrigin, is_overwritten, name_of, origin_of, static_calls
from aotidoctor.model.answers import parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.contract import KernelCall
from aotidoctor.model.localization import BufferValues, KernelValues, WatchedCall, WatchedRun, WatchedTensor, Watching
from aotidoctor.model.record import record
from aotidoctor.model.run import CallKind, Outcome, TracedCall
from aotidoctor.model.torch_names import HALF


@record
class WatchedValues:
    """A watched run, and its calls by the names of the package."""

    run: WatchedRun
    calls: tuple[KernelValues, ...] = ()

    @property
    def writers(self) -> tuple[int, ...]:
        """The numbers of the calls that wrote the outputs."""
        return tuple(one.writer for one in self.run.outputs if one.writer is not None)


def read_watched(case: Case, outcome: Outcome) -> WatchedValues:
    """The values that the run recorded; its ``problem`` says why there are none."""
    found = parse_answer(Watching, outcome.result).watch
    if found is None:
        found = WatchedRun(problem="the run ended before its values were reported")
    if found.problem:
        return WatchedValues(run=found)
    symbols = [TracedCall(symbol=one.symbol, argument=one.argument or 0, at=0.0) for one in found.calls]
    # The calls of the source, if the run made exactly those.
    static = case.contract.kernels if case.contract is not None else ()
    names = [name_of(case, call) for call in symbols]
    custom = zip(static, names, strict=False)
    if len(static) != len(names) or names != [name if one.kind == "custom" else one.name for one, name in custom]:
        static = ()
    # A kernel is often called many times, and its text says the same each time.
    overwrites = cache(partial(is_overwritten, case))
    return WatchedValues(
        run=found,
        calls=tuple(
            _call(case, index, record, symbols[index], static[index] if static else None, overwrites=overwrites)
            for index, record in enumerate(found.calls)
        ),
    )


def _call(
    case: Case,
    index: int,
    record: WatchedCall,
    call: TracedCall,
    static: KernelCall | None,
    *,
    overwrites: Callable[[str, str], bool],
) -> KernelValues:
    name = name_of(case, call)
    # A buffer whose memory the kernel writes to without having read what was in it.
    read = [item for item in record.reads if not (item.name.startswith("in_out") and overwrites(name, item.name))]
    sides = (("in", read), ("out", record.writes))
    return KernelValues(
        index=index,
        name=name,
        kind=call.kind.value,
        buffers=tuple(item.as_buffer(_name(case, item, static), role) for role, found in sides for item in found),
    )


def _name(case: Case, item: WatchedTensor, static: KernelCall | None) -> str:
    parameter, position = item.name or "?", item.position
    if static is None or position is None or not 0 <= position < len(static.arguments):
        return parameter
    return user_name(case, static.arguments[position]) or parameter


def user_name(case: Case, generated: str) -> str:
    """The user's name of a tensor of wrapper.cpp: path of an input, original name of a constant; else as it is."""
    # An operator's result is passed by the address of its handle.
    generated = generated.removeprefix("&").removesuffix("_handle")
    if case.contract is None:
        return generated
    leaf = next((leaf.path for leaf in case.contract.leaves if leaf.generated_name == generated), None)
    constant = next((one.original_fqn for one in case.contract.constants if one.name == generated), None)
    return leaf or constant or generated


# The first bad call. Operators that leave the numbers for some finite arguments, and the arguments for which they do.
_DOMAIN = {
    "log": "x <= 0", "log2": "x <= 0", "log10": "x <= 0", "log1p": "x <= -1", "sqrt": "x < 0", "rsqrt": "x <= 0",
    "div": "divisor 0", "reciprocal": "x = 0", "pow": "x < 0 with a fraction as exponent", "acos": "|x| > 1",
    "asin": "|x| > 1", "acosh": "x < 1", "atanh": "|x| >= 1", "fmod": "divisor 0", "remainder": "divisor 0",
    "logit": "x outside 0..1", "xlogy": "y <= 0", "lgamma": "x a pole", "digamma": "x a pole",
    "_softmax": "a row of -Inf", "_log_softmax": "a row of -Inf", "softmax": "a row of -Inf",
    "tan": "a pole", "exp": "x > 88", "expm1": "x > 88", "sinh": "|x| > 88", "cosh": "|x| > 88",
}  # fmt: skip
_NAMED = 3
# They leave the numbers only over too few values: a variance of one, a mean of none.
_OVER_FEW = ("var", "std", "var_mean", "std_mean", "mean")
_PRODUCT = re.compile(r"aoti_torch_[a-z]+_(b?mm)_out")
# Left out of the guess where the bad values are NaN: they overflow to Inf only.
_ONLY_INF = frozenset({"exp", "expm1", "sinh", "cosh"})
_ONLY_NAN = frozenset({"_softmax", "_log_softmax", "softmax", "sqrt", "acos", "asin", "acosh", "fmod", "remainder"})


@record
class FirstBad:
    """The call in which bad values begin.

    ``call`` wrote ``buffer``; ``source`` is the tensor that already held them when it was read (an input or constant),
    None where the call made them. ``operators`` are those of the call that can do it, narrowed down where possible;
    ``domain`` says for which arguments the only one of them does. ``where`` is the user's source line. ``behind`` is a
    call before it whose results may be wrong or not. ``beyond``: another, later call wrote an output that is bad.
    """

    call: KernelValues
    buffer: BufferValues
    source: BufferValues | None = None
    operators: tuple[str, ...] = ()
    domain: str | None = None
    where: str | None = None
    behind: str | None = None
    beyond: bool = False

    @property
    def name(self) -> str:
        """``cpp_fused_add_log_0 (aten.log)``; by its name alone an operator, and a kernel of many operators."""
        if not 0 < len(self.operators) <= _NAMED or self.call.kind == "custom":
            return self.call.name
        return f"{self.call.name} ({', '.join(self.operators)})"

    @property
    def lowest(self) -> float | None:
        """The smallest value that the call read, None when it read none that was seen."""
        return min((b.low for b in self.call.read if b.low is not None), default=None)


def first_nonfinite(case: Case, watched: WatchedValues, *, nan: bool) -> FirstBad | None:
    """The call in which the NaN (``nan``) or Inf of an output began; None where no output has any.

    Inf inside a model is common and meant (a mask of -Inf before a softmax): only what reaches an output counts, and
    for NaN the call that made it of finite or infinite numbers. Inf of reduced precision is no mask: it overflowed, and
    comes before the NaN made from it.
    """
    begin = _back(watched, watched.writers, lambda buffer: _holds(buffer, nan=nan))
    if begin is None:
        return None
    bad = next(b for b in begin.wrote if _holds(b, nan=nan))
    dirty = next((b for b in begin.read if _holds(b, nan=nan)), None)
    if dirty is not None:
        return FirstBad(call=begin, buffer=bad, source=dirty)
    # The call that overflowed in reduced precision and so made the Inf that this call read.
    writers = [b.written_by for b in begin.read if b.inf and b.dtype in HALF and b.written_by is not None]
    overflowed = _back(watched, writers, lambda buffer: bool(buffer.inf)) if nan else None
    if overflowed is not None:
        full = next(b for b in overflowed.wrote if b.inf)
        return _make_first_bad(case, watched, overflowed, full, nan=False)
    return _make_first_bad(case, watched, begin, bad, nan=nan)


def first_diverging(case: Case, watched: WatchedValues) -> FirstBad | None:
    """The first call on the way to a wrong output whose results no node of the reference has, from inputs that agree.

    Intermediate results without a counterpart are common and intended (partial sums, statistics, masks of -Inf): only
    what a wrong output was computed from counts, and only a tensor that ought to be a node. ``behind`` is then the call
    before it whose results may be wrong or intended.
    """
    pending = [one.writer for one in watched.run.outputs if one.writer is not None and not one.agrees]
    chain = sorted(_behind(watched, pending, _disagrees))
    named, bad = 0, None
    for number in chain:
        # The first tensor that the call wrote, that no node has, and that ought to be one: an output always ought.
        call = watched.calls[number]
        wrong = [b for b in call.wrote if _disagrees(b)]
        bad = next(
            (b for b in wrong if _is_node(case, watched, call, b)), wrong[0] if wrong and number in pending else None
        )
        if bad is not None:
            named = number
            break
    if bad is None:
        return None
    call = watched.calls[named]
    sources = {b.written_by for b in call.read if _disagrees(b)}
    behind = next((watched.calls[number].name for number in chain if number < named and number in sources), None)
    origin = _origin(case, watched, call)
    where = origin.where or _place_of(origin.operators, watched)
    beyond = _beyond(watched, call, pending, _disagrees)
    return FirstBad(call=call, buffer=bad, operators=origin.operators, where=where, behind=behind, beyond=beyond)


def _disagrees(buffer: BufferValues) -> bool:
    return buffer.agrees is False


def _beyond(
    watched: WatchedValues, call: KernelValues, writers: Sequence[int], is_bad: Callable[[BufferValues], bool]
) -> bool:
    """Whether one of ``writers`` of outputs wrote bad values, and is not the call itself."""
    others = (watched.calls[number] for number in writers if number != call.index)
    return any(is_bad(buffer) for other in others for buffer in other.wrote)


def _origin(case: Case, watched: WatchedValues, call: KernelValues) -> KernelOrigin:
    """What this one call was made of."""
    return origin_of(case, call.name, static_calls(case, [one.name for one in watched.calls])[call.index])


def _is_node(case: Case, watched: WatchedValues, call: KernelValues, buffer: BufferValues) -> bool:
    """Whether the result ought to be a node of the program.

    An operator's result is one. A generated kernel also keeps what it needs itself: a reduction writes fewer elements
    than it reads (sums before a division, statistics of a norm), and a mask holds -Inf that it did not read.
    """
    if call.kind != CallKind.KERNEL.value:
        # A product that a later kernel adds the bias to: the program knows the sum only.
        product = _PRODUCT.fullmatch(call.name)
        operators = _origin(case, watched, call).operators if product is not None else ()
        return product is None or not operators or f"aten.{product[1]}" in operators
    read = [b for b in call.read if b.seen]
    if buffer.inf and not any(b.inf for b in read):
        return False
    return prod(buffer.shape) >= max((prod(b.shape) for b in read), default=0)


def _back(watched: WatchedValues, start: Iterable[int], is_bad: Callable[[BufferValues], bool]) -> KernelValues | None:
    """The earliest call, going back from ``start`` through bad tensors, that read none which a call had written."""
    begins = [number for number, earlier in _behind(watched, start, is_bad).items() if not earlier]
    return watched.calls[min(begins)] if begins else None


def _behind(
    watched: WatchedValues, start: Iterable[int], is_bad: Callable[[BufferValues], bool]
) -> dict[int, list[int]]:
    """The bad calls reached backwards from ``start``, each with the calls that wrote what it read of bad values."""
    found: dict[int, list[int]] = {}
    pending = list(start)
    while pending:
        number = pending.pop()
        if number in found or not any(map(is_bad, watched.calls[number].wrote)):
            continue
        before = [b.written_by for b in watched.calls[number].read if is_bad(b)]
        found[number] = [one for one in before if one is not None and one < number]
        pending += found[number]
    return found


def _holds(buffer: BufferValues, *, nan: bool) -> bool:
    return bool(buffer.nan if nan else buffer.inf)


def _place_of(operators: Sequence[str], watched: WatchedValues) -> str | None:
    """The line of the only such operators in the reference; None where several lines have them."""
    lines = {place.where for place in watched.run.places if place.target in operators}
    return lines.pop() if len(lines) == 1 else None


def _make_first_bad(
    case: Case, watched: WatchedValues, call: KernelValues, bad: BufferValues, *, nan: bool
) -> FirstBad:
    origin = _origin(case, watched, call)
    # Of reduced precision, products and sums overflow first.
    half = not nan and bad.dtype in HALF
    can = [] if half else [name for name in origin.operators if _leaves(_word(name), call, nan=nan)]
    # A matrix product or a sum can overflow, whatever else is fused with it.
    narrowed = tuple(can) if can and origin.from_name else origin.operators
    domain = _DOMAIN.get(_word(narrowed[0])) if len(narrowed) == 1 else None
    where = origin.where or _place_of(narrowed, watched)
    beyond = _beyond(watched, call, watched.writers, lambda buffer: bool(buffer.nan or buffer.inf))
    return FirstBad(call=call, buffer=bad, operators=narrowed, domain=domain, where=where, beyond=beyond)


def _leaves(word: str, call: KernelValues, *, nan: bool) -> bool:
    """Whether an operator of the call can make values that are not finite out of finite ones."""
    if nan and word in _OVER_FEW:
        return any(size < 2 for b in call.read for size in b.shape)
    return word in _DOMAIN and word not in (_ONLY_INF if nan else _ONLY_NAN)


def _word(operator: str) -> str:
    return operator.rpartition(".")[2]
