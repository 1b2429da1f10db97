from __future__ import annotations

import pytest

from aotidoctor.commands.bundle.bundle_members import BundleContents
from aotidoctor.commands.bundle.make_bundle import listing, size_text
from tests.unit.commands.bundle.conftest import made


def test_every_member_and_every_absence_has_a_line():
    bundle = made()
    text = listing(bundle, place="b.zip", map_place="b.map", dry=False)
    assert all(member.name in text for member in bundle.members)
    assert all(f"{item.name}: {item.reason}" in text for item in bundle.absent)
    assert "b.map, which is not sent" in text


def test_brief_and_dry():
    brief = listing(made(), place="b.zip", map_place="b.map", dry=True, brief=True)
    assert len(brief.splitlines()) == 2
    assert "would be written" in brief
    assert "stays here" not in brief


def test_what_was_not_redacted_says_so():
    text = listing(made(wanted=BundleContents(redact=False)), place="b.zip", map_place=None, dry=False)
    assert "not redacted" in text


@pytest.mark.parametrize(("size", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (2_000_000, "2.0 MB")])
def test_sizes(size, text):
    assert size_text(size) == text
