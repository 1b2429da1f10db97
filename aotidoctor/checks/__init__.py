"""Static checks: ``CHECKS`` in the order in which they are asked, cheapest and most fundamental first."""

from __future__ import annotations

from aotidoctor.checks.check import Check, Finder

CHECKS: tuple[Check, ...] = ()

__all__ = ["CHECKS", "Check", "Finder"]
