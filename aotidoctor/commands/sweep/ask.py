"""Make the calls, each in a child forked from the one that loaded the package, and say what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from aotidoctor.commands.diagnose import REFERENCE_MODULES, given_or_new
from aotidoctor.commands.sweep.judge import judge, package_does, program_does, says
from aotidoctor.commands.sweep.points import Point, plan
from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Case, Options
from aotidoctor.model.contract import Contract
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.record import record
from aotidoctor.model.run import NotStarted, Outcome, Request, TimedOut
from aotidoctor.model.sweep import Does, Judged, Says, Sweep, SweepRow
from aotidoctor.probes.payload import run_request
from aotidoctor.readers.inputs.generate import described
from aotidoctor.runner import Runner
from aotidoctor.triage import open_case

OnRow = Callable[[SweepRow, int, int], None]
_CHECKS = "AOTI_RUNTIME_CHECK_INPUTS"
# What a call may take longer than the one before it.
_SLACK_S = 2.0


def sweep(
    package: str,
    options: Options,
    *,
    environ: Mapping[str, str],
    most: int | None = None,
    on_row: OnRow = lambda _row, _at, _of: None,
    runner: Runner | None = None,
) -> Sweep:
    """Walk the boundary of the contract until ``most`` calls (None: all) are made, or ``options.budget`` is spent.

    Raises:
        CannotExamineError: there is no package with a contract, or no process for it.
    """
    began = time.monotonic()
    deadline = None if options.budget is None else began + options.budget
    case, contract = _case(package, options, environ)
    planned = plan(contract, _baked(case), seed=options.seed)
    rows: list[SweepRow] = []
    left_out = list(planned.left_out)
    with given_or_new(runner, environ, REFERENCE_MODULES if options.reference is not None else ()) as runs:
        calls = _Calls(case=case, contract=contract, runs=runs, deadline=deadline)
        try:
            for row in _rows(calls, planned.points[:most]):
                rows.append(row)
                on_row(row, len(rows), len(planned.points))
            if len(rows) == len(planned.points):
                rows = [_checked(calls, point, row) for point, row in zip(planned.points, rows, strict=True)]
        except KeyboardInterrupt:
            left_out.append("interrupted")
        finally:
            runs.forget()
        torch = runs.torch_version
    missing = len(planned.points) - len(rows)
    if missing:
        why = "more were not requested" if most is not None and len(rows) >= most else "there was no time for them"
        left_out.append(f"{missing} of {len(planned.points)} calls: {why}")
    return Sweep(
        package=package,
        reference=options.reference,
        rows=tuple(rows),
        planned=len(planned.points),
        unasked=tuple(left_out),
        seconds=time.monotonic() - began,
        torch=torch,
    )


def _case(package: str, options: Options, environ: Mapping[str, str]) -> tuple[Case, Contract]:
    open_case.check_reference(options.reference)
    case, unread = open_case.open_case(package, None, options, environ)
    artifact, contract = case.artifact, case.contract
    if artifact.kind is ArtifactKind.MISSING:
        raise CannotExamineError(f"no such file: {package}")
    if artifact.names_unsafe or artifact.bad_crc:
        raise CannotExamineError(f"{package}: it is damaged or names files outside its folder, so it is not executed")
    if contract is None or contract.args is None:
        reason = artifact.problem or next((item.reason for item in unread), "no wrapper.cpp of a model in it")
        raise CannotExamineError(f"{package}: it does not contain a contract: {reason}")
    if contract.readings:
        raise CannotExamineError(f"{package}: {contract.open_leaves}; --reference exported.pt2 resolves this")
    return case, contract


def _baked(case: Case) -> Mapping[str, str]:
    known = case.reference
    if known is None and case.stamp is not None and case.stamp.stamp is not None:
        known = case.stamp.stamp.facts
    return known.constant_inputs if known is not None else {}


@record
class _Calls:
    """What is the same for all calls. ``deadline`` is on the monotonic clock."""

    case: Case
    contract: Contract
    runs: Runner
    deadline: float | None

    @property
    def left(self) -> float | None:
        """Seconds that are left; None without a limit."""
        return None if self.deadline is None else self.deadline - time.monotonic()


def _rows(calls: _Calls, points: Sequence[Point]) -> Iterator[SweepRow]:
    case, longest = calls.case, 0.0
    for point in points:
        left = calls.left
        if left is not None and left < longest + _SLACK_S and longest:
            return
        here = _at(case, calls.contract, point)
        request = run_request(here, "sweep", point.text or "the call", **_asked(case))
        # The first call is made whatever the budget: without it nothing is known.
        outcome = calls.runs.run(request if point.axis == "base" else _within(request, left))
        if _is_cut(outcome, request):
            return
        if isinstance(outcome.ending, NotStarted):
            raise CannotExamineError(f"the package cannot be run here: {outcome.ending.reason}")
        row = _row(here, point, outcome)
        if row.program is Does.UNKNOWN and case.options.reference is not None:
            row = _with_program(calls, here, row)
        if row.says is Says.RANGE:
            # Here the compiled checks decide whether the package does what it could do.
            row = _checked(calls, point, row)
        longest = max(longest, row.seconds)
        yield row
        if point.axis == "base" and row.package not in (Does.RIGHT, Does.RETURNS):
            # What fails as it is says nothing of its boundary.
            return


def _asked(case: Case) -> dict[str, object]:
    return {
        "calls": 1,
        "observe": ("outputs",),
        "reference": (named := case.options.reference),
        "share_reference": named,
    }


def _at(case: Case, contract: Contract, point: Point) -> Case:
    return replace(case, inputs=described(contract, point.document), generated=point.document)


def _within(request: Request, left: float | None) -> Request:
    return request if left is None else replace(request, timeout=max(1.0, min(request.timeout, left)))


def _is_cut(outcome: Outcome, asked: Request) -> bool:
    """Whether it was the budget that ended the call: then it says nothing of the package."""
    return isinstance(outcome.ending, TimedOut) and outcome.request.timeout < asked.timeout


def _row(case: Case, point: Point, outcome: Outcome) -> SweepRow:
    told, cause = says(case, silent=point.axis == "value")
    package, detail = package_does(case, outcome)
    program, program_detail = program_does(outcome)
    return SweepRow(
        axis=point.axis,
        subject=point.subject,
        change=point.text,
        says=told,
        cause=cause,
        package=package,
        detail=detail,
        program=program,
        program_detail=program_detail,
        judged=judge(told, package, program),
        run=outcome.id,
        seconds=outcome.seconds,
    )


def _with_program(calls: _Calls, here: Case, row: SweepRow) -> SweepRow:
    """The row with what the program does, where the package ended before it could be asked."""
    left = calls.left
    if left is not None and left < _SLACK_S:
        return row
    base = run_request(here, "sweep", f"the program: {row.change}", reference=calls.case.options.reference)
    request = replace(base, job="reference")
    outcome = calls.runs.run(_within(request, left))
    if _is_cut(outcome, request):
        return row
    program, detail = program_does(outcome)
    judged = judge(row.says, row.package, program)
    seconds = row.seconds + outcome.seconds
    return replace(row, program=program, program_detail=detail, judged=judged, seconds=seconds)


def _checked(calls: _Calls, point: Point, row: SweepRow) -> SweepRow:
    """What the compiled checks would have said, of a call that they may refuse."""
    left = calls.left
    wanted = row.says in (Says.RANGE, Says.REFUSES) and row.axis not in ("none", "pair")
    if (
        not wanted
        or row.checked is not None
        or row.judged is Judged.UNKNOWN
        or (left is not None and left < row.seconds + _SLACK_S)
    ):
        return row
    here = _at(calls.case, calls.contract, point)
    request = run_request(here, "sweep", f"{point.text}, checked", **{**_asked(calls.case), "reference": None})
    outcome = calls.runs.run(_within(replace(request, env={_CHECKS: "1"}), left))
    if _is_cut(outcome, request):
        return row
    checked, _ = package_does(here, outcome)
    return replace(row, checked=row.package if checked is Does.RETURNS else checked)
