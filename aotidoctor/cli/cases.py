"""``aotidoctor cases``: what was diagnosed before, in a store that `--cases` of other commands writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.show import PageFormat, page_format, refusing, write_stdout
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.phrases import plural
from aotidoctor.reports.text import one_line
from aotidoctor.reports.write import write_file

if TYPE_CHECKING:
    from aotidoctor.commands.cases.store import Query, Store
    from aotidoctor.model.history import CaseRecord

StoreFile = Annotated[
    str | None,
    typer.Option("--cases", metavar="FILE", envvar="AOTIDOCTOR_CASES", help="The store."),
]
Signature = Annotated[
    str | None, typer.Option(metavar="SIGNATURE", help="Only cases with this exact or family signature.")
]
Cause = Annotated[str | None, typer.Option(metavar="CAUSE", help="Only cases with this cause.")]
Subject = Annotated[str | None, typer.Option(metavar="TEXT", help="Only cases with this text in a subject.")]
Words = Annotated[
    str | None, typer.Option(metavar="WORDS", help="Only cases with all these words, or beginnings of words.")
]
Most = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show at most this many, latest first.")]
Which = Annotated[str, typer.Argument(metavar="CASE", help="Number or signature of a case.")]
Text = Annotated[str, typer.Argument(metavar="TEXT", help="Text of the note; - reads standard input.")]
Solved = Annotated[bool, typer.Option("--solved", help="Mark as the solution: reports of the same failure show it.")]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
]
Document = Annotated[str, typer.Argument(metavar="FILE", help="A file written by `cases export`.")]
Other = Annotated[str, typer.Argument(metavar="OTHER", help="The other store, opened read-only.")]
_LONGEST_NOTE = 10_000


def cases(
    *,
    cases_: StoreFile = None,
    signature: Signature = None,
    cause: Cause = None,
    subject: Subject = None,
    words: Words = None,
    limit: Most = 100,
    format_: opt.PageFormatOption = None,
    json: opt.Json = False,
) -> None:
    """List, search, note and exchange earlier diagnoses.

    The store is one SQLite file, which run, classify, watch, analyze and batch write to only with --cases FILE or
    AOTIDOCTOR_CASES. It is redacted like a bundle. list, show, note, export, import and merge are subcommands; without
    one, the cases are listed.
    """
    shown = page_format(format_, json=json)
    with _opened(cases_) as store:
        found = store.find(_query(signature, cause, subject, words, limit))
        _show(found, shown, whole=False)


def show(
    case: Which, *, cases_: StoreFile = None, format_: opt.PageFormatOption = None, json: opt.Json = False
) -> None:
    """Show one case with its sightings and notes."""
    shown = page_format(format_, json=json)
    with _opened(cases_) as store:
        _show([store.whole(_one(store, case))], shown, whole=True)


def note(case: Which, text: Text, *, solved: Solved = False, cases_: StoreFile = None) -> None:
    """Note something on a case, or what solved it.

    Names and secrets in it are hidden, as in everything that the store keeps.
    """
    from aotidoctor.commands.cases.remember import strict  # noqa: PLC0415 - `--help` does not need it
    from aotidoctor.model.history import Note  # noqa: PLC0415 - likewise

    told = (sys.stdin.read(_LONGEST_NOTE) if text == "-" and sys.stdin is not None else text).strip()[:_LONGEST_NOTE]
    if not told:
        raise typer.BadParameter("an empty note", param_hint="TEXT")
    with _opened(cases_) as store:
        found = _one(store, case)
        at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        made = Note(text=strict(os.environ).text(told), at=at, solved=solved)
        store.add([replace(found, notes=(made,))])
        write_stdout(f"noted on case {found.number}: {one_line(made.text)}\n")


def export(
    *,
    cases_: StoreFile = None,
    signature: Signature = None,
    cause: Cause = None,
    subject: Subject = None,
    words: Words = None,
    output: Output = None,
) -> None:
    """Write cases with their sightings and notes as JSON."""
    from aotidoctor.commands.cases.exchange import everything, export_text  # noqa: PLC0415 - see above

    with _opened(cases_) as store:
        text = export_text(store, _query(signature, cause, subject, words, everything().most))
        if output is None:
            write_stdout(text)
            return
        if cases_ is not None and os.path.realpath(output) == os.path.realpath(cases_):
            raise typer.BadParameter(f"{output} is the store and is not overwritten", param_hint="--output")
        try:
            write_file(Path(output), text)
        except OSError as error:
            raise CannotExamineError(f"could not write {output}: {error.strerror or error}") from error


def import_(file: Document, *, cases_: StoreFile = None) -> None:
    """Add the cases that `cases export` wrote; existing entries are not added again."""
    from aotidoctor.commands.cases.exchange import import_file  # noqa: PLC0415 - see above
    from aotidoctor.commands.cases.remember import strict  # noqa: PLC0415 - likewise

    with _opened(cases_, make=True) as store:
        _said(import_file(store, file, strict(os.environ)))


def merge(other: Other, *, cases_: StoreFile = None) -> None:
    """Add the cases of another store; existing entries are not added again."""
    from aotidoctor.commands.cases.exchange import merge as merged  # noqa: PLC0415 - see above

    with _opened(cases_, make=True) as store:
        _said(merged(store, other))


def _said(added: tuple[int, int]) -> None:
    write_stdout(f"{plural(added[0], 'new sighting')}, {plural(added[1], 'new note')}\n")


@contextmanager
def _opened(path: str | None, *, make: bool = False) -> Iterator[Store]:
    """The store; what goes wrong with it ends the process with its status."""
    from aotidoctor.commands.cases.store import open_store  # noqa: PLC0415 - `--help` does not need it

    if path is None:
        raise typer.BadParameter("name the store: --cases FILE or AOTIDOCTOR_CASES", param_hint="--cases")
    with refusing(), open_store(path, make=make) as store:
        yield store


def _query(signature: str | None, cause: str | None, subject: str | None, words: str | None, most: int) -> Query:
    from aotidoctor.commands.cases.store import Query  # noqa: PLC0415 - `--help` does not need it

    return Query(signature=signature, cause=cause, subject=subject, words=words, most=most)


def _one(store: Store, which: str) -> CaseRecord:
    found = store.get(which)
    if found is None:
        raise CannotExamineError(f"no case {which!r}; `aotidoctor cases` lists them")
    return found


def _show(found: list[CaseRecord], shown: PageFormat, *, whole: bool) -> None:
    match shown:
        case PageFormat.JSON:
            from aotidoctor.commands.cases.exchange import document  # noqa: PLC0415 - the chosen format only

            write_stdout(document(found))
        case PageFormat.MD:
            from aotidoctor.reports.cases import markdown  # noqa: PLC0415 - likewise

            write_stdout(markdown(found, whole=whole))
        case PageFormat.RICH:
            from aotidoctor.reports.cases import text  # noqa: PLC0415 - likewise

            write_stdout(text(found, stream=sys.stdout or StringIO(), environ=os.environ, whole=whole))
