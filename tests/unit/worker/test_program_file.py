"""Why an exported program cannot be loaded: what torch only logs is said."""

from __future__ import annotations

import importlib.util
import typing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from aotidoctor.worker.verify.cut_program import load_program

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


def test_types_of_the_schema_are_found_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And torch has its own function back, also where the load failed."""
    import torch

    seen = []
    original = typing.get_type_hints
    monkeypatch.setattr(
        typing, "get_type_hints", lambda obj, *args, **options: seen.append(obj) or original(obj, *args, **options)
    )
    replaced = typing.get_type_hints
    path = tmp_path / "program.pt2"
    torch.export.save(torch.export.export(torch.nn.Sequential(*[torch.nn.Linear(2, 2)] * 3), (torch.ones(2),)), path)
    load_program(path)
    of_schema = [obj for obj in seen if obj.__module__ == "torch._export.serde.schema"]
    assert len(of_schema) == len(set(of_schema)) > 5
    assert typing.get_type_hints is replaced
    with pytest.raises(Exception, match=r"zip|open|file"):
        load_program(tmp_path / "nothing.pt2")
    assert typing.get_type_hints is replaced
