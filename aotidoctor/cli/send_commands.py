"""``aotidoctor repro``, ``bundle``, ``analyze``, ``diff``, ``cases``: send, judge, compare and remember cases."""

from __future__ import annotations

import enum
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.document_output import (
    FailOn,
    PageFormat,
    Show,
    exit_on_error,
    exit_with_error,
    json_document,
    notice_wait,
    page_format,
    warn,
    write_output,
    write_stdout,
)
from aotidoctor.cli.execute import argv, execute, make_progress, report_of_work, within_limits
from aotidoctor.cli.options import with_options
from aotidoctor.cli.url_arguments import with_fetched_urls
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CANNOT_EXAMINE, AotidoctorError, CannotExamineError, UsageError
from aotidoctor.model.evidence import plural
from aotidoctor.model.report import OnEvent, Report
from aotidoctor.reports.text import exit_status, one_line

if TYPE_CHECKING:
    from aotidoctor.commands.cases.case_store import CaseQuery, CaseStore
    from aotidoctor.model.case import CaseRecord
    from aotidoctor.model.fleet import DocumentComparison


Folder = Annotated[Path, opt.output("DIR", "Folder to write the script to.")]
ReproFrom = Annotated[
    str | None,
    typer.Option("--from", metavar="REPORT", help="Use this JSON report of the case instead of a new diagnosis."),
]
KeepWeights = Annotated[bool, typer.Option("--keep-weights", help="Copy the package unchanged.")]


@with_options(
    "package",
    "inputs",
    "from_",
    case="model_name device setup custom_op_library reference rtol atol trust_pickle timeout budget threads "
    "memory_limit",
)
def repro(
    package: opt.Package,
    inputs: opt.Inputs = None,
    *,
    output_dir: Folder = Path("repro"),
    from_: ReproFrom = None,
    keep_weights: KeepWeights = False,
    wanted: Options,
    show: Show,
) -> None:
    """Write a short script that fails in the same way, and prove that it does.

    Diagnoses as run does, then tries a script with torch alone: generated inputs first, then the values that matter;
    weights zeroed first. The script is written only if it ends in the same way in a fresh interpreter, and its package
    and inputs get the same signature. The folder must be empty, or contain an earlier repro.
    """
    from aotidoctor.commands.repro import reproduce

    execute(
        "repro",
        package,
        show,
        lambda on_event: reproduce.repro(
            package,
            inputs,
            wanted,
            output_dir,
            saved=from_,
            keep_weights=keep_weights,
            redact=show.redact,
            argv=argv(),
            environ=os.environ,
            on_event=on_event,
        ),
    )


class Include(str, enum.Enum):
    """Contents of a bundle that are sent only on request."""

    WEIGHTS = "weights"
    INPUTS = "inputs"
    PACKAGE = "package"


BundleOutput = Annotated[str | None, opt.output("FILE", "Bundle to write. [default: PACKAGE.bundle.zip, here]")]
Run = Annotated[bool, typer.Option("--run", help="Run the package, as `run` does. Default: check it only.")]
BundleFrom = Annotated[str | None, typer.Option("--from", metavar="REPORT", help="Send this saved JSON report.")]
Log = Annotated[list[str] | None, typer.Option("--log", metavar="FILE", help="Also send this log; repeatable.")]
Includes = Annotated[
    list[Include] | None, typer.Option("--include", help="Also send this; it cannot be redacted. Repeatable.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List what would be sent, without writing it.")]
HiddenWords = Annotated[
    list[str] | None, typer.Option("--redact-word", metavar="WORD", help="Also hide this word; repeatable.")
]
Map = Annotated[
    str | None,
    typer.Option(
        "--map",
        metavar="FILE",
        help="File that maps placeholders to what they replace. [default: next to the bundle]",
        rich_help_panel=opt.OUTPUT,
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow-leaks", metavar="WORD", help="Write the bundle even if it contains this word; repeatable."),
]
MaxSize = Annotated[
    int, typer.Option("--max-size", parser=opt.size, metavar="SIZE", help="Largest size of the bundle.")
]


@with_fetched_urls("package", "inputs", "log", "setup", "reference", "from_")
@with_options(case="model_name device setup custom_op_library reference generate trust_pickle timeout budget")
def bundle(
    package: opt.Package,
    inputs: opt.Inputs = None,
    *,
    output: BundleOutput = None,
    run: Run = False,
    from_: BundleFrom = None,
    log: Log = None,
    include: Includes = None,
    dry_run: DryRun = False,
    redact_word: HiddenWords = None,
    map_: Map = None,
    allow_leaks: Allow = None,
    max_size: MaxSize = 256 << 20,
    wanted: Options,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    fail_on: opt.FailOnOption = FailOn.ERROR,
    redact: opt.Redact = True,
) -> None:
    """Pack everything that a report needs into one file, without private data.

    Weights and values of tensors are left out; names and secrets become placeholders, and the finished file is searched
    for them. Executes nothing, unless --run is given.
    """
    from aotidoctor.commands.bundle.bundle_members import BundleContents, Material
    from aotidoctor.commands.bundle.make_bundle import (
        BundleTarget,
        check_target,
        deliver,
        examine_for_bundle,
        listing,
        with_saved_report,
    )
    from aotidoctor.reports.json.json_report import dump_json
    from aotidoctor.triage.missing_file import unreadable_file

    opt.require_one_source(inputs, generate=wanted.generate)
    if run and from_ is not None:
        raise typer.BadParameter("--run and --from cannot be combined", param_hint="--from")
    short = [word for word in redact_word or () if len(word) < 3]
    if short:
        raise typer.BadParameter(f"{short[0]!r} is too short to search for", param_hint="--redact-word")
    contents = BundleContents(
        logs=tuple(log or ()),
        include=tuple(item.value for item in include or ()),
        words=tuple(redact_word or ()),
        allowed=tuple(allow_leaks or ()),
        redact=redact,
        largest=max_size,
    )
    for path in contents.logs:
        if (problem := unreadable_file(path, "--log")) is not None:
            _fail_bundle(problem)
    place = Path(output) if output is not None else Path(f"{Path(package).name or 'package'}.bundle.zip")
    target = BundleTarget(path=place, map_path=Path(map_) if map_ is not None else None, dry=dry_run)
    material: list[Material] = []

    def work(on_event: OnEvent) -> Report:
        check_target(target, (package, inputs, wanted.reference, wanted.setup, from_, *contents.logs))
        found = examine_for_bundle(
            package, inputs, wanted, runs=run, argv=argv(), environ=os.environ, on_event=on_event
        )
        material.append(found if from_ is None else with_saved_report(found, from_))
        return found.report

    report = report_of_work("bundle", package, work, make_progress(sys.stderr, os.environ, quiet=quiet))
    if report.interrupted:
        # There is no bundle of half a case.
        raise KeyboardInterrupt
    if report.cannot_examine is not None and not contents.logs:
        _fail_bundle(report.cannot_examine)
    try:
        made = deliver(
            material[0] if material else Material(report=report), contents, target, os.environ, platform.node()
        )
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    except AotidoctorError as error:
        _fail_bundle(str(error))
    map_place = str(target.map_file) if contents.redact else None
    text = listing(made, place=str(place), map_place=map_place, dry=dry_run, brief=quiet)
    write_stdout(dump_json(made.manifest) if json else text)
    raise typer.Exit(exit_status(report, fail_on.value))


def _fail_bundle(message: str) -> NoReturn:
    warn(message)
    raise typer.Exit(CANNOT_EXAMINE)


BundleOrReport = Annotated[str, typer.Argument(metavar="BUNDLE", help="A bundle (.zip), or a JSON report.")]


@with_options("sent", "cases", case="rtol atol")
def analyze(sent: BundleOrReport, *, wanted: Options, cases: opt.Cases = None, show: Show) -> None:
    """Diagnose a bundle again, without its package, host or GPU; with --rtol or --atol only its comparison, by those.

    Repeats every check that needs no execution, keeps the results of the recorded runs, reads the logs in the bundle,
    and reports what changed. Executes, unpickles and unpacks nothing.
    """
    from aotidoctor.commands.analyze.analyze import analyze as judge

    execute(
        "analyze", sent, replace(show, cases=cases), lambda _: judge(sent, wanted.tolerances, argv=argv()), static=True
    )


_KINDS = "A report (JSON), a bundle, a package, `env --json` of a host, or `here` for this one."
One = Annotated[str, typer.Argument(metavar="A", help=_KINDS, autocompletion=opt.offer(lambda: ("here",)))]
OtherSide = Annotated[
    str, typer.Argument(metavar="B", help="What to compare with A; if one of the two fails, that one.")
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Also list minor differences and unknown facts.", rich_help_panel=opt.OUTPUT),
]


@with_fetched_urls("a", "b")
def diff(
    a: One,
    b: OtherSide,
    *,
    format_: opt.PageFormatOption = None,
    json: opt.Json = False,
    quiet: opt.OnlyVerdict = False,
    verbose: Verbose = False,
    redact: opt.Redact = True,
) -> None:
    """Compare two reports, packages or hosts: works there, fails here.

    Differences are ranked by their importance in the playbooks. A package compared with a host shows whether it fits
    there. Executes and unpickles nothing, and needs no torch. Exit status: 0 no difference that matters, 1 differences,
    4 not readable, 6 too much to read.
    """
    chosen = page_format(format_, json=json)
    environ = os.environ
    found = _compare(a, b, chosen, environ, redact=redact)
    detail = -1 if quiet else int(verbose)
    write_stdout(_render_difference(found, chosen, detail, environ))
    raise typer.Exit(1 if found.matters else 0)


def _compare(a: str, b: str, chosen: PageFormat, environ: Mapping[str, str], *, redact: bool) -> DocumentComparison:
    """The comparison; what cannot be read or breaks ends the process with its status and, as JSON, its document."""
    # `--help` does not need these.
    from aotidoctor.commands.diff.compare_documents import compare_files
    from aotidoctor.model.fleet import DIFFERENCE_SCHEMA
    from aotidoctor.reports.redact.redactor import Redactor

    redactor = Redactor.of(environ)

    def write_error(field: str, message: str) -> None:
        line = one_line(message, 1000)
        if chosen is PageFormat.JSON:
            write_stdout(json_document(DIFFERENCE_SCHEMA, {"same": None, field: line}))
        else:
            title = "# Not compared\n\n" if chosen is PageFormat.MD else " NOT COMPARED  "
            write_stdout(f"{title}{line}\n")

    with exit_with_error(write_error, redactor.text if redact else str), within_limits():
        found = compare_files(a, b, environ)
        return redactor.value(found) if redact else found
    raise AssertionError  # An error has ended the process.


def _render_difference(found: DocumentComparison, chosen: PageFormat, detail: int, environ: Mapping[str, str]) -> str:
    match chosen:
        case PageFormat.JSON:
            from aotidoctor.model.fleet import DIFFERENCE_SCHEMA
            from aotidoctor.reports.json.json_report import pick_fields

            body = pick_fields(found, "a b differences equal left_out unknown")
            return json_document(DIFFERENCE_SCHEMA, {"same": not found.matters, **body})
        case PageFormat.MD:
            from aotidoctor.reports.markdown import render_difference_markdown

            return render_difference_markdown(found)
        case PageFormat.RICH:
            from aotidoctor.reports.page.compared_page import difference_headline, difference_sections
            from aotidoctor.reports.terminal.terminal_layout import sections_text

            first, stream = difference_headline(found), sys.stdout or StringIO()
            parts = difference_sections(found, detail=detail) if detail >= 0 else ()
            return sections_text(parts, stream=stream, environ=environ, first=first, unfolded=80)


StoreFile = Annotated[str | None, typer.Option("--cases", metavar="FILE", envvar="AOTIDOCTOR_CASES", help="The store.")]
Signature = Annotated[
    str | None, typer.Option(metavar="SIGNATURE", help="Only cases with this exact or family signature.")
]


def _causes() -> list[str]:
    from aotidoctor.model.report import playbook_files

    return [path.stem for path in playbook_files()]


Cause = Annotated[
    str | None, typer.Option(metavar="CAUSE", help="Only cases with this cause.", autocompletion=opt.offer(_causes))
]
Subject = Annotated[str | None, typer.Option(metavar="TEXT", help="Only cases with this text in a subject.")]
SearchWords = Annotated[
    str | None, typer.Option(metavar="WORDS", help="Only cases with all these words, or beginnings of words.")
]
Most = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show at most this many, latest first.")]
Which = Annotated[str, typer.Argument(metavar="CASE", help="Number or signature of a case.")]
Text = Annotated[str, typer.Argument(metavar="TEXT", help="Text of the note; - reads standard input.")]
Solved = Annotated[bool, typer.Option("--solved", help="Mark as the solution: reports of the same failure show it.")]
CasesOutput = Annotated[str | None, opt.output("FILE", "Write to this file instead of stdout.")]
Document = Annotated[str, typer.Argument(metavar="FILE", help="A file written by `cases export`.")]
OtherStore = Annotated[str, typer.Argument(metavar="OTHER", help="The other store, opened read-only.")]
_LONGEST_NOTE = 10_000


def cases(
    *,
    cases_: StoreFile = None,
    signature: Signature = None,
    cause: Cause = None,
    subject: Subject = None,
    words: SearchWords = None,
    limit: Most = 100,
    format_: opt.PageFormatOption = None,
    json: opt.Json = False,
) -> None:
    """List, search, note and exchange earlier diagnoses.

    The store is one SQLite file, which run, classify, watch, analyze and batch write to only with --cases FILE or
    AOTIDOCTOR_CASES. It is redacted like a bundle. list, show, note, export, import and merge are subcommands; without
    one, the cases are listed.
    """
    chosen = page_format(format_, json=json)
    with _open_cases(cases_) as store:
        found = store.find(_query(signature, cause, subject, words, limit))
        _show(found, chosen, whole=False)


def show(
    case: Which, *, cases_: StoreFile = None, format_: opt.PageFormatOption = None, json: opt.Json = False
) -> None:
    """Show one case with its sightings and notes."""
    chosen = page_format(format_, json=json)
    with _open_cases(cases_) as store:
        _show([store.whole(_one(store, case))], chosen, whole=True)


def note(case: Which, text: Text, *, solved: Solved = False, cases_: StoreFile = None) -> None:
    """Note something on a case, or what solved it.

    Names and secrets in it are hidden, as in everything that the store keeps.
    """
    from aotidoctor.commands.cases.remember import strict_redactor
    from aotidoctor.model.case import CaseNote

    parts = (sys.stdin.read(_LONGEST_NOTE) if text == "-" and sys.stdin is not None else text).strip()[:_LONGEST_NOTE]
    if not parts:
        raise typer.BadParameter("an empty note", param_hint="TEXT")
    with _open_cases(cases_, write=True) as store:
        found = _one(store, case)
        at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        made = CaseNote(text=strict_redactor(os.environ).text(parts), at=at, solved=solved)
        store.add([replace(found, notes=(made,))])
        write_stdout(f"noted on case {found.number}: {one_line(made.text)}\n")


def export(
    *,
    cases_: StoreFile = None,
    signature: Signature = None,
    cause: Cause = None,
    subject: Subject = None,
    words: SearchWords = None,
    output: CasesOutput = None,
) -> None:
    """Write cases with their sightings and notes as JSON."""
    from aotidoctor.commands.cases.remember import MOST_EXPORTED, export_text

    with _open_cases(cases_) as store:
        text = export_text(store, _query(signature, cause, subject, words, MOST_EXPORTED))
        if output is None:
            write_stdout(text)
            return
        if cases_ is not None and os.path.realpath(output) == os.path.realpath(cases_):
            raise typer.BadParameter(f"{output} is the store and is not overwritten", param_hint="--output")
        write_output(output, text)


def import_(file: Document, *, cases_: StoreFile = None) -> None:
    """Add the cases that `cases export` wrote; existing entries are not added again."""
    from aotidoctor.commands.cases.remember import import_file, strict_redactor

    with _open_cases(cases_, make=True) as store:
        _print_added(import_file(store, file, strict_redactor(os.environ)))


def merge(other: OtherStore, *, cases_: StoreFile = None) -> None:
    """Add the cases of another store; existing entries are not added again."""
    from aotidoctor.commands.cases.remember import merge as merged

    with _open_cases(cases_, make=True) as store:
        _print_added(merged(store, other))


def _print_added(added: tuple[int, int]) -> None:
    write_stdout(f"{plural(added[0], 'new sighting')}, {plural(added[1], 'new note')}\n")


@contextmanager
def _open_cases(path: str | None, *, make: bool = False, write: bool = False) -> Iterator[CaseStore]:
    """The store; what goes wrong with it ends the process with its status."""
    from aotidoctor.commands.cases.case_store import open_store

    if path is None:
        raise typer.BadParameter("name the store: --cases FILE or AOTIDOCTOR_CASES", param_hint="--cases")
    with exit_on_error(), notice_wait(f"at work on {path}"), open_store(path, make=make, write=write) as store:
        yield store


def _query(signature: str | None, cause: str | None, subject: str | None, words: str | None, most: int) -> CaseQuery:
    from aotidoctor.commands.cases.case_store import CaseQuery

    return CaseQuery(signature=signature, cause=cause, subject=subject, words=words, most=most)


def _one(store: CaseStore, which: str) -> CaseRecord:
    found = store.get(which)
    if found is None:
        raise CannotExamineError(f"no case {which!r}; `aotidoctor cases` lists them")
    return found


def _show(found: list[CaseRecord], chosen: PageFormat, *, whole: bool) -> None:
    match chosen:
        case PageFormat.JSON:
            from aotidoctor.commands.cases.remember import document

            write_stdout(document(found))
        case PageFormat.MD:
            from aotidoctor.reports.cases_and_sweeps import cases_markdown

            write_stdout(cases_markdown(found, whole=whole))
        case PageFormat.RICH:
            from aotidoctor.reports.cases_and_sweeps import cases_text

            write_stdout(cases_text(found, stream=sys.stdout or StringIO(), environ=os.environ, whole=whole))
