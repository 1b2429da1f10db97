"""Say in one line which file is not there or may not be read, and which one was perhaps meant."""

from __future__ import annotations

import difflib
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aotidoctor.model.case import Options, file_of
from aotidoctor.model.errors import CannotExamineError, examining

_MOST_NAMES = 2000


def no_such_file(path: str, option: str = "") -> str:
    """Text of the problem, ``no such file: modle.pt2 (--inputs); did you mean model.pt2?``."""
    named = path + (f" ({option})" if option else "")
    text = f"no such file: {named}"
    try:
        os.lstat(path)
    except PermissionError:
        return f"{named}: this user may not look into a folder of this path"
    except (OSError, ValueError):
        pass
    folder = Path(path).parent
    with suppress(OSError, ValueError):
        if not folder.is_dir():
            return f"{text}; {folder} is {'no folder' if folder.exists() else 'not there'}"
        near = _nearest(Path(path))
        return f"{text}; did you mean {near}?" if near is not None else text
    return text


def unreadable_file(path: str, option: str) -> str | None:
    """Text of the problem with a file that is not there or that this user may not read; None for any other."""
    try:
        os.stat(path)  # noqa: PTH116 - a path with any character
    except (OSError, ValueError):
        return no_such_file(path, option)
    return None if os.access(path, os.R_OK) else f"{path} ({option}): this user may not read it"


def _nearest(path: Path) -> Path | None:
    """The file beside ``path`` whose name is most like its own, of the same kind if there is one."""
    with os.scandir(path.parent) as entries:
        names = [Path(entry.name) for entry in itertools.islice(entries, _MOST_NAMES)]
    same = [name for name in names if name.suffix.lower() == path.suffix.lower()]
    for group in (same, names):
        stems = {name.stem.lower(): name for name in group}
        if found := difflib.get_close_matches(path.stem.lower(), stems, n=1, cutoff=0.7):
            return path.with_name(stems[found[0]].name)
    return None


@contextmanager
def examining_file(path: str) -> Iterator[None]:
    """Turn an OSError of the block into CannotExamineError, which says of a missing file what was perhaps meant."""
    try:
        with examining(path):
            yield
    except CannotExamineError as error:
        if isinstance(error.__cause__, (FileNotFoundError, NotADirectoryError)):
            raise CannotExamineError(no_such_file(path)) from error
        raise


def refuse_missing_code(options: Options) -> None:
    """Raise CannotExamineError for a setup file, a model's file or a library of operators that is not there."""
    setup = options.setup if options.setup is not None and options.setup.endswith(".py") else None
    model = None if options.model is None else file_of(options.model)
    libraries = ((library, "--custom-op-library") for library in options.custom_op_libraries)
    named = [(setup, "--setup"), (model, "--model"), *libraries]
    for path, option in named:
        if path is not None and (problem := unreadable_file(path, option)) is not None:
            raise CannotExamineError(problem)
