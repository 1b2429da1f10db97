"""Run a command that keeps to the folder that an agent may read, whatever links and names lie in that folder.

A path that is given is resolved before a command starts. What the command finds below it, such as a link in a model
folder or a name with ``..`` in a config, is looked at when it is opened: Python reports every file that it opens.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from urllib.parse import unquote

# Raised here for a whole path that stands in a file.
_NAMED = "aotidoctor.named"
_EVENTS = frozenset({"open", "os.listdir", "os.scandir", "sqlite3.connect", _NAMED})
_OUTSIDE = "leads out of the root folder"


class _Confinement:
    """Refuse to open what is reached through the root but does not lie in it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        # An environment may lie in the root, and its interpreter's files outside.
        places = {Path(place).absolute() for place in (sys.prefix, sys.base_prefix, *sys.path) if place}
        self._own = places - {root}

    def __call__(self, event: str, given: tuple[object, ...]) -> None:
        if event in _EVENTS and given and isinstance(path := given[0], (str, bytes)) and path:
            name = os.fsdecode(path)
            if event == "sqlite3.connect" and name.startswith("file:"):
                # SQLite opens the file by itself, and this is its name as a URI.
                name = unquote(name.removeprefix("file:").partition("?")[0])
            self._refuse_outside(name, named=event == _NAMED)

    def _refuse_outside(self, path: str, *, named: bool) -> None:
        # Not normalised: ".." behind a link leads somewhere else.
        whole = Path(self._root, path)
        below = whole.is_relative_to(self._root) and not any(whole.is_relative_to(place) for place in self._own)
        if not (below or named):
            return
        if not whole.resolve().is_relative_to(self._root):
            raise PermissionError(errno.EACCES, _OUTSIDE, path)


def main() -> None:
    """Run a command that opens nothing that is named below its working folder and does not lie there."""
    sys.addaudithook(_Confinement(Path.cwd().resolve()))
    from aotidoctor.__main__ import main as run

    run()
