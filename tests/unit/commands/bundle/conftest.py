from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import replace

import pytest

from aotidoctor.commands.bundle.bundle_members import BundleContents, Material
from aotidoctor.commands.bundle.make_bundle import make_bundle
from aotidoctor.reports.redact.private_words import Identity
from tests.unit.reports import builders

ENVIRON = {"HOME": "/home/marianne", "USER": "marianne", "HF_TOKEN": "hunter2-hunter2"}
HOST = "bluebird.example.org"


def identity(*words):
    return Identity.of(ENVIRON, HOST, words)


def made(report=None, wanted=None, *, words=(), **material):
    report = builders.misleading() if report is None else report
    return make_bundle(Material(report=report, **material), wanted or BundleContents(), identity(*words))


def with_path(report, path):
    return replace(report, case=replace(report.case, artifact=replace(report.case.artifact, path=str(path))))


def members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(contents, *, manifest=None, **changes):
    """A bundle by hand: members, and a manifest that lists them rightly unless it is given."""
    listed = [{"name": name, "sha256": hashlib.sha256(data).hexdigest()} for name, data in contents.items()]
    first = {"schema": "aotidoctor.bundle/1", "members": listed, **changes} if manifest is None else manifest
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bundle.json", json.dumps(first))
        for name, data in contents.items():
            archive.writestr(name, data)
    return stream.getvalue()


@pytest.fixture
def at(tmp_path):
    """Writes bytes to a file and gives its path."""

    def write(data, name="b.zip"):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(path)

    return write
