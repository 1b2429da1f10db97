"""``Request`` -> ``Outcome``. The only package that starts a process; it never raises for what a child did."""

from __future__ import annotations

import platform
import sys

from aotidoctor.model.errors import CannotExamineError


def demand_linux() -> None:
    """Raise CannotExamineError where no package can be run: fork, signals and /proc of Linux are what watches it."""
    if not sys.platform.startswith("linux"):
        raise CannotExamineError(
            f"packages are run on Linux only, and this is {platform.system()}: use `aotidoctor check` or `classify` "
            "here, or run this on Linux (a server, WSL, a container)"
        )
