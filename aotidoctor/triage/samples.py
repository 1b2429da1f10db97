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
from aotidoctor.model.answers import Called, ObservedTensor, drop_malformed, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.errors import InputsError
from aotidoctor.model.evidence import Evidence, Maker, NotChecked, RunSource, Severity, Source, plural, shorten
from aotidoctor.model.fleet import OutputStatistics, SampleCluster, SampleRow, Samples
from aotidoctor.model.inputs import InputSet
from aotidoctor.model.jobs import InputsSource, change_fields
from aotidoctor.model.record import JsonObject, record
from aotidoctor.model.report import Diagnosis, Status
from aotidoctor.model.run import ChildError, Exited, Outcome
from aotidoctor.probes import plain_run, reference, values
from aotidoctor.probes.payload import inputs_source, run_of, run_request
from aotidoctor.probes.probe import Reuse, succeeded
from aotidoctor.probes.symptoms import first_exception
from aotidoctor.readers.inputs.read_inputs import listed_calls, sample_files
from aotidoctor.triage import open_case
from aotidoctor.triage.finish import HASH, is_lead
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import name_causes, run_checks

CODE, NAME = "AD-RUN-041", "samples"
# Samples of one process, and processes; clusters that are examined; rows with their comparison; names of a cluster.
_ROOM, MOST_PROCESSES, MOST_EXAMINED, _COMPARED, NAMED = 500, 200, 4, 1000, 20
# Stages in which a process has not come to its first sample.
_BEFORE = ("start", "import", "attach", "setup", "load", "after_load", "trace", "constants")
_DIGITS = re.compile(r"0x[0-9a-f]{1,16}|\d+")
_WORDS = 200

ExamineCase = Callable[[Session], tuple[tuple[Diagnosis, ...], bool]]


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
    statistics: dict[str, OutputStatistics] = field(default_factory=dict)
    digests: dict[str, set[str | None]] = field(default_factory=dict)
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
            sources = {number: inputs_source(case_of(self.base, self.samples[number])) for number in numbers}
            sent = {number: source for number, source in sources.items() if source is not None}
            for number in sources.keys() - sent.keys():
                self._judge(number, None)
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
                self._judge(number, _outcome_of(part, outcome, alone=raised == 1))
            at = self._next(list(sent), len(parts), outcome) if len(parts) < len(sent) else numbers.stop

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

    def _next(self, sent: Sequence[int], done: int, outcome: Outcome) -> int:
        """The number to go on with. What ended the process is judged only where it was the first of it."""
        number = sent[done]
        if done:
            return number
        if isinstance(outcome.ending, Exited) and outcome.ending.done:
            self.notes.append(f"{self.samples[number].name}: no answer")
        else:
            stage = outcome.stage if outcome.stage != "unload" else "run1"
            self._judge(number, replace(outcome, result={}, stage=stage))
        return number + 1

    def _judge(self, number: int, outcome: Outcome | None) -> None:
        """Judge one sample by the checks and by its call; None where its inputs cannot be read."""
        one = Session(case=case_of(self.base, self.samples[number]), runner=None)
        run_checks(one)
        static = len(one.findings)
        compared = read_comparison(outcome) if outcome is not None else ()
        if outcome is not None:
            _read_outcome(one, outcome)
            self._count(number, outcome)
        diagnoses = name_causes(one)
        errors = [item for item in one.findings if item.severity is Severity.ERROR]
        sure = bool(diagnoses) and not is_lead(diagnoses[0], one.findings)
        verdict = "problem" if sure else "unknown" if diagnoses or errors else "healthy"
        if any(item.severity is Severity.ERROR for item in one.findings[static:]):
            self.ran_badly.add(number)
        named = [item for item in one.findings if diagnoses and item.id in diagnoses[0].evidence]
        lead = next(iter((*named, *errors)), None)
        hashed = self.base.options.values == HASH and outcome is not None
        self.rows[number] = SampleRow(
            name=self.samples[number].name,
            verdict=verdict,
            cause=diagnoses[0].cause if diagnoses else "",
            subject=diagnoses[0].subject if diagnoses else None,
            observed=shorten(" ".join(_observed(lead).split()), _WORDS) if verdict != "healthy" else "",
            seconds=outcome.seconds if outcome is not None else 0.0,
            run=outcome.id if outcome is not None else "",
            outputs=tuple(item.sha256 for item in _outputs(outcome)) if hashed and outcome is not None else (),
            comparison=compared if len(self.rows) < _COMPARED else (),
        )

    def _count(self, number: int, outcome: Outcome) -> None:
        """Add the outputs of a call to the statistics."""
        differing = {item.path: item for item in read_comparison(outcome)}
        hashed = self.base.options.values == HASH
        for item in _outputs(outcome):
            old = self.statistics.get(item.path) or OutputStatistics(path=item.path)
            seen = self.digests.setdefault(item.path, set())
            seen.add(item.sha256)
            new = replace(
                old,
                samples=old.samples + 1,
                dtypes=_with(old.dtypes, item.dtype),
                shapes=_with(old.shapes, str(list(item.shape or ()))),
                distinct=None if None in seen else len(seen),
                nan=old.nan + bool(item.nan),
                inf=old.inf + bool(item.inf),
                low=None if hashed else _least(old.low, item.min, min),
                high=None if hashed else _least(old.high, item.max, max),
            )
            found = differing.get(item.path)
            if found is not None:
                further = found.max_abs is not None and (new.max_abs is None or found.max_abs > new.max_abs)
                new = replace(
                    new,
                    differing=new.differing + (found.verdict not in FINE),
                    max_abs=found.max_abs if further else new.max_abs,
                    max_rel=_least(new.max_rel, found.max_rel, max),
                    worst=self.samples[number].name if further else new.worst,
                )
            self.statistics[item.path] = new

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


def _outputs(outcome: Outcome | None) -> tuple[ObservedTensor, ...]:
    calls = parse_answer(Called, outcome.result).outputs if outcome is not None else ()
    return calls[0] if calls else ()


def _observed(lead: Evidence | None) -> str:
    line = lead.facts.get("line") if lead is not None else None
    return (
        "" if lead is None else f"{lead.observed}: {line}" if line and str(line) not in lead.observed else lead.observed
    )


def _with(known: tuple[str, ...], one: str) -> tuple[str, ...]:
    return known if one in known or len(known) >= NAMED else (*known, one)


def _least(known: float | None, new: float | None, choose: Callable[[float, float], float]) -> float | None:
    return known if new is None else new if known is None else choose(known, new)


# The examination of the first of each cluster.
@record
class SamplesExamined:
    """The session and the diagnoses of the sample that the report is about, and what all samples showed."""

    session: Session
    diagnoses: tuple[Diagnosis, ...]
    interrupted: bool
    samples: Samples


@dataclass(slots=True, kw_only=True)
class _Examined:
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

    @property
    def rank(self) -> int:
        """How much it shows: 2 for a cause that is an error, 1 for one that is a warning."""
        return self.diagnoses[0].severity.rank if self.diagnoses else 0


def examine_samples(session: Session, samples: Sequence[Sample], examine: ExamineCase) -> SamplesExamined:
    """Call all samples, and examine the first of each cluster; without a failure the worst, or the first sample.

    ``session`` has the case without inputs; what it does not check holds for every sample.
    """
    survey = _Survey(session=session, base=replace(session.case, inputs=None, inputs_path=None), samples=samples)
    whole, interrupted = session.deadline, False
    forbidden = _forbidden(survey, samples[0])
    if forbidden is None:
        if whole is not None:
            session.deadline = (time.monotonic() + whole) / 2
        try:
            survey.call_all()
        except KeyboardInterrupt:
            interrupted = True
        session.deadline, session.out_of_time = whole, False
    else:
        survey.notes.append(forbidden.reason)
    clusters: list[SampleCluster] = []
    chosen: _Examined | None = None
    for numbers in survey.clusters():
        examined = (
            _examine_one(survey, numbers[0], examine) if len(clusters) < MOST_EXAMINED and not interrupted else None
        )
        cluster = _cluster(survey, numbers, examined)
        clusters.append(cluster)
        for number in numbers:
            row = survey.rows[number]
            survey.rows[number] = replace(row, verdict=cluster.verdict, cause=cluster.cause, subject=cluster.subject)
        if examined is not None:
            interrupted = examined.interrupted
            chosen = (
                examined if cluster.verdict != "healthy" and (chosen is None or examined.rank > chosen.rank) else chosen
            )
    if chosen is None and not interrupted:
        chosen = _examine_one(survey, survey.worst() or 0, examine)
        interrupted = chosen.interrupted
    if chosen is None:
        chosen = _Examined(number=0, session=replace(session, case=case_of(survey.base, samples[0])))
    result = _samples(survey, _merged(clusters), samples[chosen.number].name)
    one = chosen.session
    one.runs[:] = session.runs
    source = RunSource(run=session.runs[0].id, stream="result") if session.runs else None
    one.add([samples_finding(result, certain=bool(chosen.diagnoses), source=source)])
    return SamplesExamined(session=one, diagnoses=chosen.diagnoses, interrupted=interrupted, samples=result)


def _forbidden(survey: _Survey, first: Sample) -> NotChecked | None:
    """Why no child may call the package, as the plain run would say."""
    one = Session(case=case_of(survey.base, first), runner=None)
    run_checks(one)
    plan = plain_run.plan(one.case, one.history())
    return plan if isinstance(plan, NotChecked) else None


def _examine_one(survey: _Survey, number: int, examine: ExamineCase) -> _Examined:
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
    return _Examined(number=number, session=one, diagnoses=diagnoses, interrupted=interrupted)


def _cluster(survey: _Survey, numbers: Sequence[int], examined: _Examined | None) -> SampleCluster:
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
        verdict=verdict,
        cause=cause,
        subject=subject,
        observed=observed,
        status=status,
        count=len(numbers),
        names=names,
        examined=examined is not None,
    )


def _merged(clusters: Sequence[SampleCluster]) -> tuple[SampleCluster, ...]:
    """The clusters, those of one cause and subject as one."""
    found: dict[tuple[str, ...], SampleCluster] = {}
    for one in clusters:
        key = (one.verdict, one.cause, one.subject or "", "" if one.cause else one.observed)
        old = found.get(key)
        names = (*old.names, *one.names)[:NAMED] if old is not None else ()
        found[key] = one if old is None else replace(old, count=old.count + one.count, names=names)
    return tuple(found.values())


def _samples(survey: _Survey, clusters: Sequence[SampleCluster], examined: str) -> Samples:
    rows = [row for _, row in sorted(survey.rows.items())]
    bad = [row.name for row in rows if row.verdict != "healthy"]
    worst = survey.worst()
    unnamed = len(rows) - _COMPARED if any(row.comparison for row in rows) and len(rows) > _COMPARED else 0
    notes = [*survey.notes, *([f"the comparison of {unnamed} samples is not kept by itself"] if unnamed else [])]
    return Samples(
        given=len(survey.samples),
        called=sum(1 for row in rows if row.run),
        bad=len(bad),
        processes=survey.processes,
        examined=examined,
        first_bad=bad[0] if bad else None,
        worst=survey.samples[worst].name if worst is not None else None,
        outputs=tuple(survey.statistics.values()),
        clusters=tuple(clusters),
        rows=tuple(rows),
        notes=tuple(notes),
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
