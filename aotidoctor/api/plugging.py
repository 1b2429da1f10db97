"""Plugins of a call of the library: those that are installed, or none."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from aotidoctor.api.arguments import flag
from aotidoctor.plugins.discover import found


def plugins(command: str, *, wanted: bool) -> AbstractContextManager[None]:
    """With what is installed; where there is nothing, that costs one look at folders. Raises ArgumentError."""
    entries = found() if flag("no_plugins", wanted) else ()
    if not entries:
        return nullcontext()
    from aotidoctor.plugins.active import plugins_of  # noqa: PLC0415 - where there are any

    return plugins_of(command, entries)
