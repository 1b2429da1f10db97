"""Options that several commands share, and the decorator that adds them to a command.

``@with_options("package", case="model_name device")`` adds the output options behind the command's own and passes one
``show``; it puts the options named in ``case`` in the place of the parameter ``wanted``, in this order, and passes one
``Options``. Typer reads options from a function's signature, so the decorated function states one with both.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from enum import Enum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import GenericAlias
from typing import Annotated

import typer
from typer.models import OptionInfo

from aotidoctor.cli import url_arguments
from aotidoctor.cli.document_output import (
    EXTRAS,
    EmulateWhen,
    FailOn,
    Format,
    IssueForm,
    PageFormat,
    Show,
    ValuesForm,
    WeightProtocol,
    chosen_format,
)
from aotidoctor.commands.case_options import CASE, CASE_OPTIONS, PROBES
from aotidoctor.model.case import FIELDS, Options, Tolerance, Tolerances, parse_tolerance
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.report import Report

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZES = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


def duration(text: str) -> float:
    """Seconds in ``90``, ``90s``, ``1.5m``, ``2h``; more than nothing."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|)", str(text).strip())
    if found is None or float(found[1]) <= 0:
        raise typer.BadParameter(f"{text!r} is not a duration; write 90, 90s, 5m or 1h")
    return float(found[1]) * _UNITS[found[2]]


def size(text: str) -> int:
    """Bytes in ``4G``, ``512M``, ``1073741824``; more than nothing."""
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)(?:i?B)?", str(text).strip(), re.IGNORECASE)
    if found is None or int(found[1]) == 0:
        raise typer.BadParameter(f"{text!r} is not a size; write 512M or 4G")
    return int(found[1]) * _SIZES[found[2].upper()]


def require_one_source(inputs: str | None, *, generate: bool) -> None:
    """Inputs come from a file or are made up, not both."""
    if inputs is not None and generate:
        raise typer.BadParameter("--inputs and --generate cannot be combined", param_hint="--generate")


def require_plan(host: str | None, *, plan: bool) -> None:
    """Reject ``--host`` without ``--plan``: nothing can be run on a machine that is known only from its profile."""
    if host is not None and not plan:
        raise typer.BadParameter("only a plan can be made for a different machine: add --plan", param_hint="--host")


def tolerances(rtol: Sequence[str] | None, atol: Sequence[str] | None) -> Tolerances:
    """``--rtol`` and ``--atol`` as one value."""
    return Tolerances(rtol=_parse_tolerances("--rtol", rtol), atol=_parse_tolerances("--atol", atol))


def _parse_tolerances(option: str, texts: Sequence[str] | None) -> tuple[Tolerance, ...]:
    try:
        return tuple(parse_tolerance(text) for text in texts or ())
    except ValueError as error:
        hint = f"{error}; write 1e-3, result[0]:1e-3 or 0:1e-3"
        raise typer.BadParameter(hint, param_hint=option) from error


def split_names(text: str | None) -> tuple[str, ...] | None:
    """``a,b`` as a tuple; None stays None."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


# Values that completion offers. They are looked up when TAB asks for them.
def offer(values: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """What completes the value of an option: those of ``values`` that begin with what is typed."""

    def beginning_with(incomplete: str) -> list[str]:
        return [value for value in values() if value.startswith(incomplete)]

    return beginning_with


def known_hosts() -> tuple[str, ...]:
    """The names that stand for a profile."""
    from aotidoctor.readers.host.profiles import built_in_profiles

    return ("here", *built_in_profiles())


def known_formats() -> tuple[str, ...]:
    """The beginnings of what ``--report`` takes."""
    return tuple(f"{kind}:" for kind in (*(kind.value for kind in _FILE_FORMATS), *EXTRAS))


def _known_probes() -> list[str]:
    from aotidoctor.probes import PROBES

    return [probe.name for probe in PROBES]


# Options of a case as parameters. A command that declares one of its own names the alias; the rest are read by name.
OUTPUT = "Output"
_PATHS = ("path", "paths")
_TYPES: Mapping[str, type | GenericAlias] = {
    "flag": bool,
    "count": int,
    "seconds": float,
    "bytes": int,
    "emulate": EmulateWhen,
    "values": ValuesForm,
    "protocol": WeightProtocol,
    "paths": list[str],
    "tolerances": list[str],
}
_PARSERS: Mapping[str, Callable[[str], float]] = {"seconds": duration, "bytes": size}
_COMPLETED: Mapping[str, Callable[[], Iterable[str]]] = {
    "host": known_hosts,
    "probes": _known_probes,
    "skip_probes": _known_probes,
}


def _declare(name: str) -> OptionInfo:
    """The option ``name`` of the table for Typer."""
    option = CASE_OPTIONS[name]
    counts = option.kind == "count"
    found: OptionInfo = typer.Option(
        f"--{name.replace('_', '-')}",
        metavar=option.metavar,
        help=option.help,
        rich_help_panel=option.panel,
        parser=_PARSERS.get(option.kind),
        min=option.least if counts else None,
        max=option.most if counts else None,
        autocompletion=offer(_COMPLETED[name]) if name in _COMPLETED else None,
    )
    return found


def output(metavar: str, text: str) -> OptionInfo:
    """``--output`` of a command, with its help."""
    found: OptionInfo = typer.Option("--output", "-o", metavar=metavar, help=text, rich_help_panel=OUTPUT)
    return found


def report_to(text: str, formats: Callable[[], Iterable[str]] = known_formats) -> OptionInfo:
    """``--report`` of a command, with its help and the formats that completion offers."""
    found: OptionInfo = typer.Option(
        "--report", metavar="FMT:PATH", help=text, autocompletion=offer(formats), rich_help_panel=OUTPUT
    )
    return found


Package = Annotated[str, typer.Argument(metavar="PACKAGE", help="The .pt2 file (or what should be one).")]
_INPUTS = typer.Option(
    "--inputs", "-i", metavar="FILE", help="Inputs: .pt, .npz, .npy, .safetensors or .json.", rich_help_panel=CASE
)
_SAMPLES = typer.Option(
    *("--inputs", "-i"),
    metavar="FILE|DIR|GLOB",
    help="Inputs: .pt, .npz, .npy, .safetensors or .json; or many: a folder, a quoted pattern, a list of calls.",
    rich_help_panel=CASE,
)
Inputs = Annotated[str | None, _INPUTS]
ManyInputs = Annotated[str | None, _SAMPLES]
RequiredInputs = Annotated[str, _INPUTS]
RequiredManyInputs = Annotated[str, _SAMPLES]
ModelName = Annotated[str | None, _declare("model_name")]
Device = Annotated[str | None, _declare("device")]
Reference = Annotated[str | None, _declare("reference")]
Host = Annotated[str | None, _declare("host")]
Setup = Annotated[str | None, _declare("setup")]
CustomOpLibrary = Annotated[list[str] | None, _declare("custom_op_library")]
Generate = Annotated[bool, _declare("generate")]
TrustPickle = Annotated[bool, _declare("trust_pickle")]
Timeout = Annotated[float, _declare("timeout")]
Repeat = Annotated[int, _declare("repeat")]
Plan = Annotated[
    bool, typer.Option("--plan", help="Print what would run and why, without running it.", rich_help_panel=PROBES)
]
FORMAT: OptionInfo = typer.Option("--format", help="Format of stdout. [default: rich]", rich_help_panel=OUTPUT)
FormatOption = Annotated[Format | None, FORMAT]
PageFormatOption = Annotated[PageFormat | None, FORMAT]
For = Annotated[
    IssueForm,
    typer.Option(
        "--for", help="Issue form that Markdown fills: PyTorch's or Triton's bug report.", rich_help_panel=OUTPUT
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Same as --format json.", rich_help_panel=OUTPUT)]
ReportTo = Annotated[
    list[str] | None,
    report_to("Also write a report (json, md, html, sarif, junit, github), a bundle:FILE or a repro:DIR; repeatable."),
]
OutputDir = Annotated[str | None, output("DIR", "Also write report.json and report.md to this folder.")]
OnlyVerdict = Annotated[bool, typer.Option("--quiet", "-q", help="Show only the verdict.", rich_help_panel=OUTPUT)]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show only the verdict, without progress.", rich_help_panel=OUTPUT)
]
Verbose = Annotated[
    int, typer.Option("--verbose", "-v", count=True, help="More detail; -vv for everything.", rich_help_panel=OUTPUT)
]
FailOnOption = Annotated[
    FailOn, typer.Option("--fail-on", help="Lowest severity for exit status 1.", rich_help_panel=OUTPUT)
]
NoPlugins = Annotated[bool, typer.Option("--no-plugins", help="Do not use installed plugins.", rich_help_panel=OUTPUT)]
Redact = Annotated[
    bool, typer.Option("--redact/--no-redact", help="Hide names, secrets and tensor values.", rich_help_panel=OUTPUT)
]
Release = Annotated[
    str | None, typer.Option("--triton", metavar="YY.MM", help="Release of the server. [default: the newest supported]")
]
LoadHook = Annotated[
    bool,
    typer.Option("--load-hook", help="Call the library of MODEL_INIT_LIBRARY in a child: executes its native code."),
]
Cases = Annotated[
    str | None,
    typer.Option(
        "--cases",
        metavar="FILE",
        envvar="AOTIDOCTOR_CASES",
        help="Keep the diagnosis in this store, and report earlier sightings.",
        rich_help_panel=OUTPUT,
    ),
]


# Output options.
CommandFunction = Callable[..., None]  # type: ignore[explicit-any]  # each has options of its own
# What is given to these came through Typer.
ShowMaker = Callable[..., Show]  # type: ignore[explicit-any]
# Formats of --report: what a file can hold. `rich` depends on the terminal, so it is not one of them.
_FILE_FORMATS = tuple(kind for kind in Format if kind is not Format.RICH)
# What --output writes: a report to read and one to keep.
_DIRECTORY_FORMATS = (Format.JSON, Format.MD)


def with_options(*protected: str, case: str = "", **defaults: object) -> Callable[[CommandFunction], CommandFunction]:
    """Give a command that takes ``show`` the output options, and one that takes ``wanted`` the options ``case``.

    ``protected`` are the command's parameters that name what is examined: no report overwrites it, nor a file that an
    option of the case names. ``folder/file`` is a file in what ``folder`` names. An option that the command declares
    itself stays its own and is no part of ``show``. ``defaults`` are those options of the case that differ here.
    """
    declared = [_case_option(name) for name in case.split()]
    protected += tuple(name for name in case.split() if CASE_OPTIONS[name].kind in _PATHS)
    options = [each.replace(default=defaults.get(each.name, each.default)) for each in declared]

    def decorate(function: CommandFunction) -> CommandFunction:
        stated: list[Parameter] = []
        for each in parameters(function):
            stated += options if each.name == "wanted" else [each]
        shows = any(each.name == "show" for each in stated)
        own = [each for each in stated if each.name != "show"]
        taken = {each.name for each in own}
        shared = [
            each
            for each in parameters(make_show)
            if shows and each.kind is Parameter.KEYWORD_ONLY and each.name not in taken
        ]
        make_output: ShowMaker = make_show

        def call(given: dict[str, object]) -> None:
            wanted = {each.name: given.pop(each.name) for each in options}
            function(**given, **({"wanted": _make_options(wanted)} if options else {}))

        @wraps(function)
        def command(**given: object) -> None:
            if not shows:
                call(given)
                return
            chosen = {each.name: given.pop(each.name) for each in shared}
            paths: list[str] = []
            for place in protected:
                name, _, below = place.partition("/")
                value = given[name]
                found = [str(path) for path in (value if isinstance(value, list) else [value]) if path is not None]
                paths += [f"{path}/{below}" if below else path for path in found]
            show = make_output(paths, **chosen)
            if not any(url_arguments.may_be_url(given.get(name)) for name in protected):
                call({**given, "show": show})
                return
            from aotidoctor.cli.execute import execute

            # What is at the URLs among the arguments, or a report on why that cannot be had.
            with ExitStack() as stack:
                ranged = url_arguments.RANGED.get(function.__name__)
                try:
                    local, _ = stack.enter_context(url_arguments.fetch_arguments(given, protected, ranged))
                except CannotExamineError as error:
                    refused = error

                    def work(_on_event: object) -> Report:
                        raise refused

                    execute(function.__name__, "", show, work)
                call({**local, "show": show})

        command.__signature__ = Signature([*own, *shared])  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in (*own, *shared)}
        return command

    return decorate


def parameters(function: Callable[..., object]) -> tuple[Parameter, ...]:  # type: ignore[explicit-any]  # see above
    """The parameters of a function, with evaluated annotations."""
    return tuple(signature(function, eval_str=True).parameters.values())


def make_show(
    protected: Iterable[str | None],
    *,
    format_: FormatOption = None,
    for_: For = IssueForm.GENERIC,
    json: Json = False,
    report: ReportTo = None,
    output_dir: OutputDir = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    fail_on: FailOnOption = FailOn.ERROR,
    redact: Redact = True,
    no_plugins: NoPlugins = False,
) -> Show:
    """The options, in the order in which help shows them, as one value. Raises BadParameter.

    ``protected`` are files that must not be overwritten.
    """
    chosen = chosen_format(format_, Format.RICH, json=json)
    specs = [_parse_report_spec(text, plugins=not no_plugins) for text in report or ()]
    files = [(Format(kind), path) for kind, path in specs if kind in _FILE_FORMATS]
    extras = tuple((kind, path) for kind, path in specs if kind not in _FILE_FORMATS)
    if output_dir is not None:
        files += [(kind, Path(output_dir) / f"report.{kind.value}") for kind in _DIRECTORY_FORMATS]
    refuse_inputs([path for _, path in (*files, *extras)], protected)
    if for_ is not IssueForm.GENERIC and Format.MD not in (chosen, *(kind for kind, _ in files)):
        raise typer.BadParameter(
            "--for needs Markdown output: --format md, --report md:PATH or -o DIR", param_hint="--for"
        )
    return Show(
        format=chosen,
        files=tuple(files),
        extras=extras,
        detail=-1 if quiet else min(verbose, 2),
        fail_on=fail_on,
        redact=redact,
        form=for_,
        plugins=not no_plugins,
    )


def _parse_report_spec(text: str, *, plugins: bool) -> tuple[str, Path]:
    """The kind of report and its path: a format of a file, a key of ``EXTRAS``, or a format of a plugin."""
    known = [*(kind.value for kind in _FILE_FORMATS), *EXTRAS]
    if plugins and text.partition(":")[0] not in known:
        from aotidoctor.plugins.discover import find_plugins

        known += [entry.name for entry in find_plugins() if entry.group == "reports"]
    return split_report_spec(text, known)


def split_report_spec(text: str, known: Sequence[str]) -> tuple[str, Path]:
    """The parts of ``FMT:PATH``. Raises BadParameter for a format that is not ``known``."""
    name, colon, path = text.partition(":")
    if not colon or not path or name not in known:
        hint = f"{text!r} is not FMT:PATH; formats of a file: {', '.join(known)}"
        raise typer.BadParameter(hint, param_hint="--report")
    return name, Path(path)


def refuse_inputs(written: Iterable[str | Path], protected: Iterable[str | None], *, option: str = "--report") -> None:
    """Raise BadParameter where a file that would be written is an input of the command."""
    # Of file.py:function, the file.
    taken = {os.path.realpath(re.sub(r"\.py:\w+$", ".py", path)) for path in protected if path}
    for path in written:
        if os.path.realpath(path) in taken:
            raise typer.BadParameter(f"{path} is an input of this command and is not overwritten", param_hint=option)


def case_files(wanted: Options) -> list[str]:
    """The files that options of a case name."""
    named = (getattr(wanted, FIELDS.get(name, name)) for name, one in CASE_OPTIONS.items() if one.kind in _PATHS)
    return [path for value in named for path in ((value,) if isinstance(value, str) else value or ())]


_DEFAULTS = Options()


def _case_option(name: str) -> Parameter:
    """The option ``name`` as a parameter of a command. Names and defaults are those of ``Options``."""
    value = getattr(_DEFAULTS, FIELDS.get(name, name), None)
    kind = _TYPES.get(CASE_OPTIONS[name].kind, str)
    default = kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else None if value == () else value
    given = kind if default is not None else kind | None
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[given, _declare(name)])


def _make_options(given: Mapping[str, object]) -> Options:
    """The options of a case that Typer read, as one value."""
    chosen = {FIELDS.get(name, name): value for name, value in given.items() if value is not None}
    rtol, atol = (chosen.pop(name, None) for name in ("rtol", "atol"))
    if isinstance(files := chosen.get("weights"), list):
        if len(files) > 2:
            raise typer.BadParameter("at most two files: the first and the next weights", param_hint="--weights")
        chosen |= dict(zip(("weights", "next_weights"), files, strict=False))
    for name, value in chosen.items():
        if name in ("rungs", "skip_rungs"):
            chosen[name] = split_names(str(value))
        elif isinstance(value, list):
            chosen[name] = tuple(value)
        elif isinstance(value, EmulateWhen):
            # A kernel that is named is to be emulated, whatever this machine has.
            chosen[name] = EmulateWhen.ALWAYS.value if "emulate_kernel" in chosen else value.value
        elif isinstance(value, Enum):
            chosen[name] = value.value
    return Options(**chosen, tolerances=tolerances(rtol, atol))  # type: ignore[arg-type]  # Typer read each
