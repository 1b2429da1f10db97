"""The folders of a model repository: which models there are, and what lies in each of their version directories."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.record import record

CONFIG = "config.pbtxt"
_FILES_LISTED = 2000
# A config is a page of text; what is larger is another file under its name.
_LARGEST_CONFIG = 16 << 20


@record
class ModelFolder:
    """One model's folder.

    ``folders`` are its folders by name, with the files below each, relative; ``files`` are the files beside them but
    the config. ``text`` is that of the config, None
    without one; bytes that are not UTF-8 are lone surrogates in it.
    """

    name: str
    path: str
    text: str | None
    folders: tuple[tuple[str, tuple[str, ...]], ...] = ()
    files: tuple[str, ...] = ()

    @property
    def config_path(self) -> str | None:
        """The path of the config, None where there is none."""
        return None if self.text is None else os.path.join(self.path, CONFIG)  # noqa: PTH118 - as the user wrote it


def read_repository(path: str) -> tuple[ModelFolder, ...]:
    """The models below ``path``, or the one that it is. Raises CannotExamineError."""
    place = Path(path)
    if place.name == CONFIG and place.is_file():
        place = place.parent
    if not place.is_dir():
        kind = "not a folder" if place.exists() else "no such folder"
        raise CannotExamineError(f"{kind}: {path}")
    try:
        if _is_model(place):
            return (_read(place),)
        models = tuple(_read(folder) for folder in _folders(place))
    except OSError as error:
        raise CannotExamineError(f"{error.filename or path}: {error.strerror}") from error
    if not models:
        raise CannotExamineError(f"no model in {path}: neither {CONFIG} nor a folder")
    return models


def _is_model(place: Path) -> bool:
    return (place / CONFIG).exists() or any(folder.name.isdecimal() for folder in _folders(place))


def _folders(place: Path) -> tuple[Path, ...]:
    found = (entry for entry in place.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    return tuple(sorted(found, key=lambda entry: entry.name))


def _read(place: Path) -> ModelFolder:
    return ModelFolder(
        # The server takes the name from the folder, however the user wrote the path.
        name=Path(os.path.realpath(place)).name if place.name in ("", "..") else place.name,
        path=str(place),
        text=_text(place / CONFIG),
        folders=tuple((folder.name, tuple(_files(folder))) for folder in _folders(place)),
        files=tuple(sorted(item.name for item in place.iterdir() if item.is_file() and item.name != CONFIG)),
    )


def _text(path: Path) -> str | None:
    if not path.exists():
        return None
    if not path.is_file() or path.stat().st_size > _LARGEST_CONFIG:
        raise CannotExamineError(f"{path} is not a text file of the size of a config")
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _files(folder: Path) -> Iterator[str]:
    listed = 0
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            listed += 1
            if listed > _FILES_LISTED:
                return
            yield str(Path(here, name).relative_to(folder))
