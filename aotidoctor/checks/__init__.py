"""Static checks, one file each; ``CHECKS`` in ``registry`` names them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model.on_demand import names_of

if TYPE_CHECKING:
    from aotidoctor.checks.check import Check, Finder
    from aotidoctor.checks.registry import CHECKS

__all__ = ["CHECKS", "Check", "Finder"]

__getattr__ = names_of(__name__, {"CHECKS": "registry", "Check": "check", "Finder": "check"})
