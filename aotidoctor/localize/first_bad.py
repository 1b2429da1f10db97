"""The first call of a watched run whose results are bad although what it read was good.

Two kinds of bad: not finite, and not among the values of the reference. Both look at what a call read and wrote, and at
which call had written what it read; so a bad value is followed up to where it came into being.
"""

from __future__ import annotations

from dataclasses import dataclass

from aotidoctor.localize.kernel_values import Watched
from aotidoctor.localize.origins import origin_of
from aotidoctor.model.case import Case
from aotidoctor.model.localization import BufferValues, KernelValues

HALF = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
# Operators that leave the numbers for some finite arguments, and the arguments for which they do.
_DOMAIN = {
    "log": "x <= 0", "log2": "x <= 0", "log10": "x <= 0", "log1p": "x <= -1", "sqrt": "x < 0", "rsqrt": "x <= 0",
    "div": "divisor 0", "reciprocal": "x = 0", "pow": "x < 0 with a fraction as exponent", "acos": "|x| > 1",
    "asin": "|x| > 1", "acosh": "x < 1", "atanh": "|x| >= 1", "fmod": "divisor 0", "remainder": "divisor 0",
    "logit": "x outside 0..1", "xlogy": "y <= 0", "lgamma": "x a pole", "digamma": "x a pole",
    "_softmax": "a row of -Inf", "_log_softmax": "a row of -Inf", "softmax": "a row of -Inf",
    "tan": "a pole", "exp": "x > 88", "expm1": "x > 88", "sinh": "|x| > 88", "cosh": "|x| > 88",
}  # fmt: skip
# Left out of the guess where the bad values are NaN: they overflow to Inf only.
_ONLY_INF = frozenset({"exp", "expm1", "sinh", "cosh"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBad:
    """Where bad values begin.

    ``call`` wrote ``buffer``; ``source`` is the tensor that already held them when it was read (an input or constant),
    None where the call made them. ``operators`` are those of the call that can do it, narrowed down where possible;
    ``domain`` says for which arguments the only one of them does. ``where`` is the user's source line.
    """

    call: KernelValues
    buffer: BufferValues
    source: BufferValues | None = None
    operators: tuple[str, ...] = ()
    domain: str | None = None
    where: str | None = None

    @property
    def name(self) -> str:
        """``cpp_fused_add_log_0 (aten.log)``; an operator of its own by its name alone."""
        if not self.operators or self.call.kind == "custom":
            return self.call.name
        return f"{self.call.name} ({', '.join(self.operators[:4])})"

    @property
    def lowest(self) -> float | None:
        """The smallest value that the call read, None when it read none that was seen."""
        return min((b.low for b in self.call.buffers if b.role == "in" and b.low is not None), default=None)


def first_nonfinite(case: Case, watched: Watched, *, nan: bool) -> FirstBad | None:
    """The first call that wrote NaN (``nan``) or Inf; Inf of reduced precision comes before the NaN made from it."""
    for call in watched.calls:
        bad = next((b for b in call.buffers if b.role == "out" and _holds(b, nan=nan)), None)
        if bad is None:
            continue
        dirty = next((b for b in call.buffers if b.role == "in" and _holds(b, nan=nan)), None)
        if dirty is not None:
            # Of what calls wrote the first bad one would have been met before: this is an input, or a constant.
            return FirstBad(call=call, buffer=bad, source=dirty)
        overflowed = _overflow_behind(case, watched, call) if nan else None
        return overflowed or _made(case, call, bad, nan=nan)
    return None


def first_diverging(case: Case, watched: Watched) -> FirstBad | None:
    """The first call on the way to a wrong output whose results no node of the reference has, from inputs that agree.

    Intermediate results without a counterpart are common and harmless (partial sums): only what a wrong output was
    computed from counts.
    """
    pending = [number for _, number in watched.written_by if number is not None]
    seen: set[int] = set()
    begins: list[int] = []
    while pending:
        number = pending.pop()
        if number in seen or not _diverges(watched.calls[number]):
            continue
        seen.add(number)
        before = [
            b.written_by
            for b in watched.calls[number].buffers
            if b.role == "in" and b.written_by is not None and b.agrees is False and b.written_by < number
        ]
        if before:
            pending += before
        else:
            begins.append(number)
    if not begins:
        return None
    call = watched.calls[min(begins)]
    bad = next(b for b in call.buffers if b.role == "out" and b.agrees is False)
    origin = origin_of(case, call.name)
    return FirstBad(call=call, buffer=bad, operators=origin.operators, where=origin.where)


def _diverges(call: KernelValues) -> bool:
    return any(b.role == "out" and b.agrees is False for b in call.buffers)


def _holds(buffer: BufferValues, *, nan: bool) -> bool:
    return bool(buffer.nan if nan else buffer.inf)


def _overflow_behind(case: Case, watched: Watched, call: KernelValues) -> FirstBad | None:
    """The call that overflowed in reduced precision and so made the Inf that this call read."""
    for read in call.buffers:
        if read.role == "in" and read.inf and read.dtype in HALF and read.written_by is not None:
            return first_nonfinite(case, watched, nan=False)
    return None


def _made(case: Case, call: KernelValues, bad: BufferValues, *, nan: bool) -> FirstBad:
    origin = origin_of(case, call.name)
    can = [name for name in origin.operators if _word(name) in _DOMAIN and not (nan and _word(name) in _ONLY_INF)]
    # A matrix product or a sum can overflow, whatever else is fused with it.
    narrowed = tuple(can) if can and origin.from_name else origin.operators
    domain = _DOMAIN.get(_word(narrowed[0])) if len(narrowed) == 1 else None
    return FirstBad(call=call, buffer=bad, operators=narrowed, domain=domain, where=origin.where)


def _word(operator: str) -> str:
    return operator.rpartition(".")[2]
