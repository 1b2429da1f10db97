"""``aotidoctor inspect``, ``env``, ``explain``, ``schema``, ``plugins``, ``web``, ``mcp``, ``demo``: other commands."""

from __future__ import annotations

import enum
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from aotidoctor.api.option_arguments import use_plugins
from aotidoctor.cli import options as opt
from aotidoctor.cli.document_output import (
    Format,
    PageFormat,
    Show,
    exit_on_error,
    page_format,
    render_report,
    warn,
    write_stderr,
    write_stdout,
)
from aotidoctor.cli.execute import argv, execute, make_progress, report_of_work
from aotidoctor.cli.options import make_show, with_options
from aotidoctor.files import write_file
from aotidoctor.interruption import interruptible
from aotidoctor.model.case import Options
from aotidoctor.model.errors import OK, PROBLEM, UNKNOWN, AotidoctorError, CannotExamineError
from aotidoctor.model.report import Report
from aotidoctor.reports.redact.redactor import Redactor, redact_private
from aotidoctor.reports.text import exit_status

if TYPE_CHECKING:
    from aotidoctor.commands.demo import DemoCase


@with_options("package")
def inspect(package: opt.Package, *, model_name: opt.ModelName = None, show: Show) -> None:
    """Show the contents of a package and its requirements.

    Executes nothing from PACKAGE, and needs no torch.
    """
    wanted = Options(model_name=model_name)
    from aotidoctor.commands import diagnose_package

    execute(
        "inspect",
        package,
        show,
        lambda _: diagnose_package.inspect(package, wanted, argv=argv(), environ=os.environ),
        static=True,
    )


Save = Annotated[
    str | None, typer.Option("--save", metavar="FILE", help="Also write a profile of this host, for --host elsewhere.")
]


@with_options("host")
def env(*, host: opt.Host = None, save: Save = None, show: Show) -> None:
    """Show the properties of this host, and when settings take effect.

    Does not import torch: builds, GPUs, libraries and limits are read from files. With --host, shows the profile of a
    different machine.
    """
    if host is not None and save is not None:
        raise typer.BadParameter("--save and --host cannot be combined", param_hint="--save")
    from aotidoctor.commands import diagnose_package

    def work() -> Report:
        if save is not None:
            _save(save, redact=show.redact)
        return diagnose_package.env(argv=argv(), environ=os.environ, profile=host)

    execute("env", "", show, lambda _: work(), static=True)


def _save(path: str, *, redact: bool) -> None:
    from aotidoctor.readers.host.host_facts import read_host
    from aotidoctor.readers.host.profiles import profile_document
    from aotidoctor.reports.json.json_report import dump_json

    host = read_host(artifact=None, environ=os.environ, survey=True)
    redacted = redact_private(host, os.environ) if redact else host
    try:
        write_file(path, dump_json(profile_document(redacted, Path(path).stem)))
    except OSError as error:
        raise CannotExamineError(f"could not write {path}: {error.strerror or error}") from error
    write_stderr(f"aotidoctor: profile written to {path}\n")


def _topics() -> tuple[str, ...]:
    from aotidoctor.commands.explain import topics

    return topics()


def explain(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="[CAUSE|CODE|SYMPTOM]",
            help="Such as input-stride, AD-IN-014, segfault. [default: all symptoms]",
            autocompletion=opt.offer(_topics),
        ),
    ] = None,
    *,
    format_: opt.PageFormatOption = None,
    json: opt.Json = False,
) -> None:
    """Explain a cause, a check, a probe or a symptom.

    Without an argument: the symptoms (crashes, hangs, wrong numbers, ...), each with its causes.
    """
    chosen = page_format(format_, json=json)
    # `--help` does not need these.
    from aotidoctor.commands import explain as manual

    with use_plugins("explain", wanted=True):
        page = manual.symptom_page() if topic is None else manual.find(topic)
    if page is None:
        assert topic is not None  # noqa: S101 - there is a page of all symptoms
        near = manual.near(topic)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise typer.BadParameter(f"no page for {topic!r}{hint}", param_hint="CAUSE|CODE|SYMPTOM")
    match chosen:
        case PageFormat.JSON:
            from aotidoctor.reports.json import json_report as json_

            fields = {"kind": page.kind, "name": page.name, "code": page.code, "text": page.text}
            write_stdout(json_.dump_json({"schema": "aotidoctor.explain/1", **fields}))
        case PageFormat.MD:
            write_stdout(manual.markdown(page))
        case PageFormat.RICH:
            from aotidoctor.reports.terminal.terminal_layout import markdown_page_text

            write_stdout(markdown_page_text(manual.markdown(page), stream=sys.stdout or StringIO(), environ=os.environ))


class Document(str, enum.Enum):
    """Documents with a schema."""

    REPORT = "report"
    DIFF = "diff"


Which = Annotated[Document, typer.Argument(metavar="[report|diff]", help="Which document.")]


def schema(document: Which = Document.REPORT) -> None:
    """Print the JSON Schema of the JSON report."""
    # `--help` does not need these.
    from aotidoctor.reports.json.json_report import dump_json

    if document is Document.DIFF:
        from aotidoctor.reports.json.schema import difference_schema

        write_stdout(dump_json(difference_schema()))
        return
    from aotidoctor.reports.json.schema import schema as report_schema

    write_stdout(dump_json(report_schema()))


OnlyList = Annotated[bool, typer.Option("--list", help="Only list plugins; import nothing.")]


def plugins(*, list_: OnlyList = False, json: opt.Json = False) -> None:
    """List and validate the installed plugins.

    Imports each in a separate process. Exit status 1: at least one of them cannot be used.
    """
    from aotidoctor.plugins.proxies import list_plugins, plugin_list_text

    found = list_plugins(validate=not list_)
    if json:
        from aotidoctor.reports.json.json_report import dump_json

        write_stdout(dump_json(found))
    else:
        write_stdout(plugin_list_text(found))
    raise typer.Exit(PROBLEM if any(row["problem"] for row in found["plugins"]) else OK)


RootFolder = Annotated[str, typer.Option("--root", metavar="DIR", help="Folder that contains all paths.")]
AllowRun = Annotated[
    bool, typer.Option("--allow-run", help="Also offer the tools that execute native code of packages: run and repro.")
]


def mcp(*, root: RootFolder = ".", allow_run: AllowRun = False) -> None:
    """Serve coding agents through the Model Context Protocol.

    Communicates over standard input and output until the input ends. Executes nothing from a package without
    --allow-run. Answers are redacted, bounded, and name their evidence.
    """
    if not Path(root).is_dir():
        raise typer.BadParameter(f"{root!r} is not a folder", param_hint="--root")
    from aotidoctor.commands.mcp import serve

    with exit_on_error():
        serve(root, may_run=allow_run, environ=os.environ)


PatientReport = tuple["DemoCase", Report]


Cuda = Annotated[
    bool, typer.Option("--cuda", help="Instead, find a fault in a CUDA package without a GPU; compiles nothing.")
]
OfFleet = Annotated[
    bool, typer.Option("--fleet", help="Instead, check 60 packages of two nights and show what is new; needs pandas.")
]


def web(
    *,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0: any that is free.")] = 0,
    build: Annotated[
        str | None, typer.Option("--build", metavar="DIR", help="Write the page as static files instead, for a server.")
    ] = None,
) -> None:
    """Serve a page that examines dropped files in the browser.

    The page runs Python in WebAssembly: files are read where they are, and nothing is sent anywhere. It can do what
    check, classify, analyze and triton do. The first call fetches Pyodide by npm (14 MB). Only this machine can reach
    it, at the address that is printed.
    """
    from aotidoctor.cli.web import site

    with exit_on_error():
        folder = Path(build) if build is not None else site.site_folder(os.environ)
        try:
            site.build_site(folder)
        except OSError as error:
            raise CannotExamineError(f"could not write {folder}: {error.strerror or error}") from error
        if build is not None:
            write_stdout(f"{folder}: serve these files from any server, or `python -m http.server -d {folder}`\n")
            return
        with site.SiteServer(folder, port) as server, interruptible():
            write_stdout(f"{server.address}\n")
            sys.stdout.flush()
            server.serve_forever()


def demo(
    *,
    cuda: Cuda = False,
    fleet: OfFleet = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    redact: opt.Redact = True,
) -> None:
    """Break a small model in four ways; triage each.

    The first call compiles the model: about a minute on two cores, once. Exit status 0: every cause was found.
    """
    if cuda and fleet:
        raise typer.BadParameter("--cuda and --fleet cannot be combined", param_hint="--fleet")
    show = make_show((), json=json, quiet=quiet, redact=redact)
    if fleet:
        _demo_fleet(show, os.environ)
    seen: list[PatientReport] = []
    for patient, report in _triage_patients(show, os.environ, cuda=cuda):
        seen.append((patient, report))
        if show.format is Format.RICH:
            number = len(seen)
            story = textwrap.fill(f"{number}. {patient.title}. {patient.story}", 80, subsequent_indent="   ")
            write_stdout(f"{story}\n\n{render_report(report, Format.RICH, Show(detail=-1), os.environ)}\n")
    write_stdout(_as_json(seen) if show.format is Format.JSON else _by_hand(seen, os.environ))
    # 0 when each cause was found, 3 when one was not, else why the last one could not be examined.
    if not _was_examined(seen[-1][1]):
        raise typer.Exit(exit_status(seen[-1][1], "error"))
    found = all(report.diagnoses and report.diagnoses[0].cause == patient.cause for patient, report in seen)
    raise typer.Exit(OK if found else UNKNOWN)


def _demo_fleet(show: Show, environ: Mapping[str, str]) -> NoReturn:
    """Sixty packages, two nights: what the second has that the first had not."""
    from aotidoctor.commands import demo as demo_module
    from aotidoctor.commands.fleet import render_fleet as fleet_in

    progress = make_progress(sys.stderr, environ, quiet=show.detail < 0, redact=show.redact)
    redactor = Redactor.of(environ)
    try:
        with progress:
            found = demo_module.make_fleet(environ, progress.on_event, redactor)
    except AotidoctorError as error:
        warn(redactor.text(str(error)))
        raise typer.Exit(error.exit_status) from error
    if show.format is Format.JSON:
        write_stdout("".join(fleet_in(found, "json")))
    else:
        from aotidoctor.reports.fleet.fleet_text import fleet_terminal_text

        write_stdout(
            fleet_terminal_text(
                found.summary, stream=sys.stdout or StringIO(), environ=environ, detail=min(show.detail, 0)
            )
        )
        place = _shell_path(demo_module.fleet_folder(environ), environ)
        write_stdout(f"\nThe page, and by hand:\n\n    {place}/{demo_module.PAGE}\n    cd {place}\n    ")
        write_stdout(
            f"{_own_command(environ)} fleet {demo_module.TONIGHT} --baseline {demo_module.LAST_NIGHT} --fail-on-new\n"
        )
    raise typer.Exit(OK if demo_module.is_as_expected(found) else UNKNOWN)


def _triage_patients(show: Show, environ: Mapping[str, str], *, cuda: bool) -> Iterator[PatientReport]:
    """Each patient, or the one for CUDA, with its report; ends after one that could not be examined."""
    # `--help` does not need the stages.
    from aotidoctor.commands import demo as demo_module

    with exit_on_error(), demo_module.warm_runner(environ) as runner:
        for patient in (demo_module.CUDA_CASE,) if cuda else demo_module.DEMO_CASES:
            triage = demo_module.triage_cuda if cuda else partial(demo_module.triage_demo_case, patient)
            progress = make_progress(sys.stderr, environ, quiet=show.detail < 0, redact=show.redact)
            report = report_of_work("run", patient.package, partial(triage, runner, environ), progress)
            yield patient, redact_private(report, environ) if show.redact else report
            if not _was_examined(report):
                return


def _was_examined(report: Report) -> bool:
    return exit_status(report, "error") in (OK, PROBLEM, UNKNOWN)


def _as_json(seen: list[PatientReport]) -> str:
    from aotidoctor.reports.json import json_report as json_

    patients = [
        {
            "title": patient.title,
            "story": patient.story,
            "cause": patient.cause,
            "report": json_.report_document(report),
        }
        for patient, report in seen
    ]
    return json_.dump_json({"schema": "aotidoctor.demo/1", "patients": patients})


def _by_hand(seen: list[PatientReport], environ: Mapping[str, str]) -> str:
    """The commands that repeat each triage; nothing where the files are not there."""
    if not _was_examined(seen[-1][1]):
        return ""
    from aotidoctor.commands import demo as demo_module

    cuda = seen[-1][0] is demo_module.CUDA_CASE
    place = demo_module.cuda_folder(environ) if cuda else demo_module.demo_folder(environ)
    words = [demo_module.cuda_argv()] if cuda else [demo_module.demo_argv(patient) for patient, _ in seen]
    lines = ["By hand, with everything below the first screen:", "", f"    cd {_shell_path(place, environ)}"]
    return "\n".join([*lines, *(f"    {_own_command(environ)} {shlex.join(one[1:])}" for one in words)]) + "\n"


def _own_command(environ: Mapping[str, str]) -> str:
    """What to type for this program in any folder: its name where the shell finds it, else its path."""
    program = Path(sys.argv[0])
    path, tail = (Path(sys.executable), " -m aotidoctor") if program.name == "__main__.py" else (program, "")
    found = shutil.which(path.name, path=environ.get("PATH"))
    is_found = found is not None and path.exists() and Path(found).samefile(path)
    return f"{path.name if is_found else _shell_path(path.absolute(), environ)}{tail}"


def _shell_path(place: Path, environ: Mapping[str, str]) -> str:
    """``place`` as a shell reads it, without the name of the home folder."""
    home = environ.get("HOME", "")
    if home and place.is_relative_to(home):
        return f"~/{shlex.quote(str(place.relative_to(home)))}"
    return shlex.quote(str(place))
