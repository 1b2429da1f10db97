"""A copy of a file with some bytes changed: whole, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def changed_copy(source: str, target: str) -> Iterator[BinaryIO]:
    """Within: a copy of ``source`` that may be written to; it is ``target`` afterwards. Raises ``OSError``."""
    draft = Path(f"{target}.{os.getpid()}.part")
    try:
        shutil.copyfile(source, draft)
        with draft.open("r+b") as stream:
            yield stream
        draft.replace(target)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
