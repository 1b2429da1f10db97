"""Which file a NEEDED name resolves to."""

from __future__ import annotations

import struct

import pytest

from aotidoctor.readers.host.dynamic_loader import LinkMap, read_ldcache
from tests.unit.readers.host.elf_builder import shared_object


@pytest.fixture
def place(tmp_path):
    def put(path, *args, **kwargs):
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(shared_object(*args, **kwargs))
        return str(target)

    return put


def names(images):
    return [image.path.rpartition("/")[2] for image in images]


def links(**kwargs):
    return LinkMap(cache={}, **kwargs)


def test_closure_is_breadth_first_and_each_file_once(place, tmp_path):
    place("d/libb.so", needed=("libc.so", "liba.so"), runpath="$ORIGIN")
    place("d/libc.so")
    place("d/libd.so", needed=("libc.so",), runpath="${ORIGIN}")
    root = place("d/liba.so", needed=("libb.so", "libd.so"), runpath="$ORIGIN", soname="liba.so")
    assert names(links().add_file(root)) == ["liba.so", "libb.so", "libd.so", "libc.so"]


def test_loaded_library_is_found_by_its_soname(place):
    process = links()
    process.add_file(place("torch/lib/libgomp-a34b.so.1", soname="libgomp.so.1"))
    assert names(process.add_needed(["libgomp.so.1"], ())) == ["libgomp-a34b.so.1"]


def test_folder_of_torch_is_not_searched(place):
    process = links()
    process.add_file(place("torch/lib/libtorch.so"))
    place("torch/lib/libtorch_gpu.so")
    assert process.add_needed(["libtorch_gpu.so"], ()) == []
    assert process.found["libtorch_gpu.so"] is None


def test_library_path_comes_before_runpath(place, tmp_path):
    place("first/libx.so")
    place("second/libx.so")
    process = links(library_path=(str(tmp_path / "first"),))
    assert process.add_needed(["libx.so"], (str(tmp_path / "second"),))[0].path.startswith(str(tmp_path / "first"))


def test_library_of_another_machine_is_passed_over(place, tmp_path):
    place("foreign/libx.so", machine="aarch64")
    native = place("native/libx.so", machine="x86_64")
    process = links(library_path=(str(tmp_path / "foreign"), str(tmp_path / "native")), machine=62)
    assert process.add_needed(["libx.so"], ())[0].path == native


def test_extra_folders_come_last(place, tmp_path):
    place("wheel/libcudart.so.12")
    process = links(extra_dirs=(str(tmp_path / "wheel"),))
    assert names(process.add_needed(["libcudart.so.12"], ())) == ["libcudart.so.12"]


def cache_file(entries, prefix=b""):
    strings = b""
    table = b""
    base = 48 + 24 * len(entries)
    for name, path in entries:
        key = base + len(strings)
        strings += name.encode() + b"\0"
        value = base + len(strings)
        strings += path.encode() + b"\0"
        table += struct.pack("=iIIIQ", 0x0303, key, value, 0, 0)
    return (
        prefix + b"glibc-ld.so.cache1.1" + struct.pack("=II", len(entries), len(strings)) + bytes(20) + table + strings
    )


@pytest.mark.parametrize("prefix", [b"", b"ld.so-1.7.0\0" + bytes(100)])
def test_cache(tmp_path, prefix):
    path = tmp_path / "ld.so.cache"
    path.write_bytes(cache_file([("liba.so", "/x/liba.so"), ("libb.so", "/b"), ("liba.so", "/y/liba.so")], prefix))
    assert read_ldcache(str(path)) == {"liba.so": ("/x/liba.so", "/y/liba.so"), "libb.so": ("/b",)}


@pytest.mark.parametrize("data", [b"", b"garbage", b"glibc-ld.so.cache1.1", cache_file([("a", "/a")])[:60]])
def test_damaged_cache_is_empty(tmp_path, data):
    path = tmp_path / "ld.so.cache"
    path.write_bytes(data)
    assert read_ldcache(str(path)) == {}


def test_cache_names_a_file(place, tmp_path):
    path = place("cached/libz.so")
    process = LinkMap(cache={"libz.so": ("/gone/libz.so", path)})
    assert process.add_needed(["libz.so"], ())[0].path == path
