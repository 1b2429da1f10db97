"""An exported program from its file, with what torch only logs about a failure in the words of the error."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

_LONGEST = 400


class _Logged(logging.Handler):
    """Keeps the exceptions that are logged and then swallowed."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self.seen.append(error)


def load_program(path: Path) -> Any:
    """``torch.export.load`` with mapped weights. It says "please check the warnings above" where it knows better.

    Raises:
        RuntimeError: what was behind that: the first cause, such as an operator that nobody has registered.
    """
    import torch

    from aotidoctor.worker.mapped_payloads import mapped

    logged = _Logged()
    log = logging.getLogger("torch.export")
    log.addHandler(logged)
    try:
        with mapped(path):
            return torch.export.load(str(path))
    except RuntimeError as error:
        if not logged.seen:
            raise
        first = logged.seen[-1]
        while first.__cause__ is not None or first.__context__ is not None:
            first = first.__cause__ or first.__context__ or first
        said = str(first).strip().partition("\n")[0] or type(first).__name__
        raise RuntimeError(f"{said[:_LONGEST]}") from error
    finally:
        log.removeHandler(logged)
