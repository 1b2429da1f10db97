"""Add releases to the table of C shims, ``aotidoctor/readers/releases/shims.txt``, from the headers of their wheels.

    python scripts/shims.py FOLDER|WHEEL...           the wheels, or folders that they were unpacked to
    python scripts/shims.py --download DIR 2.16.0      get the wheels first, into DIR

A release is known by the version in its ``torch/version.py``. Headers are the same on every platform, so the smallest
wheels are downloaded: those for macOS, 65 to 130 MB each. A shim belongs to the first release whose headers declare
it, and so does a function of the package itself. What the table has of other releases stays.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

TABLE = Path(__file__).resolve().parent.parent / "aotidoctor" / "readers" / "releases" / "shims.txt"
HEADERS = re.compile(
    r"torch/include/torch/csrc/(?:inductor/(?:aoti_torch/(?:c/shim|generated/c_shim)|aoti_runtime/interface)"
    r"|stable/c/shim)\w*\.h"
)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
SHIM = re.compile(r"\bAOTI_TORCH_EXPORT\b[^;{}]*?\b((?:aoti_)?torch_\w+)\s*\(")
# What every package exports; the interface for arrays is compiled in on demand only.
EXPORTED = re.compile(r"\bAOTIRuntimeError\s+(AOTInductorModel(?!\w*Arrayref)\w+)\s*\(")
VERSION = re.compile(r"__version__ = ['\"](\d+)\.(\d+)\.")
PLATFORMS = ("macosx_11_0_arm64", "macosx_14_0_arm64")
HEAD = """\
# C shims of libtorch, by the first release of torch whose headers declare them; "-" before a name: gone since then.
# "+" before a name: a function that every package exports from then on.
# Written by scripts/shims.py from the headers of {versions}.
"""

Release = tuple[int, int]


def texts(place: Path) -> Iterator[tuple[str, str]]:
    """Name and text of the version file and of the headers of one release."""
    if place.is_dir():
        for path in sorted(place.rglob("torch/**/*.h")) + sorted(place.rglob("torch/version.py")):
            name = path.relative_to(place).as_posix()
            if wanted(name[name.index("torch/") :]):
                yield name, path.read_text(encoding="utf-8")
        return
    with zipfile.ZipFile(place) as wheel:
        for name in wheel.namelist():
            if wanted(name):
                yield name, wheel.read(name).decode("utf-8")


def wanted(name: str) -> bool:
    """Whether this member of a wheel says something of the shims."""
    return name == "torch/version.py" or HEADERS.fullmatch(name) is not None


def read_release(place: Path) -> tuple[Release, frozenset[str]]:
    """The release in ``place`` and the shims that its headers declare."""
    release, shims = version_in_name(place), set()
    for name, text in texts(place):
        if name.endswith("version.py"):
            found = VERSION.search(text)
            release = (int(found[1]), int(found[2])) if found else release
        else:
            plain = COMMENT.sub(" ", text)
            shims.update(SHIM.findall(plain))
            shims.update(f"+{name}" for name in EXPORTED.findall(plain))
    if release is None or not shims:
        raise SystemExit(f"{place}: observed {len(shims)} shims of release {release}, expected a wheel of torch")
    return release, frozenset(shims)


def version_in_name(place: Path) -> Release | None:
    """``2.14`` of ``torch-2.14.1-cp311-….whl`` or of a folder ``2.14.1``."""
    found = re.search(r"(?:^|torch-)(\d+)\.(\d+)\.\d+", place.name)
    return (int(found[1]), int(found[2])) if found else None


def changes(releases: Mapping[Release, frozenset[str]]) -> Iterator[tuple[Release, list[str]]]:
    """Per release, oldest first, the shims that it adds, and with ``-`` those that it has lost."""
    seen: set[str] = set()
    before: frozenset[str] = frozenset()
    for release, shims in sorted(releases.items()):
        yield release, [*sorted(shims - seen), *(f"-{name}" for name in sorted(before - shims))]
        seen |= shims
        before = shims


def table_with(table: str, releases: Mapping[Release, frozenset[str]]) -> str:
    """The text of the table with ``releases`` for what it says of them; each other release keeps what it has."""
    known: dict[Release, frozenset[str]] = {}
    names: frozenset[str] = frozenset()
    for section in table.split("\n[")[1:]:
        head, *lines = section.split()
        major, _, minor = head.strip("]").partition(".")
        names = (names - {line[1:] for line in lines if line.startswith("-")}) | {
            line for line in lines if not line.startswith("-")
        }
        known[int(major), int(minor)] = names
    every = {**known, **releases}
    made = [HEAD.format(versions=", ".join(f"{major}.{minor}" for major, minor in sorted(every))).rstrip("\n")]
    for (major, minor), lines in changes(every):
        made += [f"[{major}.{minor}]", *lines]
    return "\n".join(made) + "\n"


def download(folder: Path, versions: list[str]) -> list[Path]:
    """The wheels of ``versions``."""
    flags = [flag for platform in PLATFORMS for flag in ("--platform", platform)]
    for version in versions:
        command = ["pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version", "3.12"]
        subprocess.run(  # noqa: S603 - arguments of our own
            [sys.executable, "-m", *command, *flags, "--dest", str(folder), f"torch=={version}"], check=True
        )
    return sorted(folder.glob("torch-*.whl"))


def main() -> None:
    """Read the releases, write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("places", nargs="+", help="wheels, folders, or with --download versions")
    parser.add_argument("--download", type=Path, metavar="DIR")
    given = parser.parse_args()
    places = download(given.download, given.places) if given.download else [Path(place) for place in given.places]
    releases = dict(read_release(place) for place in places)
    TABLE.write_text(table_with(TABLE.read_text(encoding="utf-8"), releases), encoding="utf-8")


if __name__ == "__main__":
    main()
