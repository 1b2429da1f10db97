"""Weights from a file, for a package that ships none: compared before anything is loaded, then loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foundry import edit
from foundry.cases import Kit
from warm import command

pytestmark = pytest.mark.torch
CHANGES = {
    "good": lambda state: state,
    "double": lambda state: {name: value.double() for name, value in state.items()},
    "prefix": lambda state: {f"_orig_mod.{name}": value for name, value in state.items()},
    "missing": lambda state: {name: value for name, value in state.items() if name != "l.bias"},
    "turned": lambda state: {name: value.t() if value.dim() == 2 else value for name, value in state.items()},
}


def state_of(packages):
    import torch

    program = torch.export.load(str(packages.exported("external")))
    tensors = {**program.state_dict, **program.constants}
    return {name: value.detach().contiguous() for name, value in tensors.items() if isinstance(value, torch.Tensor)}


def written(packages, folder: Path, change: str, suffix: str = "pt") -> Path:
    import torch
    from safetensors.torch import save_file

    path, state = folder / f"weights.{suffix}", CHANGES[change](state_of(packages))
    torch.save(state, path) if suffix == "pt" else save_file(state, path)
    return path


def asked(verb, packages, weights, *more):
    # In a process of its own: torch in this one would count against the limits of a static command.
    words = (verb, packages.package("external"), "--weights", weights, *more, "--json")
    done = command(*words, env={"LANG": "C.UTF-8"} if verb == "check" else None)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("suffix", ["pt", "safetensors"])
def test_weights_that_fit_are_loaded(packages: Kit, tmp_path: Path, suffix: str) -> None:
    weights = written(packages, tmp_path, "good", suffix)
    assert asked("check", packages, weights)[0] == 0
    status, report = asked(
        "run", packages, weights, "--inputs", packages.sample_path("external"), "--reference",
        packages.exported("external"),
    )  # fmt: skip
    assert (status, report["verdict"]) == (0, "healthy")
    assert any(item["kind"] == "agrees" for item in report["findings"])


@pytest.mark.parametrize(
    ("change", "kind"), [("double", "dtype"), ("prefix", "prefix"), ("missing", "missing"), ("turned", "shape")]
)
def test_weights_that_do_not_fit_are_named_before_anything_runs(packages, tmp_path, change, kind) -> None:
    status, report = asked("check", packages, written(packages, tmp_path, change))
    assert status == 1
    assert report["diagnoses"][0]["cause"] == "weights-mismatch"
    assert kind in {item["kind"] for item in report["findings"] if item["code"] == "AD-LOAD-008"}


def test_weights_of_another_dtype_are_proved(packages: Kit, tmp_path: Path) -> None:
    status, report = asked("run", packages, written(packages, tmp_path, "double"), "--generate")
    first = report["diagnoses"][0]
    assert (status, first["cause"], first["status"]) == (1, "weights-mismatch", "confirmed")


@pytest.mark.parametrize("text", [b"garbage", b"\x10\0\0\0\0\0\0\0{" + b" " * 15, None])
def test_an_unreadable_file_costs_the_comparison_only(packages: Kit, tmp_path: Path, text: bytes | None) -> None:
    path = tmp_path / "weights"
    if text is not None:
        path.write_bytes(text)
    status, report = asked("check", packages, path, "--inputs", packages.sample_path("external"))
    assert status == 4
    assert report["cannot_examine"]
    assert report["contract"]["n_inputs"]
    assert [item for item in report["diagnoses"] if item["severity"] == "error"] == []


def test_a_bare_library_gets_weights_by_their_original_names(packages: Kit, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    library, weights = tmp_path / "model.so", tmp_path / "weights.pt"
    library.write_bytes(edit.find(edit.read(packages.package("embedding")), ".so")[1])
    torch.save({"table.weight": torch.full((100, 16), 7.0)}, weights)
    done = command("run", library, "-i", packages.sample_path("embedding"), "--weights", weights, "--json")
    (plain,) = [run for run in json.loads(done.stdout)["runs"] if run["probe"] == "plain_run"]
    assert [(one["min"], one["max"]) for one in plain["outputs"]] == [(14.0, 14.0)]
