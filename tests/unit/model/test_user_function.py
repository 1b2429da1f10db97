"""A function by its file and name, or a path."""

from __future__ import annotations

import pytest

from aotidoctor.model.case import user_function


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("model.py:build", ("model.py", "build")),
        ("/a:b/model.py:build", ("/a:b/model.py", "build")),
        ("exported.pt2", None),
        ("model.py", None),
        ("model.py:", None),
        ("a.py:b/exported.pt2", None),
    ],
)
def test_a_function_is_told_from_a_file(text: str, found: tuple[str, str] | None) -> None:
    assert user_function(text) == found
