"""Make calls at the boundary of a contract, and judge package and program (``aotidoctor sweep``).

Each call runs in a child forked from the process that loaded the package.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from aotidoctor.commands.diagnose_package import early_modules, runner_or_new
from aotidoctor.commands.sweep.planned_calls import SweepPoint, plan_calls
from aotidoctor.interruption import interruptible
from aotidoctor.localize.comparison import FINE, read_comparison
from aotidoctor.model.case import Case, Options
from aotidoctor.model.contract import ModelContract
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.evidence import Severity, shorten
from aotidoctor.model.fleet import Does, Says, Sweep, SweepRow, SweepVerdict
from aotidoctor.model.record import record
from aotidoctor.model.run import Exited, NotStarted, Outcome, Request, TimedOut
from aotidoctor.model.torch_names import CHECK_INPUTS
from aotidoctor.probes.payload import reference_comparison, run_request
from aotidoctor.probes.plain_run import read_ending, swallowed_error
from aotidoctor.probes.probe import succeeded
from aotidoctor.readers.inputs.live_and_generated import describe_generated
from aotidoctor.runner.runner import Runner
from aotidoctor.triage import open_case
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import run_checks

# Contract, package and program on one call, and the verdict.
_RANGE = "AD-IN-017"
_INPUTS = "AD-IN-"
_WORDS = 200
MADE_UP = "the index was made up here: --reference shows whether the program takes it"


def contract_says(case: Case, *, silent: bool) -> tuple[Says, str | None]:
    """The contract's verdict on the inputs of ``case``, and the cause of a refusal.

    ``silent``: the change is one of values, about which a contract says nothing.
    """
    session = Session(case=case, runner=None)
    run_checks(session)
    found = [item for item in session.findings if item.code.startswith(_INPUTS)]
    errors = [item for item in found if item.severity is Severity.ERROR]
    if errors:
        from aotidoctor.checks.registry import CHECKS

        return Says.REFUSES, next((check.cause for check in CHECKS if check.code == errors[0].code), None)
    if any(item.code == _RANGE for item in found):
        return Says.RANGE, "input-range"
    return (Says.SILENT if silent else Says.ACCEPTS), None


def package_does(case: Case, outcome: Outcome) -> tuple[Does, str]:
    """The behaviour of the package, and the message of a failure."""
    called = outcome.result.get("outputs")
    returned = isinstance(called, list) and bool(called)
    if not returned:
        if isinstance(outcome.ending, TimedOut):
            return Does.HANG, f"no end within {outcome.ending.limit:g} s"
        if outcome.error is not None:
            # Where the exception has only a call that failed, the reason that stderr gives.
            line = str(read_ending("AD-RUN-001", case, outcome).facts["line"])
            text = f"{outcome.error.type}: {outcome.error.message}"
            return Does.ERROR, _short(outcome.error.message if not line or line in text else line)
        if isinstance(outcome.ending, Exited) and outcome.ending.done:
            return Does.ERROR, "no outputs"
        return Does.CRASH, _short(read_ending("AD-RUN-001", case, outcome).observed)
    if (raised := swallowed_error(case, outcome)) is not None:
        return Does.ERROR, _short(str(raised.facts["line"]))
    if reference_comparison(outcome).get("outputs") is None:
        return Does.RETURNS, ""
    wrong = [item for item in read_comparison(outcome) if item.verdict not in FINE]
    if not wrong:
        return Does.RIGHT, ""
    first = wrong[0]
    verdict = f"{first.path}: {first.verdict}"
    return Does.WRONG, verdict + (f", max |difference| {first.max_abs:g}" if first.max_abs is not None else "")


def program_does(outcome: Outcome) -> tuple[Does, str]:
    """The behaviour of the program on the same inputs."""
    found = reference_comparison(outcome)
    if found.get("error"):
        return Does.ERROR, _short(str(found["error"]))
    if found.get("outputs") is not None:
        return Does.RIGHT, ""
    if found.get("unavailable"):
        return Does.UNKNOWN, _short(str(found["unavailable"]))
    if outcome.request.job == "reference" and not succeeded(outcome):
        return Does.ERROR, _short(outcome.error.message if outcome.error is not None else "it crashed")
    return Does.UNKNOWN, ""


def has_made_up_index(case: Case, outcome: Outcome) -> bool:
    """Whether the call ended at an index out of bounds: of the integers that are made up here, no range is known."""
    given = case.inputs.tensors() if case.inputs is not None else ()
    integers = any(tensor.dtype.startswith(("int", "uint")) for _, tensor in given)
    return integers and read_ending("AD-RUN-001", case, outcome).facts.get("symptom") == "index-out-of-bounds"


def judge_row(says: Says, package: Does, program: Does) -> SweepVerdict:
    """The verdict on a call by contract, package and program."""
    failed = package in (Does.ERROR, Does.CRASH, Does.HANG)
    if package is Does.WRONG or (package in (Does.CRASH, Does.HANG) and program is not Does.UNKNOWN):
        right = program is Does.RIGHT and says is Says.ACCEPTS
        return SweepVerdict.FAULT if right else SweepVerdict.UNGUARDED
    if program is Does.UNKNOWN:
        if failed and says is Says.ACCEPTS:
            return SweepVerdict.FAULT
        # Without a program: a call that the contract refuses, and the package accepts or crashes on, is unguarded.
        if package in (Does.CRASH, Does.HANG) or (says is Says.REFUSES and package is Does.RETURNS):
            return SweepVerdict.UNGUARDED
        return SweepVerdict.FINE if says is Says.ACCEPTS or package is Does.ERROR else SweepVerdict.UNKNOWN
    if failed:
        if program is not Does.RIGHT:
            return SweepVerdict.FINE
        return SweepVerdict.FAULT if says is Says.ACCEPTS else SweepVerdict.REFUSED
    if program is Does.ERROR:
        # The program refuses what the package computes, so nothing shows whether that is right.
        return SweepVerdict.UNGUARDED if says is Says.REFUSES else SweepVerdict.UNKNOWN
    return SweepVerdict.HARMLESS if says in (Says.REFUSES, Says.RANGE) else SweepVerdict.FINE


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), _WORDS)


# The calls.
OnRow = Callable[[SweepRow, int, int], None]
# Seconds that a call may take longer than the one before it.
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
    """Make calls at the boundary of the contract: ``most`` (None: all), within ``options.budget`` seconds.

    Raises:
        CannotExamineError: there is no package with a contract, or no process for it.
    """
    began = time.monotonic()
    deadline = None if options.budget is None else began + options.budget
    with interruptible():
        open_case.check_reference(options.reference)
        case, unread = open_case.open_case(package, None, options, environ)
        open_case.refuse_damaged(case.artifact)
        contract = open_case.require_contract(case, unread, "--reference exported.pt2 resolves this")
    known = case.reference
    if known is None and case.stamp is not None and case.stamp.stamp is not None:
        known = case.stamp.stamp.facts
    planned = plan_calls(contract, (known.constant_inputs if known is not None else {}), seed=options.seed)
    rows: list[SweepRow] = []
    left_out = list(planned.left_out)
    interrupted = False
    with runner_or_new(runner, environ, early_modules(options)) as runs:
        calls = _Calls(case=case, contract=contract, runs=runs, deadline=deadline)
        try:
            with interruptible():
                for row in _rows(calls, planned.points[:most]):
                    rows.append(row)
                    on_row(row, len(rows), len(planned.points))
                if len(rows) == len(planned.points):
                    for at, point in enumerate(planned.points):
                        rows[at] = _check_refused_call(calls, point, rows[at])
        except KeyboardInterrupt:
            interrupted = True
        finally:
            runs.forget()
        torch = runs.torch_version
    missing = len(planned.points) - len(rows)
    if missing:
        late = "interrupted" if interrupted else "there was no time for them"
        why = "more were not requested" if most is not None and len(rows) >= most else late
        left_out.append(f"{missing} of {len(planned.points)} calls: {why}")
    elif interrupted:
        left_out.append("the compiled checks, on some of the calls: interrupted")
    return Sweep(
        package=package,
        reference=options.reference,
        rows=tuple(rows),
        planned=len(planned.points),
        unasked=tuple(left_out),
        seconds=time.monotonic() - began,
        torch=torch,
        interrupted=interrupted,
    )


@record
class _Calls:
    """The context of all calls. ``deadline`` is in seconds of the monotonic clock."""

    case: Case
    contract: ModelContract
    runs: Runner
    deadline: float | None

    @property
    def left(self) -> float | None:
        """The seconds left; None without a limit."""
        return None if self.deadline is None else self.deadline - time.monotonic()


def _rows(calls: _Calls, points: Sequence[SweepPoint]) -> Iterator[SweepRow]:
    case, longest = calls.case, 0.0
    for point in points:
        left = calls.left
        if left is not None and left < longest + _SLACK_S and longest:
            return
        here = _case_at(case, calls.contract, point)
        request = run_request(here, "sweep", point.text or "the call", **_call_request(case))
        # The first call is made regardless of the budget.
        outcome = calls.runs.run(request if point.axis == "base" else _limit_timeout(request, left))
        if _is_cut(outcome, request):
            return
        if isinstance(outcome.ending, NotStarted):
            raise CannotExamineError(f"the package cannot be run here: {outcome.ending.reason}")
        row = _row(here, point, outcome)
        if row.program is Does.UNKNOWN and case.options.reference is not None:
            row = _with_program(calls, here, row)
        if row.says is Says.RANGE:
            # The compiled checks might refuse this call.
            row = _check_refused_call(calls, point, row)
        longest = max(longest, row.seconds)
        yield row
        if point.axis == "base" and row.package not in (Does.RIGHT, Does.RETURNS):
            # A base call that fails makes the others meaningless.
            return


def _call_request(case: Case) -> dict[str, object]:
    return {
        "calls": 1,
        "observe": ("outputs",),
        "reference": (named := case.options.reference),
        "share_reference": named,
    }


def _case_at(case: Case, contract: ModelContract, point: SweepPoint) -> Case:
    return replace(case, inputs=describe_generated(contract, point.document), generated=point.document)


def _limit_timeout(request: Request, left: float | None) -> Request:
    return request if left is None else replace(request, timeout=max(1.0, min(request.timeout, left)))


def _is_cut(outcome: Outcome, request: Request) -> bool:
    """Whether the budget ended the call, so that it shows nothing about the package."""
    return isinstance(outcome.ending, TimedOut) and outcome.request.timeout < request.timeout


def _row(case: Case, point: SweepPoint, outcome: Outcome) -> SweepRow:
    says, cause = contract_says(case, silent=point.of_values)
    package, detail = package_does(case, outcome)
    program, program_detail = program_does(outcome)
    judged = judge_row(says, package, program)
    if judged is SweepVerdict.FAULT and program is Does.UNKNOWN and has_made_up_index(case, outcome):
        judged, detail = SweepVerdict.UNKNOWN, f"{detail}; {MADE_UP}"
    return SweepRow(
        axis=point.axis,
        subject=point.subject,
        change=point.text,
        says=says,
        cause=cause,
        package=package,
        detail=detail,
        program=program,
        program_detail=program_detail,
        judged=judged,
        run=outcome.id,
        seconds=outcome.seconds,
    )


def _with_program(calls: _Calls, here: Case, row: SweepRow) -> SweepRow:
    """Add the behaviour of the program, for a row whose call ended before the program ran."""
    left = calls.left
    if left is not None and left < _SLACK_S:
        return row
    base = run_request(here, "sweep", f"the program: {row.change}", reference=calls.case.options.reference)
    request = replace(base, job="reference")
    outcome = calls.runs.run(_limit_timeout(request, left))
    if _is_cut(outcome, request):
        return row
    program, detail = program_does(outcome)
    judged = judge_row(row.says, row.package, program)
    seconds = row.seconds + outcome.seconds
    return replace(row, program=program, program_detail=detail, judged=judged, seconds=seconds)


def _check_refused_call(calls: _Calls, point: SweepPoint, row: SweepRow) -> SweepRow:
    """Add the verdict of the compiled checks on a call that they may refuse."""
    left = calls.left
    wanted = row.says in (Says.RANGE, Says.REFUSES) and row.axis not in ("none", "pair")
    if (
        not wanted
        or row.checked is not None
        or row.judged is SweepVerdict.UNKNOWN
        or (left is not None and left < row.seconds + _SLACK_S)
    ):
        return row
    here = _case_at(calls.case, calls.contract, point)
    request = run_request(here, "sweep", f"{point.text}, checked", **{**_call_request(calls.case), "reference": None})
    outcome = calls.runs.run(_limit_timeout(replace(request, env={CHECK_INPUTS: "1"}), left))
    if _is_cut(outcome, request):
        return row
    checked, _ = package_does(here, outcome)
    return replace(row, checked=row.package if checked is Does.RETURNS else checked)
