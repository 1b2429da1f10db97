"""Where this interpreter imports from, but for the folder that it was called in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HOME = str(Path(__file__).resolve().parents[3])


def import_path() -> list[str]:
    """``sys.path`` without the working folder, with the folder that aotidoctor lies in.

    ``python -m`` puts the working folder first: what lies beside a stranger's package is not installed.
    """
    try:
        here = os.path.realpath(os.getcwd())  # noqa: PTH109 - a folder that is gone raises here
    except OSError:
        here = ""
    paths = [os.path.abspath(path) for path in sys.path if path and os.path.realpath(path) != here]  # noqa: PTH100
    return paths if HOME in paths else [HOME, *paths]
