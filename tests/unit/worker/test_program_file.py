"""Why an exported program cannot be loaded: what torch only logs is said."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from aotidoctor.worker.cut_program import load_program

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]


def test_an_operator_that_nobody_has_registered_is_named(tmp_path: Path) -> None:
    import torch

    library = torch.library.Library("programlab", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.ops.programlab.twice(x) + 1

    path = tmp_path / "program.pt2"
    torch.export.save(torch.export.export(Model(), (torch.ones(2),)), str(path))
    assert load_program(path).module()(torch.ones(2)).tolist() == [3.0, 3.0]
    library._destroy()
    with pytest.raises(RuntimeError, match=r"programlab\.twice"):
        load_program(path)


def test_another_file_is_refused_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "text.pt2").write_text("nothing", encoding="utf-8")
    with pytest.raises(Exception, match="zip"):
        load_program(tmp_path / "text.pt2")
