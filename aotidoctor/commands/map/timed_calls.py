"""Add to a map what runs in a child show: the time of each call, its values, and what is off from a reference.

A traced call has two stamps: its own, and that of whatever the package calls next, which is mostly bookkeeping right
behind it. Between the two lies the call and one record, whose cost is measured in the same process and taken off. The
first call of the model is left out: it pays for what is done once. Calls are repeated while their spread is large and
there is time; values are looked at in a run of their own, as that takes longer than the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import quantiles

from aotidoctor.commands.map.static_map import LINELESS, lines_of, memory_over_calls, moved_bytes, size_notes
from aotidoctor.localize.call_timeline import launched_name, static_calls
from aotidoctor.localize.watched_values import first_diverging, read_watched, user_name
from aotidoctor.model.answers import Acted, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.jobs import Watch
from aotidoctor.model.localization import BufferValues, KernelValues
from aotidoctor.model.package_map import CallTime, MapBuffer, MapCall, MapRun, PackageMap
from aotidoctor.model.record import record
from aotidoctor.model.run import CallKind, Outcome, Trace
from aotidoctor.model.torch_names import ITEMSIZE, qualified_name
from aotidoctor.probes.payload import called, run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.triage.state import Session

PROBE = "map"
FEW, MOST = 3, 50
# Records that the ring holds, with some room.
_RECORDS = 60_000
# Seconds that the repeated calls may take, and the spread with which they are enough.
_SECONDS, _SPREAD = 5.0, 0.1


@record
class _Seen:
    """One call of the model: the index in the wrapper of each computing call, its seconds, and those of all."""

    indices: tuple[int | None, ...]
    seconds: tuple[float | None, ...]
    total: float | None


def measure_calls(session: Session, drawn: PackageMap) -> PackageMap:
    """``drawn`` with the times and values of runs, as far as they came."""
    first = session.run(run_request(session.case, PROBE, "two timed calls", trace=True, observe=(), calls=2))
    if first is None:
        return _with_notes(drawn, f"nothing was run: {session.refusal()}")
    if first.trace is None or first.trace.problem is not None:
        reason = (
            first.trace.problem if first.trace is not None else read_ending("AD-RUN-024", session.case, first).observed
        )
        return _with_notes(drawn, f"the calls were not timed: {reason}")
    drawn = _with_states(session.case, drawn, first)
    if not first.succeeded:
        ended = read_ending("AD-RUN-024", session.case, first).observed
        return replace(drawn, run=MapRun(ended=ended), notes=(*drawn.notes, f"the run ended: {ended}"))
    outcome, seen = _repeat(session, first)
    drawn = _with_times(drawn, outcome, seen)
    drawn = _with_values(session, drawn)
    last = session.run(run_request(session.case, PROBE, "with the memory it holds", observe=("memory",), calls=1))
    allocated = called(last).allocated_peak if last is not None else None
    return replace(drawn, peak=replace(drawn.peak, allocated=allocated))


def _with_notes(drawn: PackageMap, *notes: str) -> PackageMap:
    return replace(drawn, notes=(*drawn.notes, *notes))


# Times.
def _repeat(session: Session, first: Outcome) -> tuple[Outcome, tuple[_Seen, ...]]:
    """The run with the most calls, repeated until the spread is small or the bounds are reached."""
    best, seen = first, _seen_calls(session.case, first.trace)
    for calls in (FEW * 4, MOST):
        longest = max((one.total or 0.0 for one in seen), default=0.0)
        records = max(1, (first.trace.total if first.trace is not None else 0) // 2)
        bounded = min(calls, _RECORDS // records, int(_SECONDS / longest) if longest else calls)
        if bounded <= len(seen):
            break
        request = run_request(session.case, PROBE, "timed calls", trace=True, observe=(), calls=bounded)
        outcome = session.run(request)
        if outcome is None or not outcome.succeeded or outcome.trace is None or outcome.trace.problem is not None:
            break
        best, seen = outcome, _seen_calls(session.case, outcome.trace)
        low, middle, high = _quartiles([one.total for one in seen[1:] if one.total is not None])
        if middle and (high - low) / middle <= _SPREAD:
            break
    return best, seen


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    if len(values) < 2:
        one = values[0] if values else 0.0
        return one, one, one
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _seen_calls(case: Case, trace: Trace | None) -> tuple[_Seen, ...]:
    return tuple(_seen(case, trace, number) for number in range(1, len(trace.marks) + 1)) if trace is not None else ()


def _seen(case: Case, trace: Trace, number: int) -> _Seen:
    made = trace.of_run(number)
    computing = [at for at, call in enumerate(made) if call.kind is not CallKind.RUNTIME]
    seconds = [
        max(0.0, made[at + 1].at - made[at].at - trace.stamp) if at + 1 < len(made) else None for at in computing
    ]
    total = made[-1].at - made[0].at - (len(made) - 1) * trace.stamp if len(made) > 1 else None
    names = [launched_name(case, made, at) for at in computing]
    return _Seen(
        indices=tuple(_indices(case, names)),
        seconds=tuple(seconds),
        total=None if total is None else max(total, sum(one for one in seconds if one is not None)),
    )


def _indices(case: Case, names: Sequence[str]) -> list[int | None]:
    """The places in the wrapper of the calls ``names`` of a run; None where it does not tell."""
    kernels = case.contract.kernels if case.contract is not None else ()
    places = {id(call): at for at, call in enumerate(kernels)}
    custom = CallKind.CUSTOM.value
    if [qualified_name(call.name) if call.kind == custom else call.name for call in kernels] == list(names):
        return list(range(len(kernels)))
    return [None if call is None else places[id(call)] for call in static_calls(case, names)]


def _with_states(case: Case, drawn: PackageMap, outcome: Outcome) -> PackageMap:
    """What of the last call of the model was entered, and what has returned."""
    seen = _seen_calls(case, outcome.trace)
    if not seen:
        return drawn
    ran = [index for index in seen[-1].indices if index is not None]
    if not ran:
        return _with_notes(drawn, "the run made other calls than the wrapper lists, in another order: see localize")
    last = None if outcome.succeeded or seen[-1].seconds[-1] is not None else ran[-1]
    states = {index: "entered" if index == last else "returned" for index in ran}
    return replace(drawn, calls=tuple(replace(call, state=states.get(call.index)) for call in drawn.calls))


def _with_times(drawn: PackageMap, outcome: Outcome, seen: tuple[_Seen, ...]) -> PackageMap:
    steady = seen[1:]
    found: dict[int, list[float]] = {}
    for one in steady:
        for index, seconds in zip(one.indices, one.seconds, strict=True):
            if index is not None and seconds is not None:
                found.setdefault(index, []).append(seconds)
    spreads = {index: _quartiles(values) for index, values in found.items()}
    all_of = sum(middle for _, middle, _ in spreads.values())
    times = {
        index: CallTime(
            seconds=middle, low=low, high=high, runs=len(found[index]), share=middle / all_of if all_of else 0.0
        )
        for index, (low, middle, high) in spreads.items()
    }
    calls = tuple(replace(call, time=times.get(call.index)) for call in drawn.calls)
    low, middle, high = _quartiles([one.total for one in steady if one.total is not None])
    trace = outcome.trace
    run = MapRun(
        runs=len(steady),
        seconds=middle or None,
        low=low or None,
        high=high or None,
        first=seen[0].total if seen else None,
        stamp=trace.stamp if trace is not None else None,
        threads=parse_answer(Acted, outcome.result).threads,
    )
    texts = {line.where: line.text for line in drawn.lines}
    return replace(drawn, calls=calls, lines=lines_of(calls, texts), run=run)


# Values.
def _with_values(session: Session, drawn: PackageMap) -> PackageMap:
    """With the values of one more call, and what is off from the reference's."""
    case = session.case
    watch = Watch(reference=case.options.reference)
    outcome = session.run(run_request(case, PROBE, "with the values of every call", watch=watch, observe=(), calls=1))
    if outcome is None or not outcome.succeeded:
        reason = session.refusal() if outcome is None else read_ending("AD-RUN-016", case, outcome).observed
        return _with_notes(drawn, f"values were not looked at: {reason}")
    watched = read_watched(case, outcome)
    if watched.run.problem is not None:
        return _with_notes(drawn, f"values were not looked at: {watched.run.problem}")
    indices = _indices(case, [one.name for one in watched.calls])
    by_index = {at: one for at, one in zip(indices, watched.calls, strict=True) if at is not None}
    calls = tuple(_with_found(call, by_index.get(call.index)) for call in drawn.calls)
    buffers = _with_seen_sizes(case, drawn.buffers, by_index)
    sizes = {buffer.name: buffer for buffer in buffers}
    calls = tuple(replace(call, moved=moved_bytes(call, sizes)) for call in calls)
    peak, calls = memory_over_calls(buffers, calls)
    bad = first_diverging(case, watched) if watched.run.compared else None
    wrong = () if bad is None else (f"{bad.name}: {bad.buffer.name} has the values of no node of the program",)
    left = (f"{watched.run.left_out} calls beyond the limit were not looked at",) if watched.run.left_out else ()
    stale = size_notes(drawn.buffers) + ((LINELESS,) if any(call.where for call in calls) else ())
    run = replace(drawn.run or MapRun(), compared=watched.run.compared)
    texts = {line.where: line.text for line in drawn.lines}
    notes = [note for note in drawn.notes if note not in stale]
    return replace(
        drawn,
        calls=calls,
        buffers=buffers,
        peak=peak,
        run=run,
        lines=lines_of(calls, texts),
        notes=(*notes, *wrong, *size_notes(buffers), *watched.run.notes, *left),
    )


def _with_found(call: MapCall, seen: KernelValues | None) -> MapCall:
    if seen is None:
        return call
    alike = [one for one in seen.wrote if one.agrees]
    where = call.where or tuple(dict.fromkeys(one.where for one in alike if one.where))
    nodes = call.nodes or tuple(dict.fromkeys(one.matches for one in alike if one.matches))
    return replace(call, values=seen.buffers, where=where, nodes=nodes)


def _with_seen_sizes(
    case: Case, buffers: tuple[MapBuffer, ...], by_index: dict[int, KernelValues]
) -> tuple[MapBuffer, ...]:
    """Sizes of results that operators allocate: the wrapper does not always tell them."""
    names = {user_name(case, name): buffer.name for buffer in buffers for name in (buffer.name, *buffer.names)}
    seen: dict[str, BufferValues] = {}
    for values in by_index.values():
        for one in values.wrote:
            seen.setdefault(names.get(one.name, one.name), one)
    return tuple(_with_seen_size(buffer, seen.get(buffer.name)) for buffer in buffers)


def _with_seen_size(buffer: MapBuffer, seen: BufferValues | None) -> MapBuffer:
    if buffer.bytes is not None or seen is None or seen.dtype not in ITEMSIZE:
        return buffer
    size = ITEMSIZE[seen.dtype]
    for one in seen.shape:
        size *= one
    shape = buffer.shape or tuple(map(str, seen.shape))
    return replace(buffer, bytes=size, dtype=buffer.dtype or seen.dtype, shape=shape, size=buffer.size or str(size))
