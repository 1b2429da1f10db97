"""Judge a saved comparison with other tolerances: reads a JSON report, runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.commands.analyze.saved import findings
from aotidoctor.localize.comparison import FINE, judge_anew, saved_comparison
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.model.evidence import Evidence, FileSource, Severity
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.localization import Localization, OutputComparison
from aotidoctor.model.report import Report
from aotidoctor.probes.reference_findings import CODE, OUTPUT_KINDS, of_another_program, output_finding
from aotidoctor.reports.saved import read_saved, saved_case
from aotidoctor.triage.finish import Stopwatch, finish
from aotidoctor.triage.session import Session, name_causes


def judge_report(path: str, options: Options, *, argv: tuple[str, ...] = ()) -> Report:
    """A report like that of ``compare``, from the one in ``path``.

    Raises:
        CannotExamineError: there is no comparison to judge.
        UsageError: a tolerance is for an output that is not there.
    """
    watch = Stopwatch("compare", argv)
    document = read_saved(path)
    saved = saved_comparison(document)
    if not saved:
        raise CannotExamineError(f"{path} contains no comparison with a reference")
    unused = options.tolerances.unused([item.path for item in saved])
    if unused:
        raise UsageError(f"there is no output {unused[0]!r}; available: {', '.join(item.path for item in saved)}")
    outputs = judge_anew(saved, options.tolerances)
    session = Session(case=replace(saved_case(document), options=options), runner=None)
    session.add(_findings(document, outputs, FileSource(file=path)))
    diagnoses = name_causes(session)
    return finish(session, diagnoses, watch, localization=Localization(comparison=outputs), extra={"from": path})


def _findings(document: JsonObject, outputs: Sequence[OutputComparison], source: FileSource) -> list[Evidence]:
    """The saved findings, with that of the outputs made anew. Other weights explain outputs that differ."""
    saved = [replace(item, source=source, id="") for item in findings(document)]
    wrong = any(item.verdict not in FINE for item in outputs)
    others = [item for item in saved if item.code != CODE or item.kind not in OUTPUT_KINDS]
    weights = any(item.code == CODE and item.kind == "weights" for item in others)
    another = of_another_program(saved)
    severity = Severity.ERROR if wrong else Severity.WARN
    others = [
        replace(item, severity=severity) if item.code == CODE and item.kind == "weights" else item for item in others
    ]
    return others if weights and wrong else [*others, output_finding(outputs, source, another=another)]
