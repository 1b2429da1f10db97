"""``inspect``, ``compat`` and ``classify``: what is answered by reading one thing alone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader, BytesIO, RawIOBase
from typing import BinaryIO, cast

from aotidoctor.api.arguments import PathLike, environment, options_of, path, paths, shown, text, texts, words
from aotidoctor.api.keeping import keeper_of
from aotidoctor.api.plugging import plugins
from aotidoctor.api.report import Report, public
from aotidoctor.model.case import Options
from aotidoctor.model.errors import ArgumentError, CannotExamineError, LimitReachedError, UsageError

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
    """What is in a package, its contract and what it needs of a host; as ``aotidoctor inspect``.

    Executes nothing. ``report.case.artifact`` is the file, ``report.case.contract`` what the code expects (None where
    none can be read).

    Raises:
        ArgumentError: a value of the wrong type, with ``where``, ``observed`` and ``expected``.

    >>> report = aotidoctor.inspect("model.pt2")
    >>> report.case.artifact.kind.value, report.case.contract.n_inputs
    ('aoti-package', 4)
    """
    from aotidoctor.commands import diagnose  # noqa: PLC0415 - each for itself

    asked: dict[str, object] = {"model_name": model_name}
    place, wanted = path("package", package), options_of(options, asked)
    said = argv or ("aotidoctor", "inspect", place, *words(asked))
    try:
        with plugins("inspect", wanted=not no_plugins):
            return public(diagnose.inspect(place, wanted, argv=said, environ=environment(environ)))
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
    from aotidoctor.commands.compat import compat as answer  # noqa: PLC0415 - each for itself

    places, hosts, releases = paths("packages", packages), paths("host", host), texts("torch", torch)
    if not places:
        raise ArgumentError("packages", "no path", "one .pt2 file or more")
    name = None if model_name is None else text("model_name", model_name)
    asked: dict[str, object] = {"host": hosts, "torch": releases, "model_name": name}
    said = argv or ("aotidoctor", "compat", *places, *words(asked))
    try:
        with plugins("compat", wanted=not no_plugins):
            found = answer(places, hosts, releases, model_name=name, argv=said, environ=environment(environ))
        return public(found)
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
    from aotidoctor.commands.classify import classify as classified  # noqa: PLC0415 - each for itself

    if inputs is not None and package is None:
        raise UsageError("inputs needs package")
    asked: dict[str, object] = {"model_name": model_name, "trust_pickle": trust_pickle}
    options = options_of(None, asked)
    keep = keeper_of(cases)
    about = None if package is None else path("package", package)
    sample = None if inputs is None else path("inputs", inputs)
    name, opened = _opened(log)
    said = argv or ("aotidoctor", "classify", name, *words({"package": about, "inputs": sample, **asked}))
    try:
        with plugins("classify", wanted=not no_plugins), opened as stream:
            found = classified(
                stream, name, package=about, inputs=sample, options=options, argv=said, environ=environment(environ)
            )
    except LimitReachedError as reached:
        raise CannotExamineError(f"{name}: {reached}") from reached
    return public(keep(found, environment(environ)))


def _opened(log: object) -> tuple[str, AbstractContextManager[BinaryIO]]:
    """A name for the report and the bytes. Raises ArgumentError, CannotExamineError."""
    if isinstance(log, (bytes, bytearray, memoryview)):
        return "-", BufferedReader(cast("RawIOBase", BytesIO(log)))
    if callable(getattr(log, "read", None)):
        stream = cast("BinaryIO", log)
        if not isinstance(stream.read(0), bytes):
            raise ArgumentError("log", f"{shown(log)} opened as text", _LOG)
        return str(getattr(log, "name", "-")), nullcontext(stream)
    try:
        place = path("log", log)
    except ArgumentError as error:
        raise ArgumentError("log", error.observed, _LOG) from error
    from aotidoctor.commands.classify import open_log  # noqa: PLC0415 - each for itself

    return place, open_log(place)
