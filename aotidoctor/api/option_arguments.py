"""Check the arguments of a caller: each becomes a field of ``Options``, or an error with place and expectation.

Besides ``Options``: ``cases=``, the store that remembers reports, and the plugins of a call.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from aotidoctor.commands.case_options import CASE_OPTIONS
from aotidoctor.model.case import FIELDS, Options, Tolerance, Tolerances, parse_tolerance
from aotidoctor.model.errors import ArgumentError
from aotidoctor.model.report import Report
from aotidoctor.plugins.discover import find_plugins

_DEFAULTS = Options()
PathLike = str | os.PathLike[str]
ToleranceLike = float | str | Mapping[str | int, float] | Sequence[str]


def value_text(value: object) -> str:
    """Type and value of what was given, short: it may be a tensor of a gigabyte."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return f"{type(value).__name__} {repr(value)[:60]}" if value is not None else "None"
    return type(value).__name__


def path(where: str, value: object) -> str:
    """A path as text. Raises ArgumentError."""
    if not isinstance(value, (str, os.PathLike)):
        raise ArgumentError(where, value_text(value), "a path (str or os.PathLike)")
    found = os.fspath(value)
    if not isinstance(found, str) or not found:
        raise ArgumentError(where, value_text(found), "a path as text that is not empty")
    return found


def text(where: str, value: object) -> str:
    """A word. Raises ArgumentError."""
    if not isinstance(value, str) or not value:
        raise ArgumentError(where, value_text(value), "text (str) that is not empty")
    return value


def texts(where: str, value: object) -> tuple[str, ...]:
    """Words: a sequence of them, or one text with commas as on the command line. Raises ArgumentError."""
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    return tuple(text(f"{where}[{at}]", one) for at, one in enumerate(_sequence(where, value, "texts")))


def paths(where: str, value: object) -> tuple[str, ...]:
    """One path or a sequence of them. Raises ArgumentError."""
    if isinstance(value, (str, os.PathLike)):
        return (path(where, value),)
    return tuple(path(f"{where}[{at}]", one) for at, one in enumerate(_sequence(where, value, "paths")))


def _sequence(where: str, value: object, what: str) -> Sequence[object]:
    if not isinstance(value, (tuple, list)):
        raise ArgumentError(where, value_text(value), f"a list or tuple of {what}")
    return value


def flag(where: str, value: object) -> bool:
    """True or False and nothing that is only like it. Raises ArgumentError."""
    if not isinstance(value, bool):
        raise ArgumentError(where, value_text(value), "True or False")
    return value


def count(least: int, most: int | None = None) -> Callable[[str, object], int]:
    """A reader of whole numbers from ``least`` to ``most``."""

    def read(where: str, value: object) -> int:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= least
        if not good or not isinstance(value, int) or (most is not None and value > most):
            raise ArgumentError(where, value_text(value), f"an int from {least}" + (f" to {most}" if most else ""))
        return value

    return read


def seconds(where: str, value: object) -> float:
    """A duration in seconds, more than nothing. Raises ArgumentError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise ArgumentError(where, value_text(value), "seconds as a number above 0")
    return float(value)


def tolerance(where: str, value: object) -> tuple[Tolerance, ...]:
    """A number for all outputs, ``{output: number}``, or texts as on the command line. Raises ArgumentError."""
    if isinstance(value, Mapping):
        return tuple(_one(f"{where}[{name!r}]", f"{name}:{number}") for name, number in value.items())
    if isinstance(value, (tuple, list)):
        return tuple(_one(f"{where}[{at}]", one) for at, one in enumerate(value))
    return (_one(where, value),)


def _one(where: str, value: object) -> Tolerance:
    expected = "a number from 0 such as 1e-3, {'result[0]': 1e-3}, or texts such as 'result[0]:1e-3'"
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ArgumentError(where, value_text(value), expected)
    try:
        return parse_tolerance(str(value))
    except ValueError as error:
        raise ArgumentError(where, value_text(value), expected) from error


def one_of(*words: str) -> Callable[[str, object], str]:
    """A reader of one of a few words."""

    def read(where: str, value: object) -> str:
        if value not in words:
            raise ArgumentError(where, value_text(value), f"{', '.join(map(repr, words[:-1]))} or {words[-1]!r}")
        return str(value)

    return read


_READERS: Mapping[str, Callable[[str, object], object]] = {
    "text": text,
    "path": path,
    "paths": paths,
    "flag": flag,
    "seconds": seconds,
    "bytes": count(1),
    "probes": texts,
    "emulate": one_of("always", "auto", "never"),
    "values": one_of("statistics", "hash"),
    "protocol": one_of("double-buffer", "user-managed"),
}


def _read(name: str, value: object) -> object:
    """The value of one option. Raises ArgumentError."""
    option = CASE_OPTIONS[name]
    reader = count(option.least, option.most) if option.kind == "count" else _READERS[option.kind]
    return reader(name, value)


def explicit_options(given: Mapping[str, object]) -> dict[str, object]:
    """The options among the arguments of a call, in their order."""
    return {name: value for name, value in given.items() if name in CASE_OPTIONS}


def options_of(base: Options | None, given: Mapping[str, object]) -> Options:
    """``base`` with every option of ``given`` that is not None and not the default. Raises ArgumentError."""
    if base is not None and not isinstance(base, Options):
        raise ArgumentError("options", value_text(base), "aotidoctor.Options")
    chosen: dict[str, object] = {}
    for name, value in given.items():
        if value is None or name in ("rtol", "atol"):
            continue
        field, found = FIELDS.get(name, name), _read(name, value)
        if name == "weights" and isinstance(found, tuple):
            if len(found) > 2:
                raise ArgumentError("weights", value_text(value), "at most two files")
            chosen |= dict(zip(("weights", "next_weights"), found, strict=False))
            continue
        if found != getattr(_DEFAULTS, field):
            chosen[field] = found
    rtol, atol = (given.get(name) for name in ("rtol", "atol"))
    if rtol is not None or atol is not None:
        chosen["tolerances"] = Tolerances(
            rtol=() if rtol is None else tolerance("rtol", rtol), atol=() if atol is None else tolerance("atol", atol)
        )
    return replace(base or _DEFAULTS, **chosen)  # type: ignore[arg-type]  # each was read by its own reader


def environment(environ: object) -> Mapping[str, str]:
    """The environment for children: as given, else that of the process as it is now. Raises ArgumentError."""
    if environ is None:
        return dict(os.environ)
    if not isinstance(environ, Mapping):
        raise ArgumentError("environ", value_text(environ), "a mapping of names to texts, such as os.environ")
    return environ


# `cases=`: the case store.

RememberReport = Callable[[Report, Mapping[str, str]], Report]


def case_memory(cases: PathLike | None) -> RememberReport:
    """Make a function that stores a report in ``cases`` and returns it with earlier sightings; None stores nothing.

    Raises:
        ArgumentError: no path.
        CannotExamineError: no store, or one that cannot be used: said before anything is examined.
    """
    if cases is None:
        return lambda report, _environ: report
    from aotidoctor.commands.cases.case_store import open_store
    from aotidoctor.commands.cases.remember import remember

    place = path("cases", cases)
    with open_store(place, make=True):
        pass
    return lambda report, environ: remember(place, report, environ)


# Plugins: those that are installed, or none.
def use_plugins(command: str, *, wanted: bool) -> AbstractContextManager[None]:
    """Use the installed plugins in the block; without any, this costs one look at folders. Raises ArgumentError."""
    entries = find_plugins() if flag("no_plugins", wanted) else ()
    if not entries:
        return nullcontext()
    from aotidoctor.plugins.proxies import plugins_of

    return plugins_of(command, entries)
