"""Examine a package with many samples: all are called from one load, and those that fail alike stand together.

The calls share a process. One that ends it gets the first place in the next process: only what ends that as well is a
failure of its own. Each sample is judged by the checks and by what its call did, as the first run of a command is. The
first of each cluster is then examined as by a command of its own, treatments included: what it turns out to be holds
for the cluster, and a finding that it proves harmless makes its samples healthy.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from aotidoctor.localize.comparison import FINE, read_comparison
from aotidoctor.model.answers import ObservedTensor, drop_malformed
from aotidoctor.model.case import Case
from aotidoctor.model.errors import InputsError
from aotidoctor.model.evidence import Evidence, Maker, NotChecked, RunSource, Severity, Source, plural, shorten
from aotidoctor.model.fleet import OutputStatistics, SampleCluster, SampleRow, Samples
from aotidoctor.model.inputs import InputSet
from aotidoctor.model.jobs import InputsSource, change_fields
from aotidoctor.model.localization import OutputComparison
from aotidoctor.model.record import JsonObject, record
from aotidoctor.model.report import Diagnosis, Status
from aotidoctor.model.run import ChildError, Exited, Outcome
from aotidoctor.probes import plain_run, reference, values
from aotidoctor.probes.payload import call_outputs, inputs_source, run_of, run_request
from aotidoctor.probes.probe import Reuse, succeeded
from aotidoctor.probes.symptoms import first_exception
from aotidoctor.readers.inputs.read_inputs import listed_calls, sample_files
from aotidoctor.triage import open_case
from aotidoctor.triage.finish import HASH, is_lead
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import name_causes, run_checks

CODE, NAME = "AD-RUN-041", "samples"
# Samples of one process, and processes; clusters that are examined; names of a cluster.
_ROOM, MOST_PROCESSES, MOST_EXAMINED, NAMED = 500, 200, 4, 20
# Stages in which a process has not come to its first sample.
_BEFORE = ("start", "import", "attach", "setup", "load", "after_load", "trace", "constants")
_DIGITS = re.compile(r"0x[0-9a-f]{1,16}|\d+")

ExamineCase = Callable[[Session], tuple[tuple[Diagnosis, ...], bool]]
# An output of a sample: the sample, the tensor, its comparison with the reference.
_Seen = tuple[str, ObservedTensor, OutputComparison | None]


@record
class Sample:
    """One sample: a file, or ``listed``, an item of the list in one."""

    name: str
    path: str
    listed: InputSet | None = None


def samples_in(given: str) -> tuple[Sample, ...]:
    """The files of a folder or a pattern; empty where ``given`` is one file. Raises CannotExamineError."""
    return tuple(Sample(name=path, path=path) for path in sample_files(given) or ())


def samples_of_list(case: Case) -> tuple[Sample, ...]:
    """The calls of the list that was read as one call; empty where it is one."""
    if case.inputs is None:
        return ()
    try:
        found = listed_calls(case.inputs, open_case.expected_trees(case.contract))
    except InputsError:
        return ()
    path = case.inputs.path or ""
    return tuple(Sample(name=f"{path}[{at}]", path=path, listed=one) for at, one in enumerate(found))


def case_of(case: Case, sample: Sample) -> Case:
    """``case`` with the inputs of ``sample``."""
    return open_case.with_inputs(replace(case, inputs_path=sample.path), sample.listed)


@dataclass(slots=True)
class _Survey:
    """The calls so far, by the number of the sample. ``base`` is the case without inputs."""

    session: Session
    base: Case
    samples: Sequence[Sample]
    rows: dict[int, SampleRow] = field(default_factory=dict)
    ran_badly: set[int] = field(default_factory=set)
    outputs: dict[str, list[_Seen]] = field(default_factory=dict)
    processes: int = 0
    notes: list[str] = field(default_factory=list)

    def call_all(self) -> None:
        """Call the samples, in as few processes as it takes."""
        at, room = 0, _ROOM
        while at < len(self.samples):
            if self.processes >= MOST_PROCESSES:
                self.notes.append(f"{len(self.samples) - at} were not called: {MOST_PROCESSES} processes had ended")
                return
            numbers = range(at, min(at + room, len(self.samples)))
            cases = {number: case_of(self.base, self.samples[number]) for number in numbers}
            sources = {number: inputs_source(case) for number, case in cases.items()}
            sent = {number: source for number, source in sources.items() if source is not None}
            for number in sources.keys() - sent.keys():
                self._judge(number, cases[number], None)
            if not sent:
                at = numbers.stop
                continue
            outcome = self._run(tuple(sent.values()))
            if outcome is None:
                self.notes.append(f"{len(self.samples) - at} were not called: {self.session.refusal()}")
                return
            parts = list(_parts(outcome))[: len(sent)]
            if not parts and outcome.stage in _BEFORE:
                # It does not load: the examination of one sample says why.
                return
            raised = sum("error" in part for part in parts)
            if len(sent) > 1 and not raised and first_exception(outcome.stderr_tail):
                # Something printed an exception and returned: call by call it shows which one did.
                room = 1
                continue
            for number, part in zip(sent, parts, strict=False):
                self._judge(number, cases[number], _outcome_of(part, outcome, alone=raised == 1))
            at = numbers.stop
            if len(parts) < len(sent):
                at = list(sent)[len(parts)]
                if not parts:
                    # What ended the process is judged only where it was the first of it.
                    stage = outcome.stage if outcome.stage != "unload" else "run1"
                    self._judge(at, cases[at], replace(outcome, result={}, stage=stage))
                    at += 1

    def _run(self, sources: tuple[InputsSource, ...]) -> Outcome | None:
        changes = {**reference.comparison(self.base), "measure": False, "inputs": None, "calls": 1, "samples": sources}
        name = f"{NAME}: {plural(len(sources), 'call')}"
        request = run_request(self.base, NAME, f"{plural(len(sources), 'sample')} from one load", **changes)
        self.processes += 1
        self.session.begins(name)
        outcome = self.session.run(request)
        if outcome is not None:
            self.session.ended(name, outcome.seconds, f"{sum(1 for _ in _parts(outcome))} came to an end")
        return outcome

    def _judge(self, number: int, case: Case, outcome: Outcome | None) -> None:
        """Judge one sample by the checks and by its call; None where its inputs cannot be read."""
        one = Session(case=case, runner=None)
        run_checks(one)
        static = len(one.findings)
        compared = read_comparison(outcome) if outcome is not None else ()
        returned = call_outputs(outcome, 0) if outcome is not None else ()
        if outcome is not None:
            _read_outcome(one, outcome)
        beside = {item.path: item for item in compared}
        for item in returned:
            self.outputs.setdefault(item.path, []).append((self.samples[number].name, item, beside.get(item.path)))
        diagnoses = name_causes(one)
        errors = [item for item in one.findings if item.severity is Severity.ERROR]
        sure = bool(diagnoses) and not is_lead(diagnoses[0], one.findings)
        verdict = "problem" if sure else "unknown" if diagnoses or errors else "healthy"
        if any(item.severity is Severity.ERROR for item in one.findings[static:]):
            self.ran_badly.add(number)
        named = [item for item in one.findings if diagnoses and item.id in diagnoses[0].evidence]
        lead = next(iter((*named, *errors)), None)
        text = (lead.observed or lead.message) if lead is not None and verdict != "healthy" else ""
        hashed = self.base.options.values == HASH
        self.rows[number] = SampleRow(
            name=self.samples[number].name,
            verdict=verdict,
            cause=diagnoses[0].cause if diagnoses else "",
            subject=diagnoses[0].subject if diagnoses else None,
            observed=shorten(" ".join(text.split()), 200),
            seconds=outcome.seconds if outcome is not None else 0.0,
            run=outcome.id if outcome is not None else "",
            outputs=tuple(item.sha256 for item in returned) if hashed else (),
            comparison=compared,
        )

    def statistics(self) -> tuple[OutputStatistics, ...]:
        """Each output over all samples that returned it."""
        return tuple(self._over_samples(path, seen) for path, seen in self.outputs.items())

    def _over_samples(self, path: str, seen: Sequence[_Seen]) -> OutputStatistics:
        found = [item for _, item, _ in seen]
        compared = [(item, name) for name, _, item in seen if item is not None]
        far = [(item.max_abs, name) for item, name in compared if item.max_abs is not None]
        digests = {item.sha256 for item in found}
        ranged = [] if self.base.options.values == HASH else found
        return OutputStatistics(
            path=path,
            samples=len(found),
            dtypes=tuple(dict.fromkeys(item.dtype for item in found)),
            shapes=tuple(dict.fromkeys(str(list(item.sizes)) for item in found))[:NAMED],
            distinct=None if None in digests else len(digests),
            nan=sum(bool(item.nan) for item in found),
            inf=sum(bool(item.inf) for item in found),
            low=min((item.min for item in ranged if item.min is not None), default=None),
            high=max((item.max for item in ranged if item.max is not None), default=None),
            differing=sum(item.verdict not in FINE for item, _ in compared),
            max_abs=max(far)[0] if far else None,
            max_rel=max((item.max_rel for item, _ in compared if item.max_rel is not None), default=None),
            worst=max(far)[1] if far else None,
        )

    def worst(self) -> int | None:
        """The sample whose outputs are farthest from the reference's; None without one that was compared."""
        far = {
            number: max((item.verdict not in FINE, item.max_abs or 0.0) for item in row.comparison)
            for number, row in self.rows.items()
            if row.comparison
        }
        return max(far, key=lambda number: far[number]) if far else None

    def clusters(self) -> list[list[int]]:
        """The numbers of the samples that fail alike, in the order of the first of each."""
        found: dict[tuple[str, ...], list[int]] = {}
        for number, row in sorted(self.rows.items()):
            if row.verdict != "healthy":
                words = "" if row.cause else _DIGITS.sub("N", row.observed)
                found.setdefault((row.verdict, row.cause, row.subject or "", words), []).append(number)
        return list(found.values())


def _parts(outcome: Outcome) -> Iterator[JsonObject]:
    """The well-formed parts of the samples that a process came to the end of."""
    number = 0
    while isinstance(part := outcome.result.get(f"sample{number}"), dict):
        yield drop_malformed("run", part)[0]
        number += 1


def _outcome_of(part: JsonObject, outcome: Outcome, *, alone: bool) -> Outcome:
    """The outcome of one call, as of a run of its own. What the process printed is told of the one call that raised."""
    error, seconds = part.get("error"), part.get("seconds")
    raised = (
        ChildError(**{key: str(error.get(key, "")) for key in ("type", "message", "traceback")})
        if isinstance(error, dict)
        else None
    )
    return replace(
        outcome,
        result=part,
        ending=Exited(code=1 if raised else 0, done=True),
        error=raised,
        stage=str(part.get("stage") or "run1") if raised else "done",
        stderr_tail=outcome.stderr_tail if raised and alone else "",
        seconds=seconds if isinstance(seconds, float) else 0.0,
    )


def _read_outcome(session: Session, outcome: Outcome) -> None:
    """Add what the probes read from the call: how it ended, the values, the comparison."""
    session.outcomes[plain_run.NAME] = outcome
    session.add(plain_run.read(session.case, session.history(), outcome))
    if succeeded(outcome) and session.case.inputs is not None:
        if isinstance(values.plan(session.case, session.history()), Reuse):
            session.add(values.read(session.case, session.history(), outcome))
        else:
            # Nobody looked at the constants.
            unread = replace(outcome.request, payload=change_fields(run_of(outcome), {"observe": ()}))
            session.add(values.read(session.case, session.history(), replace(outcome, request=unread)))
    if "reference" in outcome.result:
        session.outcomes[reference.NAME] = outcome
        session.add(reference.read(session.case, session.history(), outcome))


# The examination of the first of each cluster.
@dataclass(slots=True, kw_only=True)
class SampleExamined:
    """Sample ``number``, examined by itself."""

    number: int
    session: Session
    diagnoses: tuple[Diagnosis, ...] = ()
    interrupted: bool = False

    @property
    def is_clean(self) -> bool:
        """Whether it was examined to its end, and nothing is wrong with it."""
        wrong = any(item.severity is Severity.ERROR for item in self.session.findings)
        return not (self.diagnoses or wrong or self.interrupted or self.session.out_of_time)


def examine_samples(
    session: Session, samples: Sequence[Sample], examine: ExamineCase
) -> tuple[SampleExamined, Samples]:
    """Call all samples, and examine the first of each cluster; without a failure the worst, or the first sample.

    ``session`` has the case without inputs. The result is the sample that the report is about, and what all showed.
    """
    survey = _Survey(session=session, base=replace(session.case, inputs=None, inputs_path=None), samples=samples)
    whole, interrupted, late = session.deadline, False, False
    forbidden = _forbidden(survey, samples[0])
    if forbidden is None:
        if whole is not None:
            session.deadline = (time.monotonic() + whole) / 2
        try:
            survey.call_all()
        except KeyboardInterrupt:
            interrupted = True
        late, session.deadline, session.out_of_time = session.out_of_time, whole, False
    else:
        survey.notes.append(forbidden.reason)
    clusters: list[SampleCluster] = []
    bad: list[SampleExamined] = []
    for numbers in survey.clusters():
        asked = len(clusters) < MOST_EXAMINED and not interrupted
        examined = _examine_one(survey, numbers[0], examine) if asked else None
        clusters.append(cluster := _cluster(survey, numbers, examined))
        for number in numbers:
            row = survey.rows[number]
            survey.rows[number] = replace(row, verdict=cluster.verdict, cause=cluster.cause, subject=cluster.subject)
        if examined is not None:
            interrupted = examined.interrupted
            bad += [examined] if cluster.verdict != "healthy" else []
    # A cause that is an error goes before one that is a warning, and before none.
    chosen = max(bad, key=lambda one: one.diagnoses[0].severity.rank if one.diagnoses else 0, default=None)
    if chosen is None and not interrupted:
        chosen = _examine_one(survey, survey.worst() or 0, examine)
        interrupted = chosen.interrupted
    if chosen is None:
        chosen = SampleExamined(number=0, session=replace(session, case=case_of(survey.base, samples[0])))
    chosen.interrupted = interrupted
    result = _samples(survey, clusters, samples[chosen.number].name)
    one = chosen.session
    one.runs[:] = session.runs
    one.out_of_time |= late
    source = RunSource(run=session.runs[0].id, stream="result") if session.runs else None
    one.add([samples_finding(result, certain=bool(chosen.diagnoses), source=source)])
    return chosen, result


def _forbidden(survey: _Survey, first: Sample) -> NotChecked | None:
    """Why no child may call the package, as the plain run would say."""
    one = Session(case=case_of(survey.base, first), runner=None)
    run_checks(one)
    plan = plain_run.plan(one.case, one.history())
    return plan if isinstance(plan, NotChecked) else None


def _examine_one(survey: _Survey, number: int, examine: ExamineCase) -> SampleExamined:
    session = survey.session
    one = Session(
        case=case_of(survey.base, survey.samples[number]),
        runner=session.runner,
        on_event=session.on_event,
        deadline=session.deadline,
        not_checked=list(session.not_checked),
    )
    diagnoses, interrupted = examine(one)
    session.runs += one.runs
    return SampleExamined(number=number, session=one, diagnoses=diagnoses, interrupted=interrupted)


def _cluster(survey: _Survey, numbers: Sequence[int], examined: SampleExamined | None) -> SampleCluster:
    """The cluster as the examination of its first sample shows it, where there was one."""
    row = survey.rows[numbers[0]]
    verdict, cause, subject, observed = row.verdict, row.cause, row.subject, row.observed
    status = Status.SUSPECTED.value if cause else ""
    if examined is not None and examined.diagnoses:
        first = examined.diagnoses[0]
        cause, subject, status = first.cause, first.subject, first.status.value
    elif examined is not None and examined.is_clean:
        # A failure that does not come again when the sample is called alone stays one; a mere finding is harmless.
        failed = not survey.ran_badly.isdisjoint(numbers)
        verdict, cause, subject, status = "unknown" if failed else "healthy", "", None, ""
        observed += "; it does not fail when it is called alone" if failed else "; shown to be harmless"
    names = tuple(survey.samples[number].name for number in numbers[:NAMED])
    return SampleCluster(
        verdict=verdict, cause=cause, subject=subject, observed=observed, status=status, count=len(numbers), names=names
    )


def _samples(survey: _Survey, clusters: Sequence[SampleCluster], examined: str) -> Samples:
    rows = [row for _, row in sorted(survey.rows.items())]
    bad = [row.name for row in rows if row.verdict != "healthy"]
    worst = survey.worst()
    return Samples(
        given=len(survey.samples),
        called=sum(1 for row in rows if row.run),
        bad=len(bad),
        processes=survey.processes,
        examined=examined,
        first_bad=bad[0] if bad else None,
        worst=survey.samples[worst].name if worst is not None else None,
        outputs=survey.statistics(),
        clusters=tuple(clusters),
        rows=tuple(rows),
        notes=tuple(survey.notes),
    )


def samples_finding(found: Samples, *, certain: bool, source: Source | None) -> Evidence:
    """One finding about all samples: an error where one is not healthy and no cause was named."""
    missing = found.given - len(found.rows)
    first = f"; the first: {found.first_bad}" if found.first_bad else ""
    uncalled = f"; {missing} not judged" if missing else ""
    severity = Severity.ERROR if found.bad and not certain else Severity.WARN if missing else Severity.INFO
    return Maker(CODE, severity, source)(
        "fail" if found.bad else "left-out" if missing else "ok",
        found.first_bad,
        observed=f"{found.bad} of {plural(found.given, 'sample')} not healthy{first}{uncalled}",
        expected="every sample to return the right values",
        facts={"given": found.given, "called": found.called, "bad": found.bad},
    )
