"""Find what makes a call slow or large on its map: notes to look at, never problems.

Each note has the calls that it is about, and advice that nobody has tried on this package.
"""

from __future__ import annotations

from collections.abc import Iterator

from aotidoctor.localize.call_timeline import text_of
from aotidoctor.model.case import Case
from aotidoctor.model.contract import GENERATED, KernelBody
from aotidoctor.model.evidence import plural
from aotidoctor.model.package_map import MapBuffer, MapCall, MapHint, PackageMap
from aotidoctor.reports.text import short_time, size

# A call is hot from this share of the time on.
_HOT = 0.25
# A launch is tiny below these: as long as what is needed around it.
_TINY_S, _TINY_BYTES, _TINY_SHARE, _MANY = 3e-6, 16 << 10, 0.5, 8
# Words in the names of operators that Inductor itself calls libraries for; what else is called outside its kernels
# fell back.
_PRODUCTS = frozenset(("mm", "addmm", "bmm", "baddbmm", "convolution", "linear"))
_LIBRARIES = _PRODUCTS | {"attention", "fft", "rnn"}
_COPIES = frozenset(("aten.clone", "aten.contiguous", "aten.copy", "aten._to_copy", "aten.constant_pad_nd"))
_VIEWS = frozenset((
    "aten.t", "aten.transpose", "aten.permute", "aten.view", "aten.reshape", "aten.expand", "aten.unsqueeze",
    "aten.squeeze", "aten.as_strided", "aten._unsafe_view",
))  # fmt: skip
_SCRATCH = 1.05
# From this size on, a kernel without a parallel region is one to look at.
_LARGE_BYTES = 1 << 20


def find_hints(case: Case, drawn: PackageMap) -> tuple[MapHint, ...]:
    """The notes on ``drawn``, those of the most time first."""
    found = [*_fallbacks(drawn), *_copies(drawn), *_tiny(drawn), *_one_thread(case, drawn)]
    found.sort(key=lambda hint: -_share(drawn, hint.calls))
    return (*_hot(drawn, tuple(found)), *found, *_first_call(drawn), *_scratch(drawn), *_nonfinite(drawn))


def _share(drawn: PackageMap, calls: tuple[int, ...]) -> float:
    times = [drawn.calls[at].time for at in calls]
    return sum(time.share for time in times if time is not None)


def _percent(drawn: PackageMap, calls: tuple[int, ...]) -> str:
    share = _share(drawn, calls)
    return f", {share:.0%} of the time" if share else ""


def _hot(drawn: PackageMap, others: tuple[MapHint, ...]) -> Iterator[MapHint]:
    """The call that takes most of the time, and the note that may say why."""
    hot = max(drawn.calls, key=lambda call: call.time.share if call.time is not None else 0.0, default=None)
    if hot is None or hot.time is None or hot.time.share < _HOT or len(drawn.calls) < 2:
        return
    why = next((hint for hint in others if hot.index in hint.calls), None)
    rate = f", {size(int(hot.moved / hot.time.seconds))}/s" if hot.moved and hot.time.seconds else ""
    where = f" from {', '.join(hot.where[:3])}" if hot.where else ""
    yield MapHint(
        kind="hot-call",
        text=f"{hot.name}{where} takes {hot.time.share:.0%} of the time ({short_time(hot.time.seconds)}{rate})"
        + (f": {why.kind}" if why is not None else ""),
        calls=(hot.index,),
    )


def _fallbacks(drawn: PackageMap) -> Iterator[MapHint]:
    found: dict[str, list[int]] = {}
    for call in drawn.calls:
        if call.kind == "custom" or (call.kind == "extern" and _LIBRARIES.isdisjoint(call.name.split("_"))):
            found.setdefault(call.name, []).append(call.index)
    for name, calls in found.items():
        at = tuple(calls)
        yield MapHint(
            kind="fallback",
            text=f"{name} is called outside the compiled kernels {plural(len(at), 'time')}{_percent(drawn, at)}",
            calls=at,
            advice="replace the operator by ones that Inductor compiles, or give it a decomposition",
        )


def _copies(drawn: PackageMap) -> Iterator[MapHint]:
    """Kernels that only move elements, right into a product, or fill a buffer with a weight in another layout."""
    writers: dict[str, int] = {}
    found = []
    buffers = {buffer.name: buffer for buffer in drawn.buffers}
    for call in drawn.calls:
        if not _PRODUCTS.isdisjoint(call.name.split("_")):
            found += [writers[name] for name in call.reads if name in writers]
        for name in call.writes:
            operators = set(call.operators)
            copies = bool(operators & _COPIES) and operators <= _COPIES | _VIEWS
            weights = [buffers[one] for one in call.reads if buffers[one].role == "weight"]
            laid_out = any(_has_same_elements(buffers[name], one) for one in weights)
            if call.kind in GENERATED and (laid_out or copies):
                writers[name] = call.index
            else:
                writers.pop(name, None)
    at = tuple(dict.fromkeys(found))
    if at:
        moved = [drawn.calls[one].moved for one in at]
        total = sum(one for one in moved if one is not None)
        sizes = f", {size(total)} moved" if total else ""
        yield MapHint(
            kind="copy-before-product",
            text=f"{plural(len(at), 'kernel call')} copy a tensor into another layout or dtype for a matrix product"
            f"{_percent(drawn, at)}{sizes}",
            calls=at,
            advice="store the weights or pass the inputs in the layout and dtype that the product takes",
        )


def _has_same_elements(made: MapBuffer, weight: MapBuffer) -> bool:
    several = made.shape is not None and len(made.shape) > 1
    return several and weight.shape is not None and sorted(made.shape or ()) == sorted(weight.shape)


def _tiny(drawn: PackageMap) -> Iterator[MapHint]:
    tiny = tuple(call.index for call in drawn.calls if _is_tiny(call))
    if len(tiny) >= _MANY and len(tiny) >= _TINY_SHARE * len(drawn.calls):
        yield MapHint(
            kind="tiny-calls",
            text=f"{len(tiny)} of {plural(len(drawn.calls), 'call')} do very little each{_percent(drawn, tiny)}: "
            "what is done around a call takes as long",
            calls=tiny,
            advice="call the model with larger batches",
        )


def _is_tiny(call: MapCall) -> bool:
    if call.time is not None:
        return call.time.seconds < _TINY_S
    return call.moved is not None and call.moved < _TINY_BYTES and not call.operations


def _one_thread(case: Case, drawn: PackageMap) -> Iterator[MapHint]:
    cores = case.host.cores
    if drawn.run is not None and drawn.run.threads == 1 and cores > 1 and drawn.run.runs:
        yield MapHint(
            kind="one-thread",
            text=f"PyTorch used one thread of {plural(cores, 'core')}: OMP_NUM_THREADS, --threads or the setup sets it",
            calls=tuple(call.index for call in drawn.calls),
            advice="run it again with --threads",
        )
    bodies = {body.name: body for body in (case.contract.bodies if case.contract is not None else ())}
    serial = tuple(
        call.index
        for call in drawn.calls
        if call.kind == "cpp" and (call.moved or 0) >= _LARGE_BYTES and _is_serial(case, bodies.get(call.name))
    )
    if serial and cores > 1:
        yield MapHint(
            kind="serial-kernel",
            text=f"{plural(len(serial), 'call')} of kernels that move 1 MiB or more have no parallel region"
            f"{_percent(drawn, serial)}",
            calls=serial,
            advice="compile the package on a machine, or with a setting, that has more than one thread",
        )


def _is_serial(case: Case, body: KernelBody | None) -> bool:
    text = text_of(case.model, body) if body is not None else None
    return text is not None and "#pragma omp parallel" not in text


def _first_call(drawn: PackageMap) -> Iterator[MapHint]:
    run = drawn.run
    if run is not None and run.first and run.seconds and run.first > 3 * run.seconds and run.first > 1e-3:
        yield MapHint(
            kind="first-call",
            text=f"the first call took {short_time(run.first)} inside the compiled code, later ones "
            f"{short_time(run.seconds)}",
            advice="make one call before requests are served",
        )


def _scratch(drawn: PackageMap) -> Iterator[MapHint]:
    """Memory that operators take and give back themselves."""
    peak = drawn.peak
    if peak.allocated is not None and not peak.unknown and peak.allocated > _SCRATCH * peak.bytes:
        yield MapHint(
            kind="operator-memory",
            text=f"the call held {size(peak.allocated)} at most: {size(peak.allocated - peak.bytes)} more than its "
            "buffers, taken by operators in between",
            calls=tuple(call.index for call in drawn.calls if call.kind not in GENERATED),
        )


def _nonfinite(drawn: PackageMap) -> Iterator[MapHint]:
    first = next((call for call in drawn.calls if call.nonfinite), None)
    if first is not None:
        yield MapHint(
            kind="not-finite",
            text=f"{first.name} is the first call that writes NaN or Inf: {plural(first.nonfinite, 'element')}",
            calls=(first.index,),
            advice="`aotidoctor localize` looks for the cause",
        )
