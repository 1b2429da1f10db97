"""Which file a NEEDED name resolves to, and in which libraries a symbol would be looked up. Follows ``ld.so(8)``.

The process is modelled as the worker will be: the interpreter and what it needs, LD_PRELOAD, then torch's libraries,
then the package. A library that is already there is taken by its name, wherever it came from; that is how a package
finds libtorch, whose folder is on no search path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from aotidoctor.model.record import record
from aotidoctor.readers.host.elf import Image, open_image
from aotidoctor.readers.host.ldcache import read_cache
from aotidoctor.readers.package.elf import ElfError

_DEFAULT_DIRS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
_MULTIARCH = {62: "x86_64-linux-gnu", 183: "aarch64-linux-gnu", 22: "s390x-linux-gnu", 21: "powerpc64le-linux-gnu"}


@record(frozen=False)
class LinkMap:
    """The libraries of one process, growing as roots are added.

    ``found`` maps every name that was asked for to its image, None when no file was found. ``extra_dirs`` are searched
    last; torch loads from them by full path before anything else can ask for their libraries.
    """

    library_path: tuple[str, ...] = ()
    extra_dirs: tuple[str, ...] = ()
    machine: int | None = None
    found: dict[str, Image | None] = field(default_factory=dict)
    cache: Mapping[str, tuple[str, ...]] | None = None
    program_rpath: tuple[str, ...] = ()

    def add_program(self, path: str) -> list[Image]:
        """Start the process: the executable and everything it needs, breadth first. Raises ElfError or OSError."""
        image = open_image(path)
        self.machine = image.machine
        self.program_rpath = () if image.runpath else _expand(image.rpath, path)
        return self.closure([image])

    def add_file(self, path: str) -> list[Image]:
        """A library by path and everything it needs, breadth first; empty when it is no usable library."""
        image = self._usable(path)
        if image is None:
            return []
        self._remember(Path(path).name, image)
        return self.closure([image])

    def add_needed(self, names: Iterable[str], paths: tuple[str, ...]) -> list[Image]:
        """What an object outside the host's file system needs: ``names``, searched first in its own ``paths``."""
        roots = [image for name in names if (image := self.resolve(name, (), paths)) is not None]
        return self.closure(roots)

    def closure(self, roots: list[Image]) -> list[Image]:
        """``roots`` and everything they need, breadth first, each file once."""
        order: dict[str, Image] = {image.path: image for image in roots}
        queue = list(order.values())
        for image in queue:
            inherited = () if image.runpath else _expand(image.rpath, image.path)
            for name in image.needed:
                wanted = self.resolve(name, inherited, _expand(image.runpath, image.path))
                if wanted is not None and wanted.path not in order:
                    order[wanted.path] = wanted
                    queue.append(wanted)
        return queue

    def resolve(self, name: str, rpath: tuple[str, ...], runpath: tuple[str, ...]) -> Image | None:
        """The image for a NEEDED name; None when the loader would say "cannot open shared object file"."""
        if name in self.found:
            return self.found[name]
        if "/" in name:
            candidates: Iterable[str] = (name,)
        else:
            candidates = self._candidates(name, rpath, runpath)
        image = next((image for path in candidates if (image := self._usable(path)) is not None), None)
        self._remember(name, image)
        return image

    def _candidates(self, name: str, rpath: tuple[str, ...], runpath: tuple[str, ...]) -> Iterable[str]:
        early = (*rpath, *(() if runpath else self.program_rpath), *self.library_path, *runpath)
        yield from (f"{folder}/{name}" for folder in early)
        if self.cache is None:
            self.cache = read_cache()
        yield from self.cache.get(name, ())
        multiarch = _MULTIARCH.get(self.machine or 0)
        if multiarch:
            yield from (f"{folder}/{multiarch}/{name}" for folder in ("/lib", "/usr/lib", "/usr/local/lib"))
        yield from (f"{folder}/{name}" for folder in (*_DEFAULT_DIRS, *self.extra_dirs))

    def _usable(self, path: str) -> Image | None:
        try:
            image = open_image(path)
        except (OSError, ElfError):
            return None
        # The loader passes over libraries of another machine in silence and goes on searching.
        return image if self.machine in (None, image.machine) else None

    def _remember(self, name: str, image: Image | None) -> None:
        self.found[name] = image
        if image is not None and image.soname and self.found.get(image.soname) is None:
            self.found[image.soname] = image


def library_path(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The folders of LD_LIBRARY_PATH, without the empty ones that a worker is not given either."""
    return tuple(part for part in environ.get("LD_LIBRARY_PATH", "").split(":") if part)


def _expand(paths: tuple[str, ...], image_path: str) -> tuple[str, ...]:
    # ld.so takes $ORIGIN from the path after symlinks of the folder, not of the file itself.
    origin = str(Path(image_path).parent)
    return tuple(path.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for path in paths)
