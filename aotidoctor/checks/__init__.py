"""Static checks, one file each; ``registry`` has them all. A plugin imports ``Check`` and ``Finder`` from here."""

from __future__ import annotations

from aotidoctor.checks.check import Check, Finder

__all__ = ["Check", "Finder"]
