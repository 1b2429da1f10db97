"""``inspect``, ``compat``, ``classify`` and ``contract``: answers from reading a package or a log alone."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from io import BufferedReader, BytesIO, RawIOBase
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

from aotidoctor.api.option_arguments import (
    PathLike,
    case_memory,
    environment,
    options_of,
    path,
    paths,
    text,
    texts,
    use_plugins,
    value_text,
)
from aotidoctor.api.returned_report import Report, public_report
from aotidoctor.commands.case_options import option_words
from aotidoctor.model import contract as records
from aotidoctor.model.case import Options
from aotidoctor.model.errors import ArgumentError, CannotExamineError, LimitReachedError, UsageError
from aotidoctor.model.evidence import NotChecked
from aotidoctor.triage.open_case import open_package

if TYPE_CHECKING:
    from aotidoctor.model.record import JsonObject


_LOG = "a path, the log as bytes, or a file opened in binary mode"


def inspect(
    package: PathLike,
    options: Options | None = None,
    *,
    model_name: str | None = None,
    no_plugins: bool = False,
    environ: Mapping[str, str] | None = None,
    argv: tuple[str, ...] = (),
) -> Report:
    """Describe a package, its contract and its needs of a host, as ``aotidoctor inspect`` does.

    Executes nothing. ``report.case.artifact`` is the file, ``report.case.contract`` what the code expects (None where
    none can be read).

    Raises:
        ArgumentError: a value of the wrong type, with ``where``, ``observed`` and ``expected``.

    >>> report = aotidoctor.inspect("model.pt2")
    >>> report.case.artifact.kind.value, report.case.contract.n_inputs
    ('aoti-package', 4)
    """
    from aotidoctor.commands import diagnose_package

    values: dict[str, object] = {"model_name": model_name}
    place, wanted = path("package", package), options_of(options, values)
    parts = argv or ("aotidoctor", "inspect", place, *option_words(values))
    try:
        with use_plugins("inspect", wanted=not no_plugins):
            return public_report(diagnose_package.inspect(place, wanted, argv=parts, environ=environment(environ)))
    except LimitReachedError as reached:
        raise CannotExamineError(f"{place}: {reached}") from reached


def compat(
    packages: PathLike | tuple[PathLike, ...] | list[PathLike],
    *,
    host: PathLike | tuple[PathLike, ...] | list[PathLike] = (),
    torch: str | tuple[str, ...] | list[str] = (),
    model_name: str | None = None,
    no_plugins: bool = False,
    environ: Mapping[str, str] | None = None,
    argv: tuple[str, ...] = (),
) -> Report:
    """On which hosts packages will run, and why not; as ``aotidoctor compat``. Executes nothing.

    Args:
        packages: one .pt2 file or several.
        host: profiles: files of ``aotidoctor env --save``, built-in names, ``here``. By default this machine.
        torch: releases to have there instead (``2.14``).
        model_name: the model inside the packages.
        no_plugins: use no installed plugin.
        environ: what ``here`` means; by default the environment of this process.
        argv: what the report states as the command.

    Raises:
        ArgumentError: a value of the wrong type, with ``where``, ``observed`` and ``expected``.
        UsageError: there is no such profile or release.

    >>> report = aotidoctor.compat("model.pt2", host="debian-13", torch="2.13")
    >>> [(answer.host, answer.answer.value) for answer in report.compat.answers]
    [('debian-13 with torch 2.13', 'refused')]
    """
    from aotidoctor.commands.compat import compat as answer

    places, hosts, releases = paths("packages", packages), paths("host", host), texts("torch", torch)
    if not places:
        raise ArgumentError("packages", "no path", "one .pt2 file or more")
    name = None if model_name is None else text("model_name", model_name)
    values: dict[str, object] = {"host": hosts, "torch": releases, "model_name": name}
    parts = argv or ("aotidoctor", "compat", *places, *option_words(values))
    try:
        with use_plugins("compat", wanted=not no_plugins):
            found = answer(places, hosts, releases, model_name=name, argv=parts, environ=environment(environ))
        return public_report(found)
    except LimitReachedError as reached:
        raise CannotExamineError(str(reached)) from reached


def classify(
    log: PathLike | bytes | BinaryIO,
    *,
    package: PathLike | None = None,
    inputs: PathLike | None = None,
    model_name: str | None = None,
    trust_pickle: bool = False,
    cases: PathLike | None = None,
    no_plugins: bool = False,
    environ: Mapping[str, str] | None = None,
    argv: tuple[str, ...] = (),
) -> Report:
    r"""Name the cause of a failure from its log alone, as ``aotidoctor classify`` does. Executes nothing.

    Args:
        log: a path, the log itself as ``bytes``, or a file opened in binary mode.
        package: the .pt2 it is about: kernels, lines and inputs get their names.
        inputs: the inputs file of the call; only with ``package``.
        model_name: the model inside the package.
        trust_pickle: describe an inputs file that needs code to be unpickled.
        cases: a store of ``aotidoctor cases``: keeps the diagnosis, and the report says whether it was seen before.
        no_plugins: use no installed plugin.
        environ: by default the environment of this process.
        argv: what the report states as the command.

    Raises:
        ArgumentError: a value of the wrong type, with ``where``, ``observed`` and ``expected``.
        UsageError: ``inputs`` without ``package``.
        CannotExamineError: no such file, or no log (an archive, a program); a store that cannot be used.

    >>> log = b"RuntimeError: Error in dlopen: libcudart.so.12: cannot open shared object file\n"
    >>> report = aotidoctor.classify(log)
    >>> report.cause
    'missing-library'
    """
    from aotidoctor.commands.classify import classify as classified

    if inputs is not None and package is None:
        raise UsageError("inputs needs package")
    values: dict[str, object] = {"model_name": model_name, "trust_pickle": trust_pickle}
    options = options_of(None, values)
    keep = case_memory(cases)
    about = None if package is None else path("package", package)
    sample = None if inputs is None else path("inputs", inputs)
    name, opened = _open_log(log)
    parts = argv or ("aotidoctor", "classify", name, *option_words({"package": about, "inputs": sample, **values}))
    try:
        with use_plugins("classify", wanted=not no_plugins), opened as stream:
            found = classified(
                stream, name, package=about, inputs=sample, options=options, argv=parts, environ=environment(environ)
            )
    except LimitReachedError as reached:
        raise CannotExamineError(f"{name}: {reached}") from reached
    return public_report(keep(found, environment(environ)))


def _open_log(log: object) -> tuple[str, AbstractContextManager[BinaryIO]]:
    """A name for the report and the bytes. Raises ArgumentError, CannotExamineError."""
    if isinstance(log, (bytes, bytearray, memoryview)):
        return "-", BufferedReader(cast("RawIOBase", BytesIO(log)))
    if callable(getattr(log, "read", None)):
        stream = cast("BinaryIO", log)
        if not isinstance(stream.read(0), bytes):
            raise ArgumentError("log", f"{value_text(log)} opened as text", _LOG)
        return str(getattr(log, "name", "-")), nullcontext(stream)
    try:
        place = path("log", log)
    except ArgumentError as error:
        raise ArgumentError("log", error.observed, _LOG) from error
    from aotidoctor.commands.classify import open_log

    return place, open_log(place)


# What the compiled code expects of its caller and its host.
class Contract(records.ModelContract):
    """Expectations of the compiled code: ``leaves`` of the call, ``outputs``, ``constants``, ``symbols``, ``needs``.

    Of a leaf: ``path`` (``kwargs['ids']``), ``dtype`` (``int64``), ``dims`` (each ``static`` or ``min``..``max``),
    ``strides`` in elements, ``device_type``; None where the package does not say. ``unread`` and ``problems`` say
    what was not understood.

    >>> [(leaf.path, leaf.dtype) for leaf in aotidoctor.contract("model.pt2").leaves][-1]
    ("kwargs['ids']", 'int64')
    """

    __slots__ = ()

    def show(self, *, file: TextIO | None = None) -> None:
        """Print inputs and outputs with what they were compiled for, to ``file`` or ``sys.stdout``.

        >>> aotidoctor.contract("model.pt2").show()
        args[0]           float32[s23:2..64, 16] (16, 1) cpu
        args[1]['scale']  float32[16] (1) cpu
        args[1]['shift']  float32[16] (1) cpu
        kwargs['ids']     int64[s23:2..64] (1) cpu
        result            float32[s23, 4] cpu
        """
        stream = file if file is not None else sys.stdout
        stream.write(f"{self._lines()}\n")
        stream.flush()

    def to_dict(self, *, redact: bool = True) -> JsonObject:
        """The contract as the JSON report has it, whole, as plain values.

        >>> aotidoctor.contract("model.pt2").to_dict()["n_inputs"]
        4
        """
        # Who only reads the fields needs no format.
        from aotidoctor.reports.json.json_report import contract_json as document
        from aotidoctor.reports.json.json_report import dump_json
        from aotidoctor.reports.redact.redactor import redact_private

        found = redact_private(self, os.environ) if redact else self
        return cast("JsonObject", json.loads(dump_json(document(found, whole=True) or {})))

    def __repr__(self) -> str:
        """How many inputs and outputs."""
        return f"<aotidoctor.Contract {len(self.leaves)} inputs, {len(self.outputs)} outputs>"

    def _repr_html_(self) -> str:
        from aotidoctor.reports.html.html_report import contract_piece

        return contract_piece(self)

    def _repr_mimebundle_(self, *_: object, **__: object) -> dict[str, str]:
        return {"text/plain": self._lines(), "text/html": self._repr_html_()}

    def _lines(self) -> str:
        from aotidoctor.reports.html.html_report import contract_lines

        return contract_lines(self)


def contract(package: PathLike, *, model_name: str | None = None) -> Contract:
    """Read what the compiled code of ``package`` expects. Executes nothing, and needs no torch.

    Raises:
        ArgumentError: a value of the wrong type, with ``where``, ``observed`` and ``expected``.
        CannotExamineError: no such file, or no contract can be read from it; the message says why.

    >>> aotidoctor.contract("model.pt2")
    <aotidoctor.Contract 4 inputs, 1 outputs>
    """
    place = path("package", package)
    name = None if model_name is None else text("model_name", model_name)
    failed: list[NotChecked] = []
    try:
        artifact, model, found = open_package(place, name, failed)
    except LimitReachedError as reached:
        raise CannotExamineError(f"{place}: {reached}") from reached
    if found is None:
        reason = failed[0].reason if failed else artifact.problem
        named = f"no model {name!r}" if model is None and name is not None and artifact.models else artifact.kind.value
        raise CannotExamineError(f"{place}: observed {reason or named}, expected a package with a contract")
    return Contract(**{item.name: getattr(found, item.name) for item in fields(found)})
