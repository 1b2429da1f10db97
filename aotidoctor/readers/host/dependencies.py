"""What one library of this host needs, directly or not, and where the dynamic loader finds it."""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.readers.host.linkmap import LinkMap, library_path
from aotidoctor.readers.package.elf import ElfError


def dependencies(path: str, environ: Mapping[str, str]) -> dict[str, str | None]:
    """Name to file, None for what is not found; empty when ``path`` is no library of a 64-bit host.

    Only the library's own search paths, LD_LIBRARY_PATH and those of the system count: what the process has loaded
    before is not known here.
    """
    links = LinkMap(library_path=library_path(environ))
    try:
        images = links.add_file(path)
    except ElfError:
        return {}
    names = dict.fromkeys(name for image in images for name in image.needed)
    return {name: image.path if (image := links.found.get(name)) is not None else None for name in names}
