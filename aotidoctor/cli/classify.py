"""``aotidoctor classify``: from a log alone, of any stage."""

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
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.limits import came
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.report import Report

LogFile = Annotated[str, typer.Argument(metavar="LOG|-", help="The log; - is standard input.")]
OfPackage = Annotated[
    str | None,
    typer.Option(
        "--package",
        metavar="FILE",
        help="The .pt2 file that the log is about: adds names of kernels, lines and inputs.",
    ),
]


@shown("log", "package", "inputs", "cases")
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
    from aotidoctor.commands.classify import classify as classified  # noqa: PLC0415 - `--help` does not need the stages

    with _opened(path) as stream:
        return classified(
            stream,
            "stdin" if path == "-" else path,
            package=package,
            inputs=inputs,
            options=options,
            argv=argv(),
            environ=os.environ,
        )


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    """The log as bytes. Raises CannotExamineError."""
    if path == "-":
        if sys.stdin is None:
            raise CannotExamineError("standard input is closed")
        return nullcontext(BufferedReader(_Counted(sys.stdin.buffer)))
    from aotidoctor.commands.classify import open_log  # noqa: PLC0415 - as above

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
        came(len(found))
        return len(found)

    def close(self) -> None:
        """Close what is read, too."""
        self._stream.close()
        super().close()
