"""Paths of an agent: below the root, links resolved, and no address of the network."""

from __future__ import annotations

import os

from aotidoctor.model.errors import ArgumentError


class Root:
    """The folder that an agent may look into."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)

    def path(self, where: str, given: object) -> str:
        """``given`` relative to the root, as the commands get it. Raises ArgumentError."""
        if not isinstance(given, str) or not given or "\0" in given:
            raise ArgumentError(where, repr(given)[:80], "a path below the root folder")
        if "://" in given:
            raise ArgumentError(where, "an address", "a path below the root folder")
        full = os.path.realpath(os.path.join(self.folder, given))  # noqa: PTH118 - it need not exist
        if full != self.folder and not full.startswith(os.path.join(self.folder, "")):  # noqa: PTH118 - likewise
            raise ArgumentError(where, "a path outside the root folder", "a path below the root folder")
        # A name that begins with a dash is no option.
        return os.path.join(".", os.path.relpath(full, self.folder))  # noqa: PTH118 - likewise

    def reference(self, where: str, given: str) -> str:
        """A file, or ``module.py:function``."""
        path, colon, function = given.rpartition(":")
        if colon and path.endswith(".py") and function.isidentifier():
            return f"{self.path(where, path)}:{function}"
        return self.path(where, given)

    def profile(self, where: str, given: str) -> str:
        """A host: the name of a built-in profile, or a file below the root."""
        plain = given.replace("-", "").replace(".", "").isalnum() and "/" not in given
        exists = os.path.lexists(os.path.join(self.folder, given))  # noqa: PTH118 - it may be a name
        return given if plain and not exists and not given.startswith("-") else self.path(where, given)
