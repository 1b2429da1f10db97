"""Symbol lookup in libraries of the host."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aotidoctor.readers.host.elf import defines, gnu_hash, open_image
from aotidoctor.readers.package.elf import ElfError
from tests.unit.readers.host.elf_builder import shared_object

NAMES = [f"symbol_{number}" for number in range(40)] + ["_ZN3c105ErrorC1Ev"]


def has(image, name, version=None):
    return defines(image, name.encode(), gnu_hash(name.encode()), version)


def image_of(tmp_path, *args, **kwargs):
    path = tmp_path / "lib.so"
    path.write_bytes(shared_object(*args, **kwargs))
    return open_image(str(path))


def test_gnu_hash_of_known_names():
    assert gnu_hash(b"") == 5381
    assert gnu_hash(b"printf") == 0x156B2BB8
    assert gnu_hash(b"exit") == 0x7C967E3F


@pytest.mark.parametrize("style", ["gnu", "sysv"])
def test_every_defined_name_is_found_and_no_other(tmp_path, style):
    image = image_of(tmp_path, NAMES, hash_style=style)
    assert [name for name in NAMES if not has(image, name)] == []
    assert [name for name in ("symbol_", "symbol_40", "symbol_1x", "", "missing") if has(image, name)] == []


def test_names_and_paths(tmp_path):
    image = image_of(tmp_path, needed=("liba.so", "libb.so.1"), soname="lib.so.2", runpath="$ORIGIN:/opt/x")
    assert image.needed == ("liba.so", "libb.so.1")
    assert image.soname == "lib.so.2"
    assert image.runpath == ("$ORIGIN", "/opt/x")
    assert image.rpath == ()


def test_version_must_be_defined_for_the_symbol(tmp_path):
    image = image_of(tmp_path, [("old", "V_1"), ("new", "V_2")], versions=("V_1", "V_2"))
    assert has(image, "old", "V_1")
    assert has(image, "new", "V_2")
    assert not has(image, "old", "V_2")
    assert not has(image, "old", "V_3")
    assert has(image, "old")


def test_library_without_versions_satisfies_any(tmp_path):
    assert has(image_of(tmp_path, ["f"]), "f", "V_9")


def test_interpreter_can_be_read():
    image = open_image(str(Path(sys.executable).resolve()))
    assert image.needed


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x7fELF",
        b"not an ELF file at all" * 10,
        b"\x7fELF\x01\x01\x01" + bytes(80),
        b"\x7fELF\x02\x01\x01" + bytes(9) + b"\xff" * 48,
    ],
)
def test_damage_raises_elf_error(tmp_path, data):
    path = tmp_path / "lib.so"
    path.write_bytes(data)
    with pytest.raises(ElfError):
        open_image(str(path))


@pytest.mark.parametrize("keep", [0, 100, 200, 300, 500, 700, 1000])
def test_cut_library_says_so_or_has_nothing(tmp_path, keep):
    path = tmp_path / "lib.so"
    data = shared_object(NAMES)
    assert keep < len(data)
    path.write_bytes(data[:keep])
    try:
        found = has(open_image(str(path)), "symbol_1")
    except ElfError:
        found = False
    assert not found
