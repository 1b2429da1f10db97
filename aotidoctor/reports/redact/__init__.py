"""Removes what is private to a machine and its user from a report, once, before any format sees it.

Hidden: the home folder, user and host names, other people's names (folders, caches, addresses), secrets (by their form,
by the key before them, and the values of environment variables that are named like secrets), network addresses, and
elements of tensors that a child printed, bounds of small and of one-element tensors, internal host names, registries,
buckets and project folders. Kept: sizes, dtypes, and counts, minima and maxima of larger tensors (those of floating
point to one digit), because diagnoses rest on them; the one element of an integer input that broke a check, with its
place, for the same reason; values that were baked in at export; fields that no format shows (sources, symbol lists).

Identifiers that a diagnosis needs (kernels, operators, keys of inputs, source files) are kept; a private word inside
one is replaced by its placeholder and the rest stays. Placeholders are consistent: the same secret is ``<secret-1>``
everywhere, and a name that was met once (``/home/NAME``) is looked for everywhere. A text is redacted until nothing
changes any more, and placeholders are never looked into, so redacting twice is the same as once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from aotidoctor.reports.redact.identity import Identity
from aotidoctor.reports.redact.redactor import Redactor

T = TypeVar("T")


def redacted(value: T, environ: Mapping[str, str]) -> T:
    """A record without what is private to this machine and its user."""
    return Redactor.of(environ).value(value)


__all__ = ["Identity", "Redactor", "redacted"]
