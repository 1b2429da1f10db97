"""The order of the tests."""

from __future__ import annotations

from tests.conftest import LONGEST_FIRST, TESTS


def test_what_goes_first_is_there():
    assert [name for name in LONGEST_FIRST if not (TESTS / name).exists()] == []
