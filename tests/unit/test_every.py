"""All cases of a table are tried, whatever the first ones did, and those that fail are told by name."""

from __future__ import annotations

import pytest

from tests.every import every


def told(test, *args, **fixtures) -> str:
    with pytest.raises(pytest.fail.Exception) as caught:
        test(*args, **fixtures)
    return caught.value.msg


def test_each_case_that_fails_is_named_with_its_reason_and_place():
    @every("number", [1, 2, 3, 4], ids=lambda number: f"case-{number}")
    def is_odd(number):
        assert number % 2 == 1, "it is even"

    first, *rest = told(is_odd).splitlines()
    assert first == "2 of 4 fail:"
    named = [line for line in rest if line.startswith("[")]
    assert [line.split("]")[0] for line in named] == ["[case-2", "[case-4"]
    assert all("test_every.py:" in line and "it is even" in line for line in named)


def test_an_error_is_a_failure_of_its_case_only():
    @every(("a", "b"), [(1, 0), (1, 1), (0, "x")])
    def divides(a, b):
        assert a / b

    said = told(divides)
    assert said.startswith("2 of 3 fail:")
    assert "ZeroDivisionError" in said
    assert "TypeError" in said


def test_a_skip_would_hide_the_others():
    @every("number", [1, 2])
    def skips(number):
        pytest.skip("not here")

    assert told(skips).startswith("2 of 2 fail:")


def test_no_cases_are_refused():
    with pytest.raises(ValueError, match="no cases"):
        every("number", [])


def test_chunks_have_all_cases_once():
    seen = []

    @every("number", range(7), chunks=3)
    def sees(number):
        seen.append(number)

    for chunk in range(3):
        sees(chunk=chunk)
    assert sorted(seen) == list(range(7))
    (mark,) = sees.pytestmark
    assert (mark.name, mark.args) == ("parametrize", ("chunk", range(3)))


class TestInAClass:
    @every("name", ["a", "b"])
    def test_a_folder_and_a_patch_for_each_case(self, name, tmp_path, monkeypatch):
        assert list(tmp_path.iterdir()) == []
        (tmp_path / name).touch()
        assert not {"a", "b"} & set(vars(TestInAClass))
        monkeypatch.setattr(TestInAClass, name, True, raising=False)


@every("outer", "xy")
@every("inner", "12")
def product(inner, outer):
    assert (outer, inner) == ("x", "1")


def test_one_table_in_another_is_their_product():
    said = told(product)
    assert said.startswith("2 of 2 fail:")
    assert said.count("of 2 fail:") == 3
