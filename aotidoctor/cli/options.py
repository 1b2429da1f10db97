"""The options that several commands share, spelt once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from aotidoctor.cli.show import EmulateWhen, FailOn, Format, IssueForm, PageFormat
from aotidoctor.model.tolerance import Tolerance, Tolerances, parse_tolerance

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


def one_source(inputs: str | None, *, generate: bool) -> None:
    """Inputs come from a file or are made up, not both."""
    if inputs is not None and generate:
        raise typer.BadParameter("--inputs and --generate cannot be combined", param_hint="--generate")


def plan_only(host: str | None, *, plan: bool) -> None:
    """Nothing can be run on a machine that is known from its profile only."""
    if host is not None and not plan:
        raise typer.BadParameter("only a plan can be made for a different machine: add --plan", param_hint="--host")


def tolerances(rtol: Sequence[str] | None, atol: Sequence[str] | None) -> Tolerances:
    """``--rtol`` and ``--atol`` as one value."""
    return Tolerances(rtol=_parsed("--rtol", rtol), atol=_parsed("--atol", atol))


def _parsed(option: str, texts: Sequence[str] | None) -> tuple[Tolerance, ...]:
    try:
        return tuple(parse_tolerance(text) for text in texts or ())
    except ValueError as error:
        hint = f"{error}; write 1e-3, result[0]:1e-3 or 0:1e-3"
        raise typer.BadParameter(hint, param_hint=option) from error


def names(text: str | None) -> tuple[str, ...] | None:
    """``a,b`` as a tuple; None stays None."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


Package = Annotated[str, typer.Argument(metavar="PACKAGE", help="The .pt2 file (or what should be one).")]
_INPUTS = typer.Option("--inputs", "-i", metavar="FILE", help="Inputs: .pt, .npz, .npy, .safetensors or .json.")
Inputs = Annotated[str | None, _INPUTS]
RequiredInputs = Annotated[str, _INPUTS]
ModelName = Annotated[str | None, typer.Option(metavar="NAME", help="Name of the model inside the package.")]
Device = Annotated[str | None, typer.Option(metavar="DEVICE", help="Device to load on: cpu, cuda or cuda:1.")]
Reference = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="exported.pt2 or module.py:function to compare with."),
]
Host = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="PROFILE",
        help="Check against a different machine: a file of `env --save`, or a built-in name.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Weights for the package: .safetensors, or a state dict saved by torch.save."),
]
Rtol = Annotated[
    list[str] | None,
    typer.Option(metavar="[OUT:]VALUE", help="Relative tolerance, for output OUT (result[0] or 0) or all; repeatable."),
]
Atol = Annotated[
    list[str] | None,
    typer.Option(metavar="[OUT:]VALUE", help="Absolute tolerance per output. Default: a few ulps of the dtype."),
]
Setup = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Python file imported first in the child: registers custom ops."),
]
CustomOpLibrary = Annotated[
    list[str] | None,
    typer.Option(metavar="LIB", help="Library of custom ops to load first; repeatable."),
]
Generate = Annotated[bool, typer.Option("--generate", help="Generate inputs from the contract.")]
# What a seed of torch and a thread count of OpenMP can hold; beyond that the child would fail, not the package.
_MAX_SEED, _MAX_THREADS = 2**63 - 1, 2**15
Seed = Annotated[int, typer.Option(min=0, max=_MAX_SEED, metavar="N", help="Seed of --generate.")]
TrustPickle = Annotated[
    bool,
    typer.Option("--trust-pickle", help="Unpickle the inputs file even if this runs code from it."),
]
Timeout = Annotated[float, typer.Option(parser=duration, metavar="TIME", help="Time limit of one child run.")]
Budget = Annotated[
    float | None,
    typer.Option(parser=duration, metavar="TIME", help="Time limit of the whole command."),
]
Repeat = Annotated[int, typer.Option(min=1, metavar="N", help="Number of plain runs, each in a fresh process.")]
Jobs = Annotated[int, typer.Option(min=1, metavar="N", help="Number of child runs at a time.")]
Threads = Annotated[
    int | None, typer.Option(min=1, max=_MAX_THREADS, metavar="N", help="Number of threads to run with.")
]
Probes = Annotated[str | None, typer.Option("--probes", metavar="A,B", help="Run only these probes.")]
SkipProbes = Annotated[str | None, typer.Option("--skip-probes", metavar="A,B", help="Skip these probes.")]
Emulate = Annotated[
    EmulateWhen,
    typer.Option(
        "--emulate", help="Emulate a CUDA package on the CPU. auto: if no GPU can run it or explain the failure."
    ),
]
EmulateKernel = Annotated[
    str | None,
    typer.Option(
        "--emulate-kernel", metavar="NAME", help="Emulate, starting with this kernel, which a trace or core dump named."
    ),
]
MemoryLimit = Annotated[
    int | None,
    typer.Option(parser=size, metavar="SIZE", help="Address-space limit of a child, such as 8G."),
]
Shrink = Annotated[bool, typer.Option("--shrink", help="Find the smallest inputs that still fail.")]
Plan = Annotated[bool, typer.Option("--plan", help="Print what would run and why, without running it.")]
FormatOption = Annotated[Format | None, typer.Option("--format", help="Format of stdout. [default: rich]")]
PageFormatOption = Annotated[PageFormat | None, typer.Option("--format", help="Format of stdout. [default: rich]")]
For = Annotated[
    IssueForm, typer.Option("--for", help="Issue form that Markdown fills: PyTorch's or Triton's bug report.")
]
Json = Annotated[bool, typer.Option("--json", help="Same as --format json.")]
ReportTo = Annotated[
    list[str] | None,
    typer.Option(
        "--report",
        metavar="FMT:PATH",
        help="Also write a report (json, md, html, sarif, junit, github), a bundle:FILE or a repro:DIR; repeatable.",
    ),
]
OutputDir = Annotated[
    str | None,
    typer.Option("--output-dir", "-o", metavar="DIR", help="Also write report.json and report.md to this folder."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only the verdict, without progress.")]
Verbose = Annotated[int, typer.Option("--verbose", "-v", count=True, help="More detail; -vv for everything.")]
FailOnOption = Annotated[FailOn, typer.Option("--fail-on", help="Lowest severity for exit status 1.")]
NoPlugins = Annotated[bool, typer.Option("--no-plugins", help="Do not use installed plugins.")]
Redact = Annotated[
    bool,
    typer.Option("--redact/--no-redact", help="Hide names, secrets and tensor values."),
]
Release = Annotated[
    str | None,
    typer.Option("--triton", metavar="YY.MM", help="Release of the server. [default: the newest supported]"),
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
    ),
]
