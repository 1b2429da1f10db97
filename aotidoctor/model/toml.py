"""Import the reader of TOML: the standard library's, or for Python 3.10 the package it was made from.

Apart from the other modules, all of which `--help` or `inspect` load: importing ``tomllib`` takes milliseconds.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from tomllib import TOMLDecodeError, loads
else:  # pragma: no cover
    from tomli import TOMLDecodeError, loads

__all__ = ["TOMLDecodeError", "loads"]
