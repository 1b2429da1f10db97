"""The torch that this interpreter would import, found and read without importing it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from aotidoctor.model.host import TorchBuild
from aotidoctor.model.record import record
from aotidoctor.readers.host.elf import defines, gnu_hash, open_image
from aotidoctor.readers.package.elf import ElfError

_ASSIGNMENT = re.compile(r"^(\w+)[ \t]*(?::[^=\n]{0,200})?=[ \t]*(?:'([^']*)'|\"([^\"]*)\")", re.MULTILINE)
_DEBUG = re.compile(r"^debug\b[^=\n]*=\s*(True|False)", re.MULTILINE)
_ERROR_CONSTRUCTOR = b"_ZN3c105ErrorC1ENS_14SourceLocationE"
_NEW_STRING = b"NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
_OLD_STRING = b"Ss"


@record
class FoundTorch:
    """``build`` is None when there is no torch; ``problem`` then says why. ``folder`` is the package's folder."""

    build: TorchBuild | None
    folder: Path | None
    problem: str | None


def find_torch(search: Iterable[str]) -> FoundTorch:
    """Look for ``torch`` on ``search`` (``sys.path``). Raises nothing."""
    for entry in search:
        folder = Path(entry or ".", "torch")
        if (folder / "__init__.py").is_file() and (folder / "version.py").is_file():
            return _read(folder)
    return FoundTorch(build=None, folder=None, problem="torch is not installed for this Python interpreter")


def _read(folder: Path) -> FoundTorch:
    try:
        text = (folder / "version.py").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return FoundTorch(build=None, folder=folder, problem=f"{folder}/version.py cannot be read: {error.strerror}")
    values = {name: single or double for name, single, double in _ASSIGNMENT.findall(text)}
    if "__version__" not in values:
        return FoundTorch(build=None, folder=folder, problem=f"{folder}/version.py states no version")
    build = TorchBuild(
        version=values["__version__"],
        path=str(folder),
        cuda=values.get("cuda"),
        cxx11_abi=_cxx11_abi(folder / "lib" / "libc10.so"),
        hip=values.get("hip"),
        xpu=values.get("xpu"),
        debug=_flag(text),
    )
    return FoundTorch(build=build, folder=folder, problem=None)


def _flag(text: str) -> bool | None:
    found = _DEBUG.search(text)
    return found[1] == "True" if found is not None else None


def _cxx11_abi(library: Path) -> bool | None:
    # c10::Error takes a std::string, so its mangled name tells which std::string torch was built with.
    try:
        image = open_image(str(library))
        for string, answer in ((_NEW_STRING, True), (_OLD_STRING, False)):
            name = _ERROR_CONSTRUCTOR + string
            if defines(image, name, gnu_hash(name), None):
                return answer
    except (OSError, ElfError):
        return None
    return None
