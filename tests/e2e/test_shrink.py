"""``--shrink`` on real packages: what is left fails, with less of it there is no failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import warm
from foundry.cases import Kit

pytestmark = pytest.mark.torch


def run(package, inputs, *more: str, command: str = "run"):
    report = json.loads(warm.command(command, package, "-i", inputs, *more, "--format", "json").stdout)
    return report, [item for item in report["findings"] if item["code"] == "AD-RUN-031"]


def save(where: Path, *tensors: object) -> Path:
    import torch

    torch.save(tensors, where / "inputs.pt")
    return where / "inputs.pt"


def bad_row(where: Path, row: int, rows: int = 800) -> Path:
    import torch

    ids = torch.arange(rows) % 100
    ids[row] = 100
    return save(where, ids, torch.randn(rows, 32))


def test_the_rows_that_are_left_hold_the_bad_index(packages: Kit, case_dir: Path) -> None:
    report, (found,) = run(packages.package("lookup"), bad_row(case_dir, 700), "--shrink")
    assert report["diagnoses"][0]["cause"] == "index-out-of-range"
    facts = found["facts"]
    # Two rows are the fewest that were compiled; of the columns, which have no part in it, the first two are left.
    assert (found["kind"], facts["sizes"]) == ("smaller", ["args[0].shape[0] = 2", "args[1].shape[1] = 2"])
    assert facts["starts"] == [699, 0]
    assert facts["command"].split("\n") == [
        "args[0] = args[0].narrow(0, 699, 2)",
        "args[1] = args[1].narrow(0, 699, 2)",
        "args[1] = args[1].narrow(1, 0, 2)",
    ]


def test_what_is_left_fails_by_itself(packages: Kit, case_dir: Path) -> None:
    import torch

    ids, x = torch.load(bad_row(case_dir, 700))
    small = save(case_dir, ids.narrow(0, 699, 2), x.narrow(0, 699, 2).narrow(1, 0, 2).contiguous())
    report, found = run(packages.package("lookup"), small)
    assert (report["diagnoses"][0]["cause"], found) == ("index-out-of-range", [])


def test_without_a_failure_there_is_nothing_to_keep(packages: Kit, case_dir: Path) -> None:
    import torch

    inputs = save(case_dir, torch.arange(8), torch.randn(8, 4))
    report, found = run(packages.package("lookup"), inputs, "--shrink")
    assert found == []
    (reason,) = (item["reason"] for item in report["not_checked"] if item["code"] == "AD-RUN-031")
    assert "returned" in reason


def test_static_sizes_stay(packages: Kit, case_dir: Path) -> None:
    import torch

    inputs = save(case_dir, torch.tensor([1, 5, 9, 100, 0, 42, 17, 3]))
    report, found = run(packages.package("embedding"), inputs, "--shrink")
    assert (report["diagnoses"][0]["cause"], found) == ("index-out-of-range", [])
    (reason,) = (item["reason"] for item in report["not_checked"] if item["code"] == "AD-RUN-031")
    assert "no dynamic size" in reason


def test_a_size_that_the_failure_needs_is_found_exactly(packages: Kit, case_dir: Path) -> None:
    import torch

    report, (found,) = run(packages.package("cube"), save(case_dir, torch.ones(3_000_000)), "--shrink")
    assert report["diagnoses"][0]["cause"] == "out-of-memory"
    # The first size whose cube of float32 does not fit into 63 bits.
    least = next(n for n in range(1_321_000, 1_322_000) if 4 * n**3 >= 2**63)
    assert found["facts"]["sizes"] == [f"args[0].shape[0] = {least}"]
    assert found["facts"]["gone"] == [f"args[0].shape[0] = {least - 1}"]
