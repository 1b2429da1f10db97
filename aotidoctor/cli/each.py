"""``python -m aotidoctor.cli.each COMMAND FILE...``: one command for each file, for pre-commit and for CI.

Each file is examined by a process of its own, as on the command line, so that no limit is shared. Of those that are not
healthy the first screen is printed (at most ``_LINES``), with ``--summary`` the whole output; the exit status is the
highest of all. A ``config.pbtxt`` stands for its folder.

``batch`` is one command for all of them. With ``--patterns`` the files are found by bash's patterns below the working
folder, one a line; ``--reports DIR`` keeps a JSON report and SARIF per file and ``all.sarif``, a document with one run,
as code scanning takes it; ``--summary FILE`` appends Markdown.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from aotidoctor.files import append_to_file, write_file
from aotidoctor.model.errors import CANNOT_EXAMINE, USAGE
from aotidoctor.model.record import JsonObject, JsonValue, as_object, objects
from aotidoctor.reports.text import one_line, plain
from aotidoctor.runner.own_command import ExaminedPath, run_each

COMMANDS = ("check", "run", "triton", "batch")
CONFIG = "config.pbtxt"
# What GitHub shows of a summary is 1 MiB; a file's part is short.
_PART, _SUMMARY = 20_000, 900_000
# What pre-commit prints of a file: all that is bad at a glance.
_LINES = 8


def main(words: Sequence[str] | None = None) -> int:
    """Run it; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m aotidoctor.cli.each", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--patterns", metavar="TEXT", help="patterns, one per line")
    parser.add_argument("--arguments", metavar="TEXT", help="further options of the command")
    parser.add_argument("--fail-on", default="error", choices=("info", "warn", "error", "never"))
    parser.add_argument("--reports", metavar="DIR", help="write JSON and SARIF to this folder")
    parser.add_argument("--summary", metavar="FILE", help="append a summary in Markdown")
    given = parser.parse_args(words)
    try:
        lines = [line.strip() for line in (given.patterns or "").splitlines() if line.strip()]
        found = (path for line in lines for path in sorted(glob.glob(line, recursive=True)))  # noqa: PTH207
        files = [*given.files, *(lines if given.command == "batch" else dict.fromkeys(found))]
        more = [*shlex.split(given.arguments or ""), "--fail-on", given.fail_on]
    except ValueError as error:
        return _fail(f"--arguments: {error}", USAGE)
    if not files:
        return _fail(f"no file matches {given.patterns!r}" if given.patterns else "no file was given", CANNOT_EXAMINE)
    reports = Path(given.reports) if given.reports else None
    if given.command == "batch":
        return _batch(files, more, reports, given.summary)
    brief = given.summary is None
    ended = [_one(given.command, path, [*more, *(["--quiet"] if brief else [])], reports) for path in files]
    for one in ended:
        if one.status:
            sys.stdout.write(_short(one, given.command) if brief else f"{one.path}\n{one.output}\n")
    sys.stdout.write(f"{sum(not one.status for one in ended)} of {len(ended)} passed\n")
    if reports is not None:
        _join(reports, [_name(one.path) for one in ended])
    unwritten = _summarise(given.summary, ended) if given.summary else 0
    return max(unwritten, *(one.status for one in ended))


def _short(one: ExaminedPath, command: str) -> str:
    """The path and the first screen in ``_LINES`` lines, cut where it has more; the command shows the rest."""
    # The second line names the package again.
    lines = [line for line in one.output.splitlines() if line.strip() and not line.startswith(f" {one.path} (")]
    if len(lines) > _LINES - 1:
        lines = [
            *lines[: _LINES - 2],
            f" and {len(lines) - _LINES + 2} more lines: aotidoctor {command} {shlex.quote(_place(command, one.path))}",
        ]
    return "\n".join([one.path, *lines]) + "\n"


def _place(command: str, path: str) -> str:
    """What is examined, as a shell reads it: a configuration stands for its folder; a path with a dash is a path."""
    what = os.path.dirname(path) or "." if command == "triton" and Path(path).name == CONFIG else path  # noqa: PTH120
    return f"./{what}" if what.startswith("-") else what


def _batch(items: Sequence[str], more: Sequence[str], reports: Path | None, summary: str | None) -> int:
    """All of them by one ``aotidoctor batch``, which finds them itself; its page is the summary."""
    if reports is not None and (reports / "batch").is_symlink():
        return _fail(f"{reports / 'batch'} is a symbolic link, and links in a folder are not followed", CANNOT_EXAMINE)
    folder = [] if reports is None else ["--output", str(reports / "batch")]
    places = [f"./{item}" if item.startswith("-") else item for item in items]
    done = run_each(["batch", *places, *more, *folder, "--format", "md"], "batch")
    sys.stdout.write(f"{done.output}\n")
    if summary is not None:
        return max(done.status, _append(summary, f"{plain(done.output)[:_SUMMARY]}\n"))
    return done.status


def _one(command: str, path: str, more: Sequence[str], reports: Path | None) -> ExaminedPath:
    parts = [] if reports is None else [f"{kind}:{reports / _name(path)}.{kind}" for kind in ("json", "sarif", "md")]
    return run_each(
        [command, _place(command, path), *more, *(word for spec in parts for word in ("--report", spec))], path
    )


def _name(path: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", path).strip("-.")[-120:] or "package"


def _join(reports: Path, names: Sequence[str]) -> None:
    """One SARIF document with one run: code scanning refuses several runs of one tool and category."""
    documents: list[JsonObject] = []
    for name in names:
        with suppress(OSError, ValueError):
            found = json.loads((reports / f"{name}.sarif").read_text(encoding="utf-8"))
            documents += [found] if isinstance(found, dict) else []
    if not documents:
        return
    first = documents[0]
    runs = [run for document in documents for run in objects(document.get("runs"))]
    rules: dict[str, JsonObject] = {}
    for run in runs:
        rules.update({str(rule.get("id")): rule for rule in objects(_driver(run).get("rules"))})
    order = {name: number for number, name in enumerate(rules)}
    results: list[JsonObject] = [
        {**_place_by_uri(result), **({"ruleIndex": order[str(result["ruleId"])]} if "ruleIndex" in result else {})}
        for run in runs
        for result in objects(run.get("results"))
    ]
    driver: JsonObject = {**_driver(runs[0]), "rules": list(rules.values())}
    notes = [note for run in runs for note in objects(run.get("invocations"))]
    joined: JsonObject = {
        **{key: value for key, value in runs[0].items() if key not in ("artifacts", "properties")},
        "tool": {"driver": driver},
        "results": list(results),
        "invocations": list(notes),
    }
    write_file(reports / "all.sarif", json.dumps({**first, "runs": [joined]}))


def _place_by_uri(result: JsonObject) -> JsonObject:
    """Locations by their URI: the list of files that an index counts in is not that of the joined document."""
    return {name: _inside(value) for name, value in result.items() if not (name == "index" and "uri" in result)}


def _inside(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_inside(item) for item in value]
    return _place_by_uri(value) if isinstance(value, dict) else value


def _driver(run: JsonObject) -> JsonObject:
    return as_object(as_object(run.get("tool")).get("driver"))


def _summarise(path: str, ended: Sequence[ExaminedPath]) -> int:
    lines = ((one, (line.strip() for line in one.output.splitlines() if line.strip())) for one in ended)
    headed = [(one, next(found, "")) for one, found in lines]
    rows = [f"| {_cell(one.path)} | {one.status} | {_cell(headline)} |" for one, headline in headed]
    text = "\n".join(["### aotidoctor", "", "| file | exit status | |", "|---|---|---|", *rows, ""])
    for one in ended:
        if one.status and len(text) < _SUMMARY:
            output = plain(one.output)[:_PART].replace("```", "'''")
            text += f"\n<details><summary>{_cell(one.path)}</summary>\n\n```text\n{output}\n```\n</details>\n"
    return _append(path, text[:_SUMMARY])


def _append(path: str, text: str) -> int:
    """Exit status 4 where the summary cannot be written."""
    try:
        append_to_file(path, text)
    except OSError as error:
        return _fail(f"--summary {path}: {error.strerror}", CANNOT_EXAMINE)
    return 0


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _fail(text: str, status: int) -> int:
    sys.stderr.write(f"aotidoctor: {text}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
