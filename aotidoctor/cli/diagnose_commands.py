"""``aotidoctor run``, ``check``, ``localize``, ``compare``, ``classify``: diagnose a package or a log.

What they do is imported in the functions: ``check`` imports neither torch nor what runs native code.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from io import BufferedReader, RawIOBase
from typing import Annotated, BinaryIO

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.document_output import Show, notice_wait
from aotidoctor.cli.execute import argv, count_stream_bytes, execute
from aotidoctor.cli.options import with_options
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.report import Report


@with_options(
    "package",
    "inputs",
    "cases",
    case="generate model_name device setup custom_op_library reference model host weights weight_protocol data rtol "
    "atol trust_pickle seed values timeout budget repeat jobs threads memory_limit emulate probes skip_probes shrink",
)
def run(
    package: opt.Package,
    inputs: opt.ManyInputs = None,
    *,
    wanted: Options,
    plan: opt.Plan = False,
    cases: opt.Cases = None,
    show: Show,
) -> None:
    """Find the cause of a failure, and prove it by removing it.

    Executes native code from PACKAGE, in child processes with time and memory limits.
    """
    opt.require_one_source(inputs, generate=wanted.generate)
    opt.require_plan(wanted.host, plan=plan)
    if plan:
        from aotidoctor.commands import diagnose_package

        execute(
            "run",
            package,
            show,
            lambda _: diagnose_package.plan(package, inputs, wanted, argv=argv(), environ=os.environ),
        )
    _diagnose("run", package, inputs, wanted, replace(show, cases=cases))


@with_options(
    "package",
    "inputs",
    case="generate model_name device setup custom_op_library reference host weights data verify_data trust_pickle seed "
    "threads",
)
def check(package: opt.Package, inputs: opt.Inputs = None, *, wanted: Options, show: Show) -> None:
    """Compare package, inputs and host without running anything.

    Executes nothing from PACKAGE or the inputs file, and needs no torch.
    """
    opt.require_one_source(inputs, generate=wanted.generate)
    _diagnose("check", package, inputs, wanted, show, static=True)


@with_options(
    "package",
    "inputs",
    case="model_name device setup custom_op_library reference model trust_pickle values timeout budget threads "
    "memory_limit emulate emulate_kernel shrink",
)
def localize(package: opt.Package, inputs: opt.RequiredManyInputs, *, wanted: Options, show: Show) -> None:
    """Find the place of a failure: kernel, operator, value, line of the source.

    Does all that run does, and also determines the place if the diagnosis does not need it: the timeline of a healthy
    model, the values of every kernel, and, with --reference, which step of the compiler produces the wrong numbers.
    """
    _diagnose("localize", package, inputs, replace(wanted, localize=True), show)


Package = Annotated[str | None, typer.Argument(metavar="[PACKAGE]", help="The .pt2 file; not with --from.")]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="REPORT", help="Evaluate a saved JSON report again without running anything."),
]


@with_options(
    "package",
    "inputs",
    "from_",
    case="reference rtol atol generate model_name device setup custom_op_library trust_pickle seed values timeout "
    "budget threads memory_limit emulate",
)
def compare(
    package: Package = None, inputs: opt.ManyInputs = None, *, from_: From = None, wanted: Options, show: Show
) -> None:
    """Compare outputs, weights and side effects with the reference.

    Outputs that differ are compared with a float64 run of the reference: a difference that rounding explains is not a
    problem (exit status 0; a warning beyond --rtol/--atol). A JSON report contains enough to judge again with --from
    and different tolerances: exactly for an rtol of 0 or a power of ten from 1e-8 to 1, conservatively in between.
    """
    opt.require_one_source(inputs, generate=wanted.generate)
    wanted = replace(wanted, measure=True)
    _require_one_source(package, from_, wanted.reference, has_inputs=inputs is not None or wanted.generate)
    # `--help` does not need the stages.
    if from_ is not None:
        from aotidoctor.commands.analyze import saved_report

        execute("compare", from_, show, lambda _: saved_report.judge_saved_comparison(from_, wanted, argv=argv()))
    _diagnose("compare", package or "", inputs, wanted, show)


def _diagnose(
    command: str, package: str, inputs: str | None, wanted: Options, show: Show, *, static: bool = False
) -> None:
    from aotidoctor.commands import diagnose_package

    execute(
        command,
        package,
        show,
        lambda on_event: diagnose_package.diagnose(
            package,
            inputs,
            wanted,
            command=command,
            argv=argv(),
            environ=os.environ,
            static_only=static,
            on_event=on_event,
        ),
        static=static,
    )


def _require_one_source(package: str | None, saved: str | None, reference: str | None, *, has_inputs: bool) -> None:
    """Either a package with inputs and reference, or a saved report."""
    if saved is not None:
        if package is not None or reference is not None or has_inputs:
            raise typer.BadParameter("it takes only a saved report and runs nothing", param_hint="--from")
        return
    if package is None:
        raise typer.BadParameter("missing; or --from REPORT", param_hint="PACKAGE")
    if reference is None:
        raise typer.BadParameter(
            "missing: the program behind the package, such as exported.pt2", param_hint="--reference"
        )
    if not has_inputs:
        raise typer.BadParameter("missing: --inputs or --generate", param_hint="--inputs")


LogFile = Annotated[str, typer.Argument(metavar="LOG|-", help="The log; - is standard input.")]
OfPackage = Annotated[
    str | None,
    typer.Option(
        "--package",
        metavar="FILE",
        help="The .pt2 file that the log is about: adds names of kernels, lines and inputs.",
    ),
]


@with_options("log", "package", "inputs", "cases")
def classify(
    log: LogFile,
    *,
    package: OfPackage = None,
    inputs: opt.Inputs = None,
    model_name: opt.ModelName = None,
    trust_pickle: opt.TrustPickle = False,
    cases: opt.Cases = None,
    show: Show,
) -> None:
    """Name the cause of a failure from its log alone.

    Any stage: export, compile, link, package, load, run, serve. Executes nothing, not even from --package.
    """
    if inputs is not None and package is None:
        raise typer.BadParameter("--inputs needs --package", param_hint="--inputs")
    wanted = Options(model_name=model_name, trust_pickle=trust_pickle)
    execute(
        "classify", "", replace(show, cases=cases), lambda _on_event: _work(log, package, inputs, wanted), static=True
    )


def _work(path: str, package: str | None, inputs: str | None, options: Options) -> Report:
    from aotidoctor.commands.classify import classify as classified

    waited = f"reading {'standard input' if path == '-' else path} to its end"
    with notice_wait(waited), _open_log(path) as stream:
        return classified(
            stream,
            "stdin" if path == "-" else path,
            package=package,
            inputs=inputs,
            options=options,
            argv=argv(),
            environ=os.environ,
        )


def _open_log(path: str) -> AbstractContextManager[BinaryIO]:
    """The log as bytes. Raises CannotExamineError."""
    if path == "-":
        if sys.stdin is None:
            raise CannotExamineError("standard input is closed")
        return nullcontext(BufferedReader(_Counted(sys.stdin.buffer)))
    from aotidoctor.commands.classify import open_log

    stream = open_log(path)
    return stream if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) else BufferedReader(_Counted(stream))


class _Counted(RawIOBase):
    """A stream of unknown size: what comes counts as input as it comes."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what BufferedReader gives
        """The next bytes, as many as there are."""
        found = self._stream.read1(len(buffer))  # type: ignore[attr-defined]  # a BufferedReader, as open() makes it
        buffer[: len(found)] = found
        count_stream_bytes(len(found))
        return len(found)

    def close(self) -> None:
        """Close what is read, too."""
        self._stream.close()
        super().close()
