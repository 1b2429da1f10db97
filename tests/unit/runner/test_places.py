"""What older releases of PyTorch unpack to /tmp goes with the run that told of it, and nothing else does."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from aotidoctor.runner.run_dir import remove_unpacked


@pytest.fixture
def unpacked():
    folder = Path("/tmp") / secrets.token_hex(3)
    folder.mkdir()
    (folder / "model.so").touch()
    yield folder
    if folder.exists():
        (folder / "model.so").unlink()
        folder.rmdir()


def test_the_folder_of_a_load_is_removed(unpacked):
    remove_unpacked([str(unpacked), str(unpacked)])
    assert not unpacked.exists()


@pytest.mark.parametrize("told", [None, "x", [7], ["/tmp"], ["/tmp/../tmp"], ["relative"]])
def test_anything_else_is_not_looked_at(told, tmp_path):
    remove_unpacked(told)
    remove_unpacked([str(tmp_path)])
    assert tmp_path.is_dir()
    assert Path("/tmp").is_dir()


def test_a_link_is_not_followed(unpacked):
    link = Path("/tmp") / secrets.token_hex(3)
    link.symlink_to(unpacked)
    try:
        remove_unpacked([str(link)])
        assert (unpacked / "model.so").exists()
    finally:
        os.unlink(link)
