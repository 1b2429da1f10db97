"""Every bad index, divisor and promise on a real package: the element, the bound, the operator, the line that says so."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import warm
from foundry import edit
from foundry.cases import Kit
from foundry.registry import FAULTS

pytestmark = pytest.mark.torch

CASES = {case.name: case for case in FAULTS}
EMBEDDING = "cpp_fused_embedding_mul_0"
GATHER = "cpp_fused_add_gather_0"
INTEGERS = "cpp_fused_add_index_put_remainder_0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The chain, as a pattern where source lines are in it, and facts that treatments and titles rest on."""

    chain: str
    element: str | None
    value: int | None
    bound: int | None = None
    origin: str | None = None


def embedding(at: int, value: int) -> Wanted:
    return Wanted(
        chain=f"{EMBEDDING}: index {value} of 100 ← args[0][{at}] = {value}; bound from table.weight.shape[0]; "
        "from aten.embedding",
        element=f"args[0][{at}]",
        value=value,
        bound=100,
        origin="table.weight.shape[0]",
    )


def gather(value: int) -> Wanted:
    return Wanted(
        chain=f"{GATHER}: index {value} of 16 ← args[1][0, 5] = {value}; bound from args[0].shape[1]; from aten.gather",
        element="args[1][0, 5]",
        value=value,
        bound=16,
        origin="args[0].shape[1]",
    )


def put(at: int, value: int) -> Wanted:
    return Wanted(
        chain=f"{INTEGERS}: index {value} of 100 ← args[1][{at}] = {value}; bound from args[0].shape[0]; "
        "from aten.index_put",
        element=f"args[1][{at}]",
        value=value,
        bound=100,
        origin="args[0].shape[0]",
    )


def promise(value: int, condition: str) -> Wanted:
    return Wanted(
        chain=f"expected {condition}, got {value} ← args[1] = {value}; from aten.item", element="args[1]", value=value
    )


WANTED = {
    "index_embedding_100": embedding(3, 100),
    "index_embedding_huge": embedding(0, 100000),
    "index_embedding_negative": embedding(7, -101),
    "index_embedding_padding": embedding(7, -1),
    "index_in_threads": Wanted(
        chain="cpp_fused_embedding_mul_relu_0: index 503 of 500 ← args[0][2, 7] = 503; "
        "bound from table.weight.shape[0]; from aten.embedding",
        element="args[0][2, 7]",
        value=503,
        bound=500,
        origin="table.weight.shape[0]",
    ),
    "index_gather_negative": gather(-1),
    "index_gather_16": gather(16),
    "index_put_5000": put(2, 5000),
    "index_put_100": put(7, 100),
    "index_keyword_100": Wanted(
        chain="cpp_fused__softmax_embedding_mul_0: index 100 of 100 ← kwargs['ids'][3] = 100; "
        "bound from words.e.weight.shape[0]; from aten.embedding at models.py:<line>",
        element="kwargs['ids'][3]",
        value=100,
        bound=100,
        origin="words.e.weight.shape[0]",
    ),
    "index_through_buffer": Wanted(
        chain="cpp_fused_embedding_1: index 121 of 100 ← args[0][4] = 60 through cpp_fused_add_mul_0; "
        "bound from e.weight.shape[0]; from aten.embedding",
        element="args[0][4]",
        value=60,
        bound=100,
        origin="e.weight.shape[0]",
    ),
    "index_through_sum": Wanted(
        chain="cpp_fused_embedding_1: index out of 0..99 ← computed from args[1] through aoti_torch_cpu_cumsum; "
        "bound from e.weight.shape[0]; from aten.embedding",
        element=None,
        value=None,
        bound=100,
        origin="e.weight.shape[0]",
    ),
    "divide_by_zero": Wanted(
        chain=f"{INTEGERS}: division by zero ← args[3][4] = 0; from aten.remainder", element="args[3][4]", value=0
    ),
    "divide_by_zeros": Wanted(
        chain=f"{INTEGERS}: division by zero ← args[3][0] = 0, the first of 8; from aten.remainder",
        element="args[3][0]",
        value=0,
    ),
    "assert_above": promise(40, "u0 <= 16"),
    "assert_below": promise(-3, "u0 >= 0"),
}


def test_the_table_is_complete():
    causes = {"index-out-of-range", "integer-division", "runtime-assert"}
    named = {name for name, case in CASES.items() if case.causes[0] in causes}
    # The operator itself refuses those of an embedding bag: there is no check in a kernel to follow.
    assert {name for name in named if not name.startswith("bag_")} == WANTED.keys()


@pytest.mark.parametrize("name", WANTED)
def test_blame(name: str, packages: Kit, case_dir: Path) -> None:
    call = CASES[name].make(packages, case_dir)
    report = json.loads(warm.command("run", *call.arguments(), "--format", "json", env=call.env).stdout)
    (finding,) = (one for one in report["findings"] if one["code"] == "AD-RUN-022")
    facts, wanted = finding["facts"], WANTED[name]
    assert re.sub(r"(?<=models\.py:)\d+", "<line>", finding["observed"]) == wanted.chain
    for key in ("element", "value", "bound", "origin"):
        assert facts[key] == getattr(wanted, key), key
    first = report["diagnoses"][0]
    assert finding["id"] in first["evidence"]
    assert (wanted.element or facts["path"]) in first["title"]
    assert first["subject"] == facts["path"]


def test_of_a_package_that_is_not_run_it_asks_nothing(packages, tmp_path, command_line):
    """Its kernels hold no check of an index, so that one could have gone astray, had it been run."""
    damaged = Path(shutil.copy(packages.package("pointwise"), tmp_path / "damaged.pt2"))
    edit.corrupt_member(damaged, ".so")
    done = command_line("run", damaged, "--inputs", packages.sample_path("pointwise"), "--json")
    report = json.loads(done.stdout)
    assert report["diagnoses"][0]["cause"] == "artifact-corrupt"
    assert not report["runs"]
    assert [item for item in report["not_checked"] if "aotidoctor failed here" in item["reason"]] == []
    assert "blame" in [item["name"] for item in report["not_checked"] if item["moot"]]
