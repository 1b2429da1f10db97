"""Symbol lookup in libraries of the host."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from aotidoctor.readers.host.dynamic_loader import defines_symbol, gnu_hash, open_image
from aotidoctor.readers.package.elf import ElfError
from tests.unit.readers.host.elf_builder import shared_object

NAMES = [f"symbol_{number}" for number in range(40)] + ["_ZN3c105ErrorC1Ev"]


def has(image, name, version=None):
    return defines_symbol(image, name.encode(), gnu_hash(name.encode()), version)


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
    image = image_of(tmp_path, ["f"])
    assert has(image, "f", "V_9")
    assert not has(image, "g", "V_9")


def test_interpreter_can_be_read():
    image = open_image(str(Path(sys.executable).resolve()))
    assert "libc.so.6" in image.needed
    assert image.machine > 0
    assert image.segments


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


STRINGS, NEEDED, SYSV, GNU, DEFINED_VERSIONS, OTHER = 5, 1, 4, 0x6FFFFEF5, 0x6FFFFFFD, 0x6ABCDEF0


def changed(tmp_path, data, tag, *, value=None, rename=None):
    """The image of the library with another value of a tag of its dynamic section, or without it."""
    changed = bytearray(data)
    at = next(
        at for at in range(0, len(data) - 15, 8) if struct.unpack_from("<Q", data, at)[0] == tag and at >= dynamic(data)
    )
    held = struct.unpack_from("<Q", data, at + 8)[0]
    struct.pack_into("<QQ", changed, at, tag if rename is None else rename, held if value is None else value)
    path = tmp_path / "lib.so"
    path.write_bytes(changed)
    return open_image(str(path))


def dynamic(data):
    """Where the dynamic section begins, by the program header of that type."""
    table, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    rows = [struct.unpack_from("<IIQ", data, table + 56 * row) for row in range(count)]
    return next(offset for kind, _, offset in rows if kind == 2)


@pytest.mark.parametrize(
    ("tag", "words"), [(STRINGS, "address 0x10000000000 is in no segment"), (NEEDED, "unterminated string")]
)
def test_names_that_lead_out_of_the_file(tmp_path, tag, words):
    with pytest.raises(ElfError, match=words):
        changed(tmp_path, shared_object(NAMES, needed=("liba.so",)), tag, value=1 << 40)


@pytest.mark.parametrize(("style", "tag"), [("gnu", GNU), ("sysv", SYSV)])
def test_without_a_hash_table_nothing_is_found(tmp_path, style, tag):
    image = changed(tmp_path, shared_object(NAMES, hash_style=style), tag, rename=OTHER)
    assert not has(image, "symbol_1")


@pytest.mark.parametrize(("style", "tag"), [("gnu", GNU), ("sysv", SYSV)])
def test_a_hash_table_of_no_buckets_holds_nothing(tmp_path, style, tag):
    data = bytearray(shared_object(NAMES, hash_style=style))
    place = open_at(tmp_path, data).tables[tag]
    struct.pack_into("<I", data, open_at(tmp_path, data).offset(place), 0)
    assert not has(open_at(tmp_path, data), "symbol_1")


def open_at(tmp_path, data):
    (tmp_path / "lib.so").write_bytes(data)
    return open_image(str(tmp_path / "lib.so"))


def test_a_chain_that_leads_back_to_itself_ends(tmp_path):
    data = bytearray(shared_object(NAMES, hash_style="sysv"))
    image = open_at(tmp_path, data)
    at = image.offset(image.tables[SYSV])
    buckets, chains = struct.unpack_from("<2I", data, at)
    for index in range(chains):
        struct.pack_into("<I", data, at + 8 + 4 * (buckets + index), index)
    assert not has(open_at(tmp_path, data), "missing")


def test_only_so_many_versions_are_read_as_are_told_of(tmp_path):
    data = shared_object([("old", "V_1"), ("new", "V_2")], versions=("V_1", "V_2"))
    image = changed(tmp_path, data, DEFINED_VERSIONS, value=1)
    assert (has(image, "old", "V_1"), has(image, "new", "V_2")) == (True, False)
