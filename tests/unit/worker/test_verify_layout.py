"""Which archives of exported programs the worker takes for what: their layout, and the release they were written by."""

from __future__ import annotations

import zipfile

import pytest

pytest.importorskip("torch")

from aotidoctor.worker.verify.program_load import _is_old, _later_schema
from tests.artifacts.releases import ROOT

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(("program", "old"), [("2.6.0/dyn", True), ("2.7.1/dyn", True), ("2.8.0/dyn", False)])
def test_the_old_layout_is_known(program, old, tmp_path):
    assert _is_old(ROOT / program / "exported.pt2") is old
    (tmp_path / "cut.pt2").write_bytes(b"PK")
    assert not _is_old(tmp_path / "cut.pt2")
    with zipfile.ZipFile(tmp_path / "empty.pt2", "w"):
        pass
    assert not _is_old(tmp_path / "empty.pt2")


@pytest.mark.parametrize(
    ("document", "later"),
    [
        ({"schema_version": {"major": 8, "minor": 20}}, True),
        ({"schema_version": {"major": 9, "minor": 1}}, True),
        ({"schema_version": {"major": 8, "minor": 8}}, False),
        ({"schema_version": {"major": "8", "minor": 9}}, False),
        ({"schema_version": 8}, False),
        ([], False),
        (None, False),
    ],
)
def test_a_later_schema_is_no_damage(document, later):
    assert (_later_schema(document, (8, 8)) is not None) is later
