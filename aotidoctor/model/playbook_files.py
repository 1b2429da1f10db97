"""Where the playbooks are: ``aotidoctor/_playbooks`` in the wheel, ``playbooks/`` beside the package in a checkout.

An editable install does not get the files that the build puts into the wheel, so both places are looked at.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from aotidoctor.model import extensions

_PACKAGE = Path(__file__).resolve().parent.parent


def folder() -> Path | None:
    """The folder that holds the playbooks, None when neither place exists."""
    places = (_PACKAGE / "_playbooks", _PACKAGE.parent / "playbooks")
    return next((place for place in places if place.is_dir()), None)


def files() -> tuple[Path, ...]:
    """Every playbook, sorted by cause, those of plugins last. A README among them is not one."""
    place = folder()
    return (*(_own(place) if place is not None else ()), *extensions.current().playbooks)


@lru_cache(maxsize=4)
def _own(place: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in place.glob("*.md") if path.stem.islower()))


def find(cause: str) -> Path | None:
    """The playbook of ``cause``, None when there is none."""
    return next((path for path in files() if path.stem == cause), None)
