"""``Request`` -> ``Outcome``. The only package that starts a process; it never raises for what a child did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model.on_demand import names_of

if TYPE_CHECKING:
    from aotidoctor.runner.runner import Runner

__all__ = ["Runner"]

# A program that is watched needs other parts of this package than a run, and starts without waiting for these.
__getattr__ = names_of(__name__, {"Runner": "runner"})
