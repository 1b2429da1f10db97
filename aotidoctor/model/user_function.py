"""How a user names a function of their own: ``module.py:function``."""

from __future__ import annotations


def user_function(text: str) -> tuple[str, str] | None:
    """The file and the function's name; None for a path to anything else."""
    path, _, function = text.rpartition(":")
    return (path, function) if path.endswith(".py") and function.isidentifier() else None


def file_of(text: str) -> str:
    """The file of ``module.py:function``, and any other path as it is."""
    named = user_function(text)
    return text if named is None else named[0]
