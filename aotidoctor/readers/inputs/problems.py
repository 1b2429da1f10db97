"""The ways an inputs file can be refused, as errors."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.errors import InputsError
from aotidoctor.model.phrases import listed

MAX_NAMED = 10
FORMS = "tensors as a tuple or list of arguments, {'args', 'kwargs'}, (args, kwargs), one tensor or a dict of kwargs"


def corrupt(path: str, subject: str, observed: str, expected: str = "a complete file") -> InputsError:
    """The file is damaged at ``subject`` (a member, a record, the file)."""
    where = path if subject == path else f"{path}: {subject}"
    return InputsError(
        f"{where}: observed {observed}, expected {expected}",
        cause="inputs-file-corrupt",
        subject=subject,
        observed=observed,
        expected=expected,
    )


def missing(path: str, observed: str) -> InputsError:
    """The file cannot be opened."""
    return InputsError(
        f"{path}: {observed}",
        cause="inputs-file-missing",
        subject=path,
        observed=observed,
        expected="a file that can be read",
        kind="missing",
    )


def unsafe(path: str, names: Sequence[str]) -> InputsError:
    """Reading the file as its author meant it would call ``names``."""
    shown = listed(names, MAX_NAMED)
    return InputsError(
        f"{path}: needs code to be executed: {shown}; read it with --trust-pickle if you trust who made it",
        cause="inputs-file-unsafe",
        subject=shown,
        observed=f"a pickle that calls {shown}",
        expected="tensors and plain containers",
    )


def wrong_format(path: str, observed: str, *, subject: str | None = None, expected: str = FORMS) -> InputsError:
    """The file is sound and no inputs file."""
    return InputsError(
        f"{path}: observed {observed}, expected {expected}",
        cause="inputs-file-format",
        subject=subject or path,
        observed=observed,
        expected=expected,
    )
