"""Each repeat of an expression gets an end, and nothing else changes."""

from __future__ import annotations

import re

import pytest

from aotidoctor.logs.patterns import bound_repeats


@pytest.mark.parametrize(
    ("regex", "made"),
    [
        (r"a.*b", r"a.{0,300}b"),
        (r"a.+?b", r"a.{1,300}?b"),
        (r"\w+::\w+", r"\w{1,120}::\w{1,120}"),
        (r"\s*\d+", r"\s{0,40}\d{1,40}"),
        (r"[^\n]*x", r"[^\n]{0,300}x"),
        (r"[\s\S]*?x", r"[\s\S]{0,600}?x"),
        (r"(?:ab)*", r"(?:ab){0,20}"),
        (r"a{2,}b", r"a{2,300}b"),
        (r"a{2,5}b{3}", r"a{2,5}b{3}"),
        (r"\*\+\{[*+]", r"\*\+\{[*+]"),
        (r"(?P<n>x)(?P=n)(?<!a)(?i:b)?", r"(?P<n>x)(?P=n)(?<!a)(?i:b)?"),
        (r"[]*]+", r"[]*]{1,300}"),
    ],
)
def test_bounded(regex, made):
    assert bound_repeats(regex) == made
    assert re.compile(made).groups == re.compile(regex).groups
