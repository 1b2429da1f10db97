"""The blocks of patterns in the playbooks, and the words that are looked for first."""

from __future__ import annotations

import re

import pytest

from aotidoctor.logs.patterns import PatternError, check, literals_of, load_patterns, read_patterns
from aotidoctor.logs.prefilter import KeywordFilter, letters
from tests.unit.logs.reading import causes, read


def block(text):
    return f"# x\n\n```toml log\n{text}\n```\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[pattern]\n", "cause.md: toml log: not TOML"),
        ("[[pattern]]\nexample = 'x'", "cause.md: pattern 1: regex: missing"),
        (
            "[[pattern]]\nregex = 'a'\n[[pattern]]\nregex = 3",
            "cause.md: pattern 2: regex: observed 3, expected a string",
        ),
        ("[[pattern]]\nregex = 'a'\nnear = 'x'", "cause.md: pattern 1: near: observed 'x', expected a list of strings"),
        ("[[pattern]]\nregex = 'a'\nconfidence = 2", "cause.md: pattern 1: confidence: observed 2"),
        ("[[pattern]]\nregex = 'a'\nstage = 'x'", "cause.md: pattern 1: stage: observed 'x'"),
        ("[[pattern]]\nregex = 'a'\nfacts = {a = 1}", "cause.md: pattern 1: facts"),
        ("[[pattern]]\nregex = 'a'\nwhy = 'b'", "cause.md: pattern 1: unknown key why"),
        ("[[patterns]]\nregex = 'a'", "cause.md: toml log: observed keys"),
    ],
)
def test_an_error_names_file_and_key(text, said):
    with pytest.raises(PatternError, match=re.escape(said)):
        read_patterns("cause", block(text))


def test_a_regex_that_does_not_compile():
    (pattern,) = read_patterns("cause", block("[[pattern]]\nregex = '('"))
    with pytest.raises(PatternError, match="here"):
        check(pattern, "here")


def test_all_patterns_compile_and_have_a_word_that_is_in_each_match():
    patterns = load_patterns()
    assert len(patterns) > 100
    for pattern in patterns:
        check(pattern, pattern.record.cause)
        found = pattern.regex.search(pattern.record.example)
        if found is not None:
            assert pattern.may_match(pattern.record.example), pattern.record.regex


@pytest.mark.parametrize(
    ("regex", "words"),
    [
        ("undefined symbol: \\S+", ("undefined symbol: ",)),
        ("abcd|efgh", ("abcd", "efgh")),
        ("(?:abcd|efgh) is out of it", (" is out of it",)),
        ("abcd+efgh", ("abcd",)),
        ("abcdx?efghi", ("efghi",)),
        ("abcd(?P<x>\\d+)longer text", ("longer text",)),
        ("[abcdef]{3,4}long", ("long",)),
        ("a\\.cpp\\:there", ("a.cpp:there",)),
        ("abc", ()),
        ("abcdef|x", ()),
        ("(?i)abcdef", ()),
        ("12345", ()),
    ],
)
def test_words_of_a_regex(regex, words):
    assert literals_of(regex) == words


def test_the_telltale_finds_whole_lines():
    keywords = KeywordFilter(("exception", "not found", "zebra crossing"))
    lines = {letters(line) for line in (b"an Exception!", b"nothing", b"file not found: x", b"Zebra-crossing 7", b"")}
    assert keywords.telling(lines) == {b"anexception", b"filenotfoundx", b"zebracrossing"}
    assert keywords.may_tell(letters(b"12 NOT FOUND")) is True
    assert keywords.may_tell(letters(b"notable founder")) is False


def test_no_words_tell_nothing():
    assert KeywordFilter(()).telling({b"abc", b""}) == set()
    assert KeywordFilter(()).may_tell(b"abc") is False


def test_a_line_of_source_is_not_what_it_would_raise():
    quoted = (
        "/tmp/cabc.cpp:22:17: error: 'foo' was not declared in this scope\n"
        "   22 |     inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error, foo);\n"
        "      |     ^~~\n"
    )
    assert "integer-division" not in causes(read(quoted))
    assert "integer-division" not in causes(read("    inductor_cpu_throw_if_integer_div_error(error);\n"))
