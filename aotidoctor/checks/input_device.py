"""An input is on a different device type from the one that the package was compiled for.

What it does
    Compares the device type of each tensor with the one compiled into the package. The index is never part of it.

Why it matters
    Compiled code uses the pointer without a check: a CPU pointer in a CUDA kernel is an illegal memory access, a CUDA
    or meta pointer in a CPU kernel is a crash.

Example:
    args[0]: observed device meta, expected cpu

When it is wrong
    A file saved on a GPU can be loaded with map_location="cpu"; the finding describes the file as saved.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.leaves import contract_source, device_fits, leaf_check, tensor_pairs
from aotidoctor.model.case import Case
from aotidoctor.model.contract import LeafSpec

FIND = Finder("AD-IN-008", "input_device")


def run(case: Case) -> Observations:
    """One finding per tensor on another device type."""
    for pair in tensor_pairs(case):
        if pair.tensor.layout == "strided" and not device_fits(pair.spec, pair.tensor):
            yield FIND.error(
                "meta" if pair.tensor.device_type == "meta" else "device",
                pair.path,
                observed=f"device {pair.tensor.device}",
                expected=_expected_device(case, pair.spec),
                source=contract_source(case, pair.spec),
                facts=pair.facts(observed_device=pair.tensor.device, expected_device=_expected_device(case, pair.spec)),
            )


def _expected_device(case: Case, spec: LeafSpec) -> str:
    """The device type of the leaf; that of the package if its leaves do not state one (torch 2.6 and 2.7)."""
    package = case.needs.device_type
    return spec.device_type or package or "cpu"


CHECK = leaf_check(FIND, run, facts=("input", "input-check"))
