"""Turn a log into ranked causes (``aotidoctor classify``); with a package, in its names. Runs nothing."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from io import BufferedReader, BytesIO, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from aotidoctor.logs.diagnose_log import UNKNOWN, judge_log, log_diagnoses, log_findings, next_steps, with_ids
from aotidoctor.logs.log_reading import read_log
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Host, Options
from aotidoctor.model.errors import CannotExamineError, examining
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.report import Report
from aotidoctor.triage.finish import Invocation, StaticResult, finish, with_fingerprint
from aotidoctor.triage.missing_file import examining_file

if TYPE_CHECKING:
    from aotidoctor.model.evidence import Evidence
    from aotidoctor.model.report import Diagnosis, LogReading

# Files that are no logs, though parts of them look like text: the sources in a package name every possible error.
_NO_LOGS = (
    (b"PK\x03\x04", "a zip archive: `aotidoctor check` reads packages, `aotidoctor analyze` bundles"),
    (b"\x7fELF", "a program, a library or a core dump, not text"),
    (b"\xfd7zXZ\0", "packed with xz: unpack it first"),
    (b"BZh", "packed with bzip2: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd: unpack it first"),
)
_PEEK = 4096
_SIGNAL = (
    "a process that a signal such as SIGFPE ends often prints nothing: look at its exit status (128 + the signal), or "
    "run it by `aotidoctor watch`"
)


def classify_text(text: bytes, name: str) -> tuple[list[Evidence], tuple[Diagnosis, ...], LogReading]:
    """Findings, causes and reading of a log in memory. The findings are numbered from ``E1``."""
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
    """Build the report on the log in ``stream``. ``package`` and ``inputs`` are read, never run.

    Raises CannotExamineError where it is no log at all.
    """
    with examining(name):
        head = stream.peek(_PEEK) if isinstance(stream, BufferedReader) else b""
    for magic, kind in _NO_LOGS:
        if head.startswith(magic):
            raise CannotExamineError(f"{name} is {kind}")
    invocation = Invocation("classify", argv)
    reading = read_log(stream, name)
    if reading.size == 0 or (reading.size <= len(head) and not head.strip()):
        raise CannotExamineError(f"{name} is empty: {_SIGNAL}")
    findings = with_ids(log_findings(reading))
    verdict, diagnoses = judge_log(reading, log_diagnoses(findings))
    # A failure counts as an error even where its cause is only suspected.
    if verdict == "unknown" or (reading.has_failure and not any(item.severity is Severity.ERROR for item in findings)):
        findings = [replace(item, severity=Severity.ERROR) if item.code == UNKNOWN else item for item in findings]
    nothing_run = NotChecked(
        code="AD-RUN", name="runs", reason="`classify` does not execute anything; use `aotidoctor run`"
    )
    ending = NotChecked(code="AD-LOG", name="ending", reason=_SIGNAL)
    stages = [diagnoses[0].stage] if diagnoses else [event.stage for event in reading.unknown if event.stage][:1]
    # No package, and of this machine only its kind: the log may come from another one.
    host = Host(system=platform.system(), machine=platform.machine(), python=platform.python_version())
    no_package = Artifact(path="", kind=ArtifactKind.OTHER, size=0)
    report = finish(
        StaticResult(
            case=Case(artifact=no_package, host=host, options=options or Options()),
            findings=findings,
            not_checked=(nothing_run, ending) if verdict == "healthy" else (nothing_run,),
            out_of_time=reading.out_of_time,
        ),
        diagnoses,
        invocation,
        verdict=verdict,
        stage=next((stage for stage in stages if stage not in ("", "other")), None),
        log=reading,
        extra={"next": "\n".join(next_steps(reading, package=package, inputs=inputs))},
    )
    if package is not None:
        # Imported only where there is a package to read.
        from aotidoctor.logs.log_with_package import resolve_names

        resolved = resolve_names(report, package, inputs, environ)
        report = with_fingerprint(replace(resolved, seconds=invocation.seconds()))
    return report


def open_log(path: str) -> BinaryIO:
    """Open the log as bytes; the caller closes it. Raises CannotExamineError."""
    try:
        with examining_file(path):
            # Reading a device never ends.
            if Path(path).is_char_device():
                raise CannotExamineError(f"{path} is a device, not a log")
            # Not by pathlib, to which an empty path is the folder of this process.
            return BufferedReader(FileIO(path))
    except ValueError as error:
        raise CannotExamineError(f"{path}: {error}") from error
