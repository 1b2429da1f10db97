"""Fetch arguments that are URLs before a command starts, and show their URLs in its report.

A package that is only read (``check``, ``inspect``) is read by ranges, without fetching all of it. Nothing here runs,
or is imported, where no path is a URL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from functools import wraps
from typing import TYPE_CHECKING

from aotidoctor.cli.document_output import exit_on_error
from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.record import record

if TYPE_CHECKING:
    from aotidoctor.model.report import Report
    from aotidoctor.remote.remote_packages import RemoteRanges

Command = Callable[..., None]  # type: ignore[explicit-any]  # each has options of its own

CODE = "AD-REMOTE"
# Commands that read a package and no more; of the files that they take, those that are read by ranges.
RANGED = {"check": "package", "inspect": "package"}


def may_be_url(value: object) -> bool:
    """Whether a value of a command is, or holds, a URL."""
    if isinstance(value, str):
        return "://" in value
    return isinstance(value, (list, tuple)) and any(may_be_url(each) for each in value)


@record(kw_only=False, frozen=False)
class FetchedUrls:
    """The files fetched for a command: URLs by local path, and packages that are read by ranges."""

    shown: dict[str, str] = field(default_factory=dict)
    ranges: list[tuple[str, RemoteRanges]] = field(default_factory=list)

    @property
    def bytes_read(self) -> int | None:
        """Bytes that were read of packages where they lie; None where none was."""
        return sum(each.bytes_read for _, each in self.ranges) if self.ranges else None

    def finished(self, report: Report) -> Report:
        """``report`` with URLs in the place of local paths, and with how much of a package was read."""
        if self.shown:
            from aotidoctor.reports.text import replace_texts

            report = replace_texts(report, self.shown)
        for url, each in self.ranges:
            reason = (
                f"{each.bytes_read:,} of {each.size:,} bytes were read, in {each.requests} requests; "
                "the checksums of the members were not compared: download the package and check the file"
            )
            note = NotChecked(code=CODE, name=url, reason=reason)
            counts = {"bytes_read": str(each.bytes_read), "bytes_total": str(each.size)}
            report = replace(report, not_checked=(*report.not_checked, note), extra={**report.extra, **counts})
        return report


_CURRENT: list[FetchedUrls] = []


def with_urls_restored(report: Report) -> Report:
    """Apply ``FetchedUrls.finished`` of the current command; the same report where nothing was fetched."""
    return _CURRENT[-1].finished(report) if _CURRENT else report


@contextmanager
def fetch_arguments(
    given: Mapping[str, object], names: Sequence[str], ranged: str | None = None
) -> Iterator[tuple[Mapping[str, object], FetchedUrls]]:
    """Provide ``given`` with local paths in place of the URLs among ``names``.

    ``ranged`` is the one that is read by ranges. Raises RemoteError.
    """
    found = FetchedUrls()
    with ExitStack() as stack:
        changed = {
            name: _local_value(given[name], found, stack, ranged=ranged == name)
            for name in names
            if may_be_url(given.get(name))
        }
        _CURRENT.append(found)
        try:
            yield {**given, **changed}, found
        finally:
            _CURRENT.remove(found)


def with_fetched_urls(*names: str) -> Callable[[Command], Command]:
    """Give a command what is at the URLs among its parameters ``names``; status 4 where it cannot be had."""

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(**given: object) -> None:
            if not any(may_be_url(given.get(name)) for name in names):
                function(**given)
                return
            with ExitStack() as stack:
                with exit_on_error():
                    local, _ = stack.enter_context(fetch_arguments(given, names))
                function(**local)

        return command

    return decorate


def _local_value(value: object, found: FetchedUrls, stack: ExitStack, *, ranged: bool) -> object:
    if isinstance(value, (list, tuple)):
        return type(value)(_local_value(each, found, stack, ranged=ranged) for each in value)
    from aotidoctor.remote.remote_files import is_url

    if not isinstance(value, str) or not is_url(value):
        return value
    if ranged and (name := _register_ranges(value, found, stack)):
        return name
    from aotidoctor.remote.remote_packages import fetch_file

    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - no RuntimeError of pathlib's
    got = fetch_file(value, f"{base}/aotidoctor/remote")
    found.shown[got.path] = got.shown
    return got.path


def _register_ranges(url: str, found: FetchedUrls, stack: ExitStack) -> str | None:
    """The name under which the package at ``url`` is read by ranges; None where it has to be fetched."""
    from aotidoctor.readers.package.blob import register_source
    from aotidoctor.remote.remote_files import clean_url, open_remote
    from aotidoctor.remote.remote_packages import RemoteRanges

    file = open_remote(url)
    if file.size is None or not file.has_ranges:
        return None
    ranges = RemoteRanges(file, file.size)
    # Only an archive says where things are in it.
    if not ranges.read_at(0, 4).startswith(b"PK"):
        return None
    name = clean_url(url)
    stack.enter_context(register_source(name, ranges.blob()))
    found.ranges.append((name, ranges))
    return name


def words_without_credentials(words: Sequence[str]) -> tuple[str, ...]:
    """Words of a command line without the credentials of URLs."""
    if not any("://" in word for word in words):
        return tuple(words)
    from aotidoctor.remote.remote_files import clean_text

    return tuple(map(clean_text, words))
