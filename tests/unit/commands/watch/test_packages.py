"""From what /proc told to the packages that a program used."""

from __future__ import annotations

import zipfile

import pytest

from aotidoctor.commands.watch.used_packages import used_packages
from aotidoctor.model.run import ProcessFacts


def archive(path, *names):
    with zipfile.ZipFile(path, "w") as made:
        for name in names:
            made.writestr(name, b"")
    return str(path)


def unpacked(root, *names, model="model"):
    folder = root / "aotinductor_abcdef" / "data" / "aotinductor" / model
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch()
    return str(folder)


@pytest.fixture
def two(tmp_path):
    one = archive(tmp_path / "one.pt2", "one/data/aotinductor/model/c1.wrapper.so")
    return one, archive(tmp_path / "two.pt2", "two/data/aotinductor/model/c2.wrapper.so")


def names(found):
    return [(used.path.rpartition("/")[2], used.loaded) for used in found]


def test_code_that_was_mapped_names_its_archive(tmp_path, two):
    seen = ProcessFacts(named=two, unpacked=(unpacked(tmp_path, "c2.wrapper.so"),))
    found = used_packages(seen)
    assert names(found) == [("two.pt2", True), ("one.pt2", False)]
    assert (found[0].model, found[0].how) == ("model", "code of it was loaded")


def test_an_archive_in_the_folder_of_the_program(tmp_path, two):
    seen = ProcessFacts(cwd=str(tmp_path), unpacked=(unpacked(tmp_path, "c1.wrapper.so"),))
    assert names(used_packages(seen)) == [("one.pt2", True)]


def test_the_unpacked_folder_where_no_archive_is_known(tmp_path):
    folder = unpacked(tmp_path, "c9.wrapper.so", model="other")
    (used,) = used_packages(ProcessFacts(unpacked=(folder,), cwd=str(tmp_path)))
    assert used.path == folder.partition("/data/aotinductor/")[0]
    assert used.model == "other"


def test_a_folder_that_has_gone_leads_to_the_only_archive(tmp_path, two):
    seen = ProcessFacts(opened=two[:1], unpacked=("/tmp/aotinductor_gone00/data/aotinductor/model",))
    assert names(used_packages(seen)) == [("one.pt2", True)]
    both = ProcessFacts(opened=two, unpacked=("/tmp/aotinductor_gone00/data/aotinductor/model",))
    assert {loaded for _, loaded in names(used_packages(both))} == {False}, "nobody knows which of them it was"


def test_archives_that_are_no_packages_are_none(tmp_path):
    other = archive(tmp_path / "weights.pt2", "weights/data.pkl")
    assert used_packages(ProcessFacts(opened=(other,))) == ()


def test_a_file_that_is_no_archive_counts_when_the_program_complains_of_it(tmp_path):
    seen = ProcessFacts(named=(str(tmp_path / "gone.pt2"),))
    assert used_packages(seen) == ()
    assert names(used_packages(seen, output="RuntimeError: cannot open gone.pt2")) == [("gone.pt2", False)]


def test_what_was_asked_for_comes_first(tmp_path, two):
    seen = ProcessFacts(named=two, unpacked=(unpacked(tmp_path, "c2.wrapper.so"),))
    assert names(used_packages(seen, package=two[0]))[0] == ("one.pt2", False)
    assert names(used_packages(ProcessFacts(), package="/nowhere.pt2")) == [("nowhere.pt2", False)]
