"""``Request`` -> ``Outcome``. The only package that starts a process; it never raises for what a child did."""

from __future__ import annotations

from aotidoctor.runner.runner import Runner

__all__ = ["Runner"]
