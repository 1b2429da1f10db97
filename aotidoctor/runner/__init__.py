"""``Request`` -> ``Outcome``. The only package that starts a process; it never raises for what a child did."""

from __future__ import annotations

import platform
import sys

from aotidoctor.model.errors import CannotExamineError


def demand_linux() -> None:
    """Raise CannotExamineError where no program can be watched, which takes /proc and the signals of Linux."""
    if not sys.platform.startswith("linux"):
        raise CannotExamineError(
            f"programs are watched on Linux only, and this is {platform.system()}: use `aotidoctor run` or `classify` "
            "here, or watch it on Linux (a server, WSL, a container)"
        )
