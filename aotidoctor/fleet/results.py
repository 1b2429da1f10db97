"""Write and read the results folder, line by line: the file is valid whenever the process is killed.

A line is appended by one ``write`` of the kernel, after the report that it names was put into place whole. So a line
that can be read stands for a report that is there, and at most the last line can be torn: the next writer cuts it off,
readers skip it.

The folder may come from somebody else: who writes there opens everything by its descriptor, and follows no link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from aotidoctor.checks.matching.package_facts import device_of, main_object
from aotidoctor.files import O_NONBLOCK, Folder, lock_file, open_regular, read_range, remove_drafts, whole_file
from aotidoctor.fleet.items import FleetItem
from aotidoctor.model.errors import CannotExamineError, UsageError, examining
from aotidoctor.model.fleet import REPORTS_FOLDER, RESULTS_FILE, RUN_FILE, SCHEMA, Fact, FleetResult, FleetRun
from aotidoctor.model.fleet_summary import FleetFormatError, read_line, read_run, result_line, run_text
from aotidoctor.readers.releases.torch_releases import built_by, release_text

if TYPE_CHECKING:
    from typing_extensions import Self

    from aotidoctor.model.case import Case
    from aotidoctor.model.report import Report


# From the report on an item to its line.
# The newest set of instructions of a processor, best first, as torch names its capability.
_ISA = (("amx_tile", "amx"), ("avx512f", "avx512"), ("avx2", "avx2"), ("sve", "sve"), ("asimd", "neon"))
_TEXT = 300
_CAUSES = 8


def result_row(item: FleetItem, report: Report, status: int) -> FleetResult:
    """The line of ``item``. ``report`` is redacted, unless the user chose otherwise.

    ``labels``, ``expected`` and the facts about the file are added when the results are stored.
    """
    best = report.diagnoses[0] if report.diagnoses else None
    fingerprint = report.fingerprint
    return FleetResult(
        item=item.id,
        name=item.path,
        command=item.command,
        verdict=report.verdict,
        status=status,
        stage=report.stage,
        cause=best.cause if best else None,
        cause_status=best.status.value if best else None,
        confidence=best.confidence if best else None,
        title=_cut(best.title) if best else None,
        subject=_cut(best.subject) if best else None,
        causes=tuple(dict.fromkeys(each.cause for each in report.diagnoses))[:_CAUSES],
        signature=report.signature,
        family=fingerprint.family if fingerprint else None,
        problem=_cut(_problem(report)),
        sha256=report.case.artifact.sha256,
        size=report.case.artifact.size if report.case.artifact.sha256 else None,
        inputs=item.inputs,
        reference=item.reference,
        log=item.path if item.command == "classify" else None,
        host=item.host,
        facts=result_facts(report.case),
        started=report.started,
        seconds=round(report.seconds, 4),
        tool=report.version,
    )


def _problem(report: Report) -> str | None:
    """The reason why the examination is not complete."""
    if report.internal_error is not None:
        return "aotidoctor failed here: " + report.internal_error.strip().rpartition("\n")[2]
    if report.cannot_examine is not None:
        return report.cannot_examine
    limit = next((item.reason for item in report.not_checked if item.code == "AD-LIMIT"), "out of time")
    return limit if report.out_of_time else "interrupted" if report.interrupted else None


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _TEXT else text[: _TEXT - 1] + "…"


def result_facts(case: Case) -> Mapping[str, Fact]:
    """Features that may set a group of items apart; what is not known is left out."""
    found: dict[str, Fact | None] = {"kind": case.artifact.kind.value if case.artifact.path else None}
    with suppress(OSError, ValueError):
        at = Path(case.artifact.path).stat().st_mtime
        found["modified"] = datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d")
    if case.model is not None:
        compiled = main_object(case)
        built = built_by(case.model, compiled)
        needs = case.contract.needs if case.contract is not None else None
        found |= {
            "device": device_of(case),
            "machine": compiled.machine if compiled is not None else None,
            "built_torch": release_text(built.least) if built.least else None,
            "isa": " ".join(sorted(needs.isa)) or None if needs is not None else None,
            "custom_ops": len(case.contract.custom_ops) if case.contract is not None else None,
        }
    if case.host.torch is not None or case.host.cpu_flags:
        torch = case.host.torch
        found |= {
            "host_torch": torch.version if torch is not None else None,
            "host_cuda": torch.cuda if torch is not None else None,
            "host_machine": case.host.machine or None,
            "host_isa": next((name for flag, name in _ISA if flag in case.host.cpu_flags), None),
            "host_gpu": case.host.gpus[0].name if case.host.gpus else None,
            "host_glibc": case.host.glibc,
        }
    return {name: value for name, value in found.items() if value is not None}


# The folder. A line holds no report; what is longer was not written by us.
LONGEST_LINE = 1 << 20
_LARGEST_RUN = 8 << 20
# How `result_line` begins.
_BEGINNING = f'{{"schema":"{SCHEMA}","item":"'.encode()
_ITEM_DIGITS = frozenset("0123456789abcdef")
_MADE = os.O_CREAT | O_NONBLOCK


@dataclass(slots=True)
class Damage:
    """Unreadable lines of a results file: their count, and number (from 1) and reason of the first few."""

    lines: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, number: int, reason: str) -> None:
        """One more line."""
        self.lines += 1
        if len(self.reasons) < 5:
            self.reasons.append(f"line {number}: {reason}")


def read_fleet(folder: str) -> FleetRun:
    """The record of the run that wrote the results in ``folder``. Raises CannotExamineError."""
    path = Path(folder) / RUN_FILE
    try:
        with open_regular(path) as stream:
            return read_run(stream.read(_LARGEST_RUN))
    except OSError as error:
        raise CannotExamineError(
            f"{path}: {error.strerror or error}; expected a folder of `aotidoctor batch`"
        ) from error
    except FleetFormatError as error:
        raise CannotExamineError(f"{path}: {error}") from error


def read_results(folder: str, damage: Damage | None = None) -> Iterator[FleetResult]:
    """The results in ``folder``, in the order of the file: the last line of each item is the one that counts.

    A line that cannot be read is passed over and noted in ``damage``. Raises CannotExamineError where the file cannot
    be read, or is that of another version.
    """
    path = Path(folder) / RESULTS_FILE
    with examining(path), open_regular(path) as stream:
        latest = {result.item: at for at, result, _ in _scan(stream, path, None)} if _may_repeat(stream) else {}
        for at, result, _ in _scan(stream, path, damage):
            if latest.get(result.item, at) == at:
                yield result


def is_item(text: str) -> bool:
    """Whether ``text`` is the name of an item: 16 hex digits."""
    return len(text) == 16 and _ITEM_DIGITS.issuperset(text)


def _may_repeat(stream: BinaryIO) -> bool:
    """Whether two lines may be of one item, by their beginnings, since reading all takes long."""
    seen: set[bytes] = set()
    stream.seek(0)
    while line := stream.readline(LONGEST_LINE):
        if line.startswith(_BEGINNING):
            item = line[len(_BEGINNING) : len(_BEGINNING) + 16]
            if item in seen:
                return True
            seen.add(item)
        elif line.strip():
            return True
    return False


def _scan(stream: BinaryIO, path: Path, damage: Damage | None) -> Iterator[tuple[int, FleetResult, bytes]]:
    """Offset, result and bytes of every line that can be read."""
    at = number = 0
    stream.seek(0)
    while line := stream.readline(LONGEST_LINE):
        number += 1
        result = _read(line, number, path, damage)
        if result is not None:
            yield at, result, line
        at += len(line)


def _read(line: bytes, number: int, path: Path, damage: Damage | None) -> FleetResult | None:
    try:
        result = read_line(line)
    except FleetFormatError as error:
        if number == 1 and "the schema is" in str(error):
            raise CannotExamineError(f"{path}: {error}") from error
        if damage is not None:
            damage.add(number, str(error))
        return None
    if not is_item(result.item):
        if damage is not None:
            damage.add(number, "its item is not 16 hex digits")
        return None
    return result


def _without_long_texts(result: FleetResult, size: int) -> FleetResult:
    """``result`` for a line that readers accept: with the names cut, and the labels and facts left out."""
    problem = f"its line would have {size:,} bytes, more than {LONGEST_LINE:,}: labels and facts are left out"
    return replace(
        result,
        name=_cut(result.name) or "",
        inputs=_cut(result.inputs),
        reference=_cut(result.reference),
        log=_cut(result.log),
        host=_cut(result.host),
        expected=_cut(result.expected),
        problem=problem,
        labels={},
        facts={},
    )


class ResultsFolder:
    """The folder while it is written; a context manager that holds its lock.

    ``kept`` maps each item that has a line to the key of that line.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._places: dict[str, tuple[int, int]] = {}
        self.kept: dict[str, str] = {}
        self._open = ExitStack()
        self._place: Folder
        self._reports: Folder
        self._descriptor = -1
        self._end = 0

    def __enter__(self) -> Self:
        """Make or open it. Raises UsageError where it is in use or of another version, OSError where it cannot be."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            self._place = Folder(self._folder)
            stack.callback(self._place.close)
            self._look()
            with suppress(FileExistsError):
                self._place.make(REPORTS_FOLDER)
            self._reports = Folder(REPORTS_FOLDER, inside=self._place)
            stack.callback(self._reports.close)
            lock = self._close_later(stack, self._place.open(".lock", os.O_RDWR | _MADE, 0o644))
            try:
                lock_file(lock)
            except OSError as error:
                raise UsageError(f"{self._folder}: another `aotidoctor batch` is writing there") from error
            self._look()
            # What a process that was killed in the middle of a write has left.
            remove_drafts(self._place)
            remove_drafts(self._reports)
            descriptor = self._place.open(RESULTS_FILE, os.O_RDWR | os.O_APPEND | _MADE, 0o644)
            self._descriptor = self._close_later(stack, descriptor)
            with open_regular(RESULTS_FILE, folder=self._place) as stream:
                for at, result, line in _scan(stream, self._folder / RESULTS_FILE, None):
                    if line.endswith(b"\n"):
                        self._places[result.item] = (at, len(line))
                        self.kept[result.item] = result.key
            # A torn line at the end is cut off; whatever else cannot be read goes when the file is put into order.
            self._end = _whole_lines(self._descriptor)
            os.ftruncate(self._descriptor, self._end)
            self._open = stack.pop_all()
        return self

    @staticmethod
    def _close_later(stack: ExitStack, descriptor: int) -> int:
        stack.callback(os.close, descriptor)
        return descriptor

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close the files; the lock goes with them."""
        self._open.close()

    def _look(self) -> None:
        """Refuse a folder that holds something else, or results of another version."""
        try:
            with open_regular(RUN_FILE, folder=self._place) as stream:
                read_run(stream.read(_LARGEST_RUN))
        except FileNotFoundError:
            with suppress(FileNotFoundError):
                # An empty one is ours: nobody was there to judge.
                if self._place.stat(RESULTS_FILE).st_size:
                    raise UsageError(
                        f"{self._folder} has a {RESULTS_FILE} without a {RUN_FILE}; give another folder with -o"
                    ) from None
        except (OSError, FleetFormatError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"{self._folder / RUN_FILE}: {why}; give another folder with -o") from error

    def write_run(self, run: FleetRun) -> None:
        """Replace ``fleet.json``. Raises OSError."""
        with whole_file(RUN_FILE, folder=self._place) as stream:
            stream.write(run_text(run).encode())

    def add(self, result: FleetResult, report: bytes | None) -> None:
        """One more line, with its report. Raises OSError, after which the file is as it was before."""
        name = f"{result.item}.json"
        if report is not None:
            with whole_file(name, folder=self._reports) as stream:
                stream.write(report)
        self.append(result)
        if report is None:
            with suppress(OSError):
                self._reports.remove(name)

    def append(self, result: FleetResult) -> None:
        """One more line, whose report stays as it is. Raises OSError, after which the file is as it was before."""
        line = result_line(result).encode() + b"\n"
        if len(line) > LONGEST_LINE:
            result = _without_long_texts(result, len(line))
            line = result_line(result).encode() + b"\n"
        try:
            written = os.write(self._descriptor, line)
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except BaseException:
            os.ftruncate(self._descriptor, self._end)
            raise
        self._places[result.item] = (self._end, len(line))
        self._end += len(line)

    def line(self, item: str) -> FleetResult:
        """The line of ``item`` that counts. Raises KeyError where there is none."""
        at, size = self._places[item]
        return read_line(read_range(self._descriptor, size, at))

    def has_report(self, item: str) -> bool:
        """Whether the report of ``item`` is there."""
        try:
            return stat.S_ISREG(self._reports.stat(f"{item}.json").st_mode)
        except OSError:
            return False

    def put_in_order(self, order: Sequence[str]) -> None:
        """One line per item of ``order``; lines and reports of other items go. Raises OSError."""
        with whole_file(RESULTS_FILE, folder=self._place) as stream:
            for item in order:
                at, size = self._places[item]
                stream.write(read_range(self._descriptor, size, at))
            stream.flush()
            os.fsync(stream.fileno())
        wanted = set(order)
        for name in self._reports.names():
            stem, _, ending = name.partition(".")
            if is_item(stem) and ending == "json" and stem not in wanted:
                self._reports.remove(name)


def _whole_lines(descriptor: int) -> int:
    """The size of the file up to its last newline."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - (1 << 16))
        found = read_range(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
