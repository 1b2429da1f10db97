"""What can be installed: the wheel and the sdist that the backend makes, without a network."""

from __future__ import annotations

import os
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
build = pytest.importorskip("hatchling.build", reason="hatchling is not installed")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The names in both, and the metadata of the wheel."""
    place = str(tmp_path_factory.mktemp("dist"))
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        wheel, sdist = build.build_wheel(place), build.build_sdist(place)
    finally:
        os.chdir(before)
    with zipfile.ZipFile(f"{place}/{wheel}") as archive:
        wheel_names = archive.namelist()
        metadata = archive.read(next(name for name in wheel_names if name.endswith("/METADATA"))).decode()
    with tarfile.open(f"{place}/{sdist}") as archive:
        sdist_names = [name.partition("/")[2] for name in archive.getnames()]
    return wheel_names, sdist_names, metadata


def test_an_sdist_has_what_a_wheel_is_made_of(made):
    wheel, sdist, _ = made
    assert {name.partition("/")[0] for name in sdist} == {
        "aotidoctor", "playbooks", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO", ".gitignore",
    }  # fmt: skip
    modules = {name for name in wheel if name.startswith("aotidoctor/") and "/_playbooks/" not in name}
    assert modules == {name for name in sdist if name.startswith("aotidoctor/")}
    playbooks = {name.rpartition("/")[2] for name in wheel if "/_playbooks/" in name}
    assert playbooks == {name.rpartition("/")[2] for name in sdist if name.startswith("playbooks/")}
    assert len(playbooks) > 100


def test_the_metadata_names_licence_and_authors_and_no_address_that_is_not_there(made):
    wheel, _, metadata = made
    fields = Parser().parsestr(metadata)
    assert fields["License-Expression"] == "Apache-2.0"
    assert fields["License"] is None
    assert "TERMS AND CONDITIONS" not in metadata
    assert any(name.endswith("/licenses/LICENSE") for name in wheel)
    assert fields["Author"]
    assert fields.get_all("Project-URL") is None
