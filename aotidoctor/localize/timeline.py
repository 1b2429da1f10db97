"""The call trace as a timeline: the computing calls of a run in their order, with the names that the package gives.

A package's trace holds much bookkeeping (allocations, looks at handles); a call of that kind matters only where the run
ended in it. A computing call has returned when another call was entered after it; of the last one nobody knows.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.localize.origins import Origin, origin_of
from aotidoctor.model.case import Case
from aotidoctor.model.localization import TimelineEntry
from aotidoctor.model.operators import qualified
from aotidoctor.model.record import record
from aotidoctor.model.trace import CallKind, Trace, TracedCall

RETURNED, ENTERED = "returned", "entered"
_UNWINDING = ("aoti_torch_delete_tensor_object", "aoti_torch_grad_mode_set_enabled")


@record
class LastCall:
    """Where a run ended: the call entered last.

    ``name`` is the kernel, the shim or the operator; ``run`` the call of the model (from 1, 0 before the first);
    ``after`` the computing call before it, None where it is the first.
    """

    call: TracedCall
    name: str
    run: int
    after: str | None
    origin: Origin


def timeline(case: Case, trace: Trace, *, ended: bool) -> tuple[TimelineEntry, ...]:
    """The computing calls. ``ended`` tells that the run came to its end, so that its last call has returned."""
    entries: list[TimelineEntry] = []
    for number in range(1, len(trace.marks) + 1):
        made = trace.of_run(number)
        computing = [index for index, call in enumerate(made) if call.kind is not CallKind.RUNTIME]
        for place, index in enumerate(computing):
            following = made[computing[place + 1]] if place + 1 < len(computing) else None
            last = index + 1 == len(made) and number == len(trace.marks) and not ended
            name = launched_name(case, made, index)
            pair = (made[index], following)
            entries.append(_entry(case, name, pair, run=number, state=ENTERED if last else RETURNED))
    return tuple(entries)


def last_call(case: Case, trace: Trace, *, raised: bool) -> LastCall | None:
    """Where the run ended; None when no call was traced in a call of the model.

    ``raised``: it ended by an exception, which on its way out makes calls that give tensors back.
    """
    run = len(trace.marks)
    made = trace.of_run(run)
    while raised and made and made[-1].symbol in _UNWINDING:
        made = made[:-1]
    if not made:
        return None
    before = [call for call in made[:-1] if call.kind is not CallKind.RUNTIME]
    return LastCall(
        call=made[-1],
        name=name_of(case, made[-1]),
        run=run,
        after=name_of(case, before[-1]) if before else None,
        origin=origin_of(case, name_of(case, made[-1])),
    )


def name_of(case: Case, call: TracedCall) -> str:
    """The operator of a proxy-executor call; the symbol of any other."""
    if call.kind is not CallKind.CUSTOM or case.model is None:
        return call.symbol
    nodes = case.model.extern_nodes
    return qualified(nodes[call.argument].target) if 0 <= call.argument < len(nodes) else call.symbol


def launched_name(case: Case, made: Sequence[TracedCall], index: int) -> str:
    """The kernel of launch ``index`` of one call of the model; the symbol where the wrapper does not tell.

    The trace sees ``cuLaunchKernel`` only: the n-th of a call is the n-th kernel of the wrapper. One whose calls are
    under conditions has no fixed order: then launches and kernels differ.
    """
    call = made[index]
    if call.kind is not CallKind.LAUNCH:
        return name_of(case, call)
    static = [(one.kind, one.name) for one in (case.contract.kernels if case.contract is not None else ())]
    seen = [one for one in made[: index + 1] if one.kind in (CallKind.LAUNCH, CallKind.EXTERN)]
    if len(seen) > len(static) or any(not _alike(one, two) for one, two in zip(seen, static, strict=False)):
        return call.symbol
    return static[len(seen) - 1][1]


def _alike(call: TracedCall, static: tuple[str, str]) -> bool:
    kind, name = static
    return kind == "triton" if call.kind is CallKind.LAUNCH else name == call.symbol


def _entry(case: Case, name: str, pair: tuple[TracedCall, TracedCall | None], *, run: int, state: str) -> TimelineEntry:
    call, following = pair
    origin = origin_of(case, name)
    return TimelineEntry(
        name=name,
        kind=call.kind.value,
        call=run,
        state=state,
        seconds=None if following is None else max(0.0, following.at - call.at),
        # The comment above an operator's call names the nodes fused around it as well; a name need not be said twice.
        origins=() if call.kind is CallKind.CUSTOM or origin.from_name else origin.operators,
        where=origin.where,
    )
