"""Other weights in the place of those of a loaded package: by a swap of buffers, or copied by their owner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import warm
from foundry.cases import Kit
from foundry.place import cache_dir

pytestmark = pytest.mark.torch


class Folds(torch.nn.Module):
    """``w @ v`` is folded when the weights are loaded."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.w, self.v = (torch.nn.Parameter(torch.randn(32, 32)) for _ in range(2))

    def forward(self, x):
        return torch.relu(x @ (self.w @ self.v))


@pytest.fixture(scope="module")
def folding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package that folds at runtime, its inputs, and two states of its weights."""
    folder = tmp_path_factory.mktemp("folding")
    x = (torch.randn(8, 32),)
    package = cache_dir() / f"folding-{torch.__version__}" / "model.pt2"
    if not package.exists():
        package.parent.mkdir(parents=True, exist_ok=True)
        made = torch.export.export(Folds(0), x)
        options = {"aot_inductor.use_runtime_constant_folding": True}
        torch._inductor.aoti_compile_and_package(made, package_path=str(package), inductor_configs=options)
    (folder / "model.pt2").symlink_to(package)
    torch.save(x, folder / "x.pt")
    for seed, name in ((0, "a"), (1, "b")):
        torch.save(Folds(seed).state_dict(), folder / f"{name}.pt")
    return folder


def swapped(folder: Path, *words: str | Path, package: Path | None = None, second: str = "b.pt") -> dict:
    """The report of ``run`` with two files of weights."""
    model = package or folder / "model.pt2"
    files = ("--weights", folder / "a.pt", "--weights", folder / second)
    done = warm.command("run", model, "-i", folder / "x.pt", *files, *words, "--json", "--no-redact")
    return json.loads(done.stdout)


def found(report: dict) -> tuple[str, str, str]:
    (one,) = [item for item in report["findings"] if item["code"] == "AD-RUN-042"]
    return one["kind"], one["severity"], one["observed"]


def test_a_swap_of_buffers_computes_folded_constants_anew(folding: Path) -> None:
    report = swapped(folding)
    kind, severity, observed = found(report)
    assert (report["verdict"], kind, severity) == ("healthy", "ok", "info"), report["findings"]
    assert observed.startswith("5 calls as after fresh loads (double-buffer)")


def test_a_copy_in_place_leaves_folded_constants_stale(folding: Path) -> None:
    report = swapped(folding, "--weight-protocol", "user-managed")
    first = report["diagnoses"][0]
    assert found(report)[:2] == ("stale-folded", "error")
    assert (first["cause"], first["status"]) == ("weights-mismatch", "confirmed")
    assert first["subject"].startswith("_FOLDED_CONST")
    assert "load_constants again" in first["remedy"]["text"]


def test_weights_without_folding_may_be_copied(packages: Kit, tmp_path: Path) -> None:
    package = packages.package("embedding")
    for name in ("a", "b"):
        torch.save({"table.weight": torch.randn(100, 16)}, tmp_path / f"{name}.pt")
    torch.save((torch.arange(8),), tmp_path / "x.pt")
    for protocol in ("double-buffer", "user-managed"):
        report = swapped(tmp_path, "--weight-protocol", protocol, package=package)
        assert (report["verdict"], found(report)[0]) == ("healthy", "ok"), report["findings"]


def test_second_weights_that_do_not_fit_are_not_loaded(packages: Kit, tmp_path: Path) -> None:
    torch.save({"table.weight": torch.randn(100, 16)}, tmp_path / "a.pt")
    torch.save({"table.weight": torch.randn(100, 16).double()}, tmp_path / "b.pt")
    torch.save((torch.arange(8),), tmp_path / "x.pt")
    report = swapped(tmp_path, package=packages.package("embedding"))
    first = report["diagnoses"][0]
    assert (first["cause"], first["subject"]) == ("weights-mismatch", "table.weight")
    assert not any(run["probe"] == "weight_swap" for run in report["runs"])
    # Equal weights, or those that no output depends on.
    torch.save({"table.weight": torch.load(tmp_path / "a.pt")["table.weight"].index_fill(0, torch.tensor([50]), 7.0)},
               tmp_path / "c.pt")  # fmt: skip
    assert found(swapped(tmp_path, package=packages.package("embedding"), second="c.pt"))[0] == "no-effect"


def test_at_most_two_files(folding: Path) -> None:
    done = warm.command("run", folding / "model.pt2", *["--weights", folding / "a.pt"] * 3)
    assert done.returncode == 2
