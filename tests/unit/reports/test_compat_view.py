"""Will it run there, in words."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from aotidoctor.model.fleet import Compatibility, HostAnswer, HostVerdict, PackageNeeds
from aotidoctor.reports.page import compared_page


def answer(package, host, kind, *reasons):
    field = {HostVerdict.RUNS: "provided", HostVerdict.REFUSED: "because", HostVerdict.UNKNOWN: "unknown"}[kind]
    return HostAnswer(package=package, host=host, answer=kind, **{field: reasons})


def found(*answers, **needs):
    packages = dict.fromkeys(item.package for item in answers)
    return Compatibility(needs=tuple(PackageNeeds(package=path, **needs) for path in packages), answers=answers)


TWO = (
    answer("/a/x/model.pt2", "old", HostVerdict.REFUSED, "no avx2", "glibc 2.17"),
    answer("/a/x/model.pt2", "new", HostVerdict.RUNS, "all of it"),
    answer("/a/y/model.pt2", "old", HostVerdict.UNKNOWN, "its GPU"),
    answer("/a/y/model.pt2", "new", HostVerdict.RUNS),
)


def test_packages_have_the_shortest_names_that_differ():
    assert compared_page.compat_names(found(*TWO)) == {"/a/x/model.pt2": "x/model.pt2", "/a/y/model.pt2": "y/model.pt2"}
    # The end of one path may be the whole of another.
    nested = found(answer("model.pt2", "h", HostVerdict.RUNS), answer("b/model.pt2", "h", HostVerdict.RUNS))
    assert compared_page.compat_names(nested) == {"model.pt2": "model.pt2", "b/model.pt2": "b/model.pt2"}


def test_every_answer_has_its_reason():
    assert compared_page.answer_rows(found(*TWO)) == (
        ("x/model.pt2", "old", "will not run", "no avx2; glibc 2.17"),
        ("x/model.pt2", "new", "runs", "all of it"),
        ("y/model.pt2", "old", "undetermined", "its GPU"),
        ("y/model.pt2", "new", "runs", ""),
    )


def test_a_matrix_needs_two_of_both():
    assert compared_page.compat_matrix(found(*TWO)) == (
        ("", "old", "new"),
        (("x/model.pt2", "will not run", "runs"), ("y/model.pt2", "undetermined", "runs")),
    )
    assert compared_page.compat_matrix(found(*TWO[:2])) is None
    assert compared_page.compat_matrix(found(TWO[0], TWO[2])) is None


@pytest.mark.parametrize(
    ("needs", "rows"),
    [
        ({}, {"device": "not told"}),
        ({"problem": "not a package", "device": "cpu"}, {"problem": "not a package"}),
        (
            {"built_least": "2.12", "built_least_because": "a symbol", "built_before": "2.13", "built_before_because": "b"},
            {"device": "not told", "built by": "torch 2.12 or later: a symbol; before torch 2.13: b"},
        ),
        ({"built_before": "2.13", "built_before_because": "b"}, {"device": "not told", "built by": "before torch 2.13: b"}),
        (
            {"torch_least": "2.9", "torch_least_because": "its format", "device": "cuda", "oldest_driver": "525"},
            {"torch": "2.9 or later: its format", "device": "cuda", "CUDA driver": "525 or later"},
        ),
        ({"isa": ("avx2", "fma"), "device": "cpu"}, {"device": "cpu", "CPU": "avx2, fma"}),
        (
            {"march_native": True, "device": "cpu"},
            {"device": "cpu", "CPU": "(compiled with -march=native: the build host's CPU decides)"},
        ),
        ({"device": "cpu", "threads": 8, "executable_stack": False}, {"device": "cpu", "threads": "at most 8", "stack": "not executable"}),
        ({"device": "cpu", "executable_stack": True}, {"device": "cpu", "stack": "executable"}),
    ],
)  # fmt: skip
def test_what_a_package_needs(needs, rows):
    ((title, table),) = compared_page.needs_tables(found(TWO[0], **needs))
    assert (title, dict(table)) == ("What model.pt2 needs", rows)


@pytest.mark.parametrize(
    ("answers", "headline"),
    [
        (TWO[:1], ("WILL NOT RUN", "on old: no avx2; glibc 2.17", "bad")),
        (TWO[3:], ("RUNS", "on new", "good")),
        (TWO[2:3], ("UNDETERMINED", "on old: its GPU", "unsure")),
        (TWO, ("WILL NOT RUN", "4 combinations of package and host: runs: 2, will not run: 1, undetermined: 1", "bad")),
        (TWO[2:], ("UNDETERMINED", "2 combinations of package and host: runs: 1, undetermined: 1", "unsure")),
    ],
)
def test_the_worst_answer_is_the_headline(answers, headline):
    assert astuple(compared_page.compat_headline(found(*answers))) == headline
