from __future__ import annotations

import base64
import gzip
import io
import json
import zipfile
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aotidoctor.commands.bundle.bundle_members import needles, scan_for_leaks
from aotidoctor.reports.redact.private_words import Name

USER, HOST, HOME = Name("user", "marianne"), Name("host", "bluebird.example.org"), Name("home", "/home/marianne")
ALL = needles([("<user>", USER), ("<host>", HOST), ("<home>", HOME), ("<secret-1>", Name("secret", "Xk29fj2k-é"))])


def found(data, wanted=ALL):
    return {leak.placeholder for leak in scan_for_leaks(data, "x", wanted)}


FORMS = {
    "plain": lambda t: t.encode(),
    "upper": lambda t: t.upper().encode(),
    "little": lambda t: t.encode("utf-16-le"),
    "big": lambda t: t.encode("utf-16-be"),
    "percent": lambda t: quote(t, safe="").encode(),
    "every letter percent": lambda t: "".join(f"%{b:02x}" for b in t.encode()).encode(),
    "json": lambda t: json.dumps(t).encode(),
    "json twice": lambda t: json.dumps(json.dumps(t)).encode(),
    "unicode escapes": lambda t: "".join(f"\\u{ord(c):04X}" for c in t).encode(),
    "hex": lambda t: t.encode().hex().encode(),
    "backwards": lambda t: t[::-1].encode(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [USER, HOST, Name("secret", "Xk29fj2k-é")], ids=lambda n: n.kind)
def test_every_encoding_is_found_between_other_bytes(form, name):
    data = bytes(range(200, 256)) + FORMS[form](name.text) + bytes(range(200, 256))
    assert {"user": "<user>", "host": "<host>", "secret": "<secret-1>"}[name.kind] in found(data)


@given(st.binary(max_size=9), st.binary(max_size=9))
def test_base64_is_found_at_every_alignment(before, after):
    text = base64.b64encode(before + b"marianne" + after)
    assert "<user>" in found(text)
    assert "<user>" in found(base64.urlsafe_b64encode(before + b"marianne" + after))


def test_a_name_of_several_parts_however_it_is_joined():
    wanted = needles([("<user>", Name("user", "marie.anne"))])
    for text in ("marie.anne", "torchinductor_marie_anne", "MARIE-ANNE", "marieanne"):
        assert found(text.encode(), wanted) == {"<user>"}


def test_archives_inside_archives_are_opened():
    inner, outer = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.so", b"\x7fELF" + b"\0" * 5000 + b"/build/marianne/x.cpp\0" + b"\0" * 5000)
    with zipfile.ZipFile(outer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.pt2", gzip.compress(inner.getvalue()))
    leaks = scan_for_leaks(outer.getvalue(), "b.zip", ALL)
    assert {leak.where for leak in leaks if leak.placeholder == "<user>"} == {"b.zip/model.pt2/(unpacked)/x.so"}


@pytest.mark.parametrize("place", ["name", "comment", "extra", "member comment"])
def test_the_archive_itself_is_searched(place):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        entry = zipfile.ZipInfo("marianne.txt" if place == "name" else "a.txt")
        entry.comment = b"by marianne" if place == "member comment" else b""
        entry.extra = b"\xfe\xca\x08\x00marianne" if place == "extra" else b""
        archive.comment = b"marianne" if place == "comment" else b""
        archive.writestr(entry, "x")
    assert "<user>" in found(stream.getvalue())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (Name("user", "mark"), "benchmark remarks"),
        (Name("user", "root"), "root cause"),
        (Name("user", "ab"), "ab ab"),
        (Name("home", "/root"), "/mnt/root/x /rootfs /root-x"),
        (Name("home", "/"), "/usr"),
        (Name("home", "/home/marianne"), "/home/marianne2/x"),
    ],
)
def test_what_is_no_leak(name, text):
    wanted = needles([("<x>", name)])
    assert found(text.encode(), wanted) == set()
    assert found(text.encode("utf-16-le"), wanted) == set()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (Name("user", "mark"), "torchinductor_mark/"),
        (Name("home", "/root"), "-I/root/include"),
        (Name("home", "/root"), "cd /root"),
    ],
)
def test_short_names_leak_where_they_stand_alone(name, text):
    wanted = needles([("<x>", name)])
    assert found(text.encode(), wanted) == {"<x>"}


def test_a_leak_does_not_say_the_word():
    assert "marianne" not in str(scan_for_leaks(b"marianne", "x", ALL)[0])
