"""``aotidoctor classify``: from a log to ranked causes; with a package, in its users' words. Runs nothing."""

from __future__ import annotations

import os
import platform
import stat
from collections.abc import Mapping
from dataclasses import replace
from io import BufferedReader, BytesIO
from typing import TYPE_CHECKING, BinaryIO

from aotidoctor.diagnosis.signing import with_fingerprint
from aotidoctor.logs.diagnose_log import UNKNOWN, log_diagnoses, log_findings, next_steps, with_ids
from aotidoctor.logs.log_reading import read_log
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Host, Options
from aotidoctor.model.errors import CannotExamineError, examining
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.report import Report
from aotidoctor.triage.finish import Invocation, StaticResult, finish

if TYPE_CHECKING:
    from aotidoctor.model.evidence import Evidence
    from aotidoctor.model.report import Diagnosis, LogReading

# Their bytes look like text here and there: the sources in a package speak of every error that they may raise.
_NO_LOGS = (
    (b"PK\x03\x04", "a zip archive: `aotidoctor check` reads packages, `aotidoctor analyze` bundles"),
    (b"\x7fELF", "a program, a library or a core dump, not text"),
    (b"\xfd7zXZ\0", "packed with xz: unpack it first"),
    (b"BZh", "packed with bzip2: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd: unpack it first"),
)


def classify_text(text: bytes, name: str) -> tuple[list[Evidence], tuple[Diagnosis, ...], LogReading]:
    """Findings, causes and reading of a log in memory. The findings have ids from ``E1``."""
    reading = read_log(BytesIO(text), name)
    findings = with_ids(log_findings(reading))
    return findings, log_diagnoses(findings), reading


def classify(
    stream: BinaryIO,
    name: str,
    *,
    package: str | None = None,
    inputs: str | None = None,
    options: Options | None = None,
    argv: tuple[str, ...] = (),
    environ: Mapping[str, str],
) -> Report:
    """The report on the log in ``stream``. ``package`` and ``inputs`` are read, never run.

    Raises CannotExamineError where it is no log at all.
    """
    _refuse_what_is_no_log(stream, name)
    watch = Invocation("classify", argv)
    reading = read_log(stream, name)
    findings = with_ids(log_findings(reading))
    diagnoses = log_diagnoses(findings)
    verdict = "problem" if diagnoses else "unknown" if _has_failures(reading) or reading.out_of_time else "healthy"
    loud = any(item.severity is Severity.ERROR for item in findings)
    # A failure is one, too, where its cause is a suspicion only.
    if verdict == "unknown" or (_has_failures(reading) and not loud):
        findings = [replace(item, severity=Severity.ERROR) if item.code == UNKNOWN else item for item in findings]
    nothing_run = NotChecked(
        code="AD-RUN", name="runs", reason="`classify` does not execute anything; use `aotidoctor run`"
    )
    report = finish(
        StaticResult(
            case=_case(options or Options()),
            findings=findings,
            not_checked=(nothing_run,),
            out_of_time=reading.out_of_time,
        ),
        diagnoses,
        watch,
        verdict=verdict,
        stage=_stage(reading, diagnoses),
        log=reading,
        extra={"next": "\n".join(next_steps(reading, package=package, inputs=inputs))},
    )
    if package is not None:
        # Readers of packages are not worth their import where there is none.
        from aotidoctor.logs.log_with_package import resolve_names

        report = with_fingerprint(replace(resolve_names(report, package, inputs, environ), seconds=watch.seconds()))
    return report


def open_log(path: str) -> BinaryIO:
    """The log as bytes; the caller closes it. Raises CannotExamineError."""
    try:
        # A device never ends.
        if stat.S_ISCHR(os.stat(path).st_mode):  # noqa: PTH116 - no ValueError of pathlib's
            raise CannotExamineError(f"{path} is a device, not a log")
        return open(path, "rb")  # noqa: PTH123 - likewise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CannotExamineError(f"{path}: {reason}") from error


def _refuse_what_is_no_log(stream: BinaryIO, name: str) -> None:
    with examining(name):
        head = stream.peek(8) if isinstance(stream, BufferedReader) else b""
    what = next((what for magic, what in _NO_LOGS if head.startswith(magic)), None)
    if what is not None:
        raise CannotExamineError(f"{name} is {what}")


def _has_failures(reading: LogReading) -> bool:
    return bool(reading.unknown) or any(match.event.level == "error" for match in reading.matches)


def _stage(reading: LogReading, diagnoses: tuple[Diagnosis, ...]) -> str | None:
    if diagnoses:
        return _known_stage(diagnoses[0].stage)
    return next((_known_stage(event.stage) for event in reading.unknown if event.stage), None)


def _known_stage(stage: str) -> str | None:
    """Of ``other`` nobody knows where it is."""
    return stage if stage not in ("", "other") else None


def _case(options: Options) -> Case:
    """No package; and of this machine only what it is: the log may come from another one."""
    host = Host(system=platform.system(), machine=platform.machine(), python=platform.python_version())
    return Case(artifact=Artifact(path="", kind=ArtifactKind.OTHER, size=0), host=host, options=options)
