"""The faults that the simulated driver is told to raise, made for real in the same kernels: prints what emulation sees.

    python tests/emulation/simulated.py ROOM > tests/data/emulation/simulated.json

One JSON object: by scenario of ``tests/cuda_sim`` the launches in order, and launch, kernel and grid of the first fault.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import torch
from driver import HERE, emulate

from aotidoctor.model.jobs import InputsSource, Run

PACKAGES, INPUTS = HERE.parent / "data" / "cuda", HERE.parent / "data" / "cuda_sim"
# Scenario: package, kernel, and what is wrong with a line of it or with the inputs.
FAULTS = {
    "illegal_access": ("mlp", "triton_poi_fused_addmm_relu_0", ("in_out_ptr0 + (x2), xmask)", "in_out_ptr0 + (x2), None)")),
    "overrun": ("mlp", "triton_poi_fused_addmm_mul_sigmoid_1", ("in_out_ptr0 + (x2), xmask)", "in_out_ptr0 + (x2), None)")),
    "misaligned": ("two_kernels", "triton_per_fused_cumsum_exp_mul_sort_sub_1", ("in_ptr0 + (", "in_ptr0 + (1000000000 + ")),
    "device_assert": ("gpu_const", "triton_poi_fused_add_index_0", None),
}  # fmt: skip


def edited(name, kernel, edit, room):
    """The package with that edit in the text of that kernel."""
    path = room / f"{name}.pt2"
    with zipfile.ZipFile(PACKAGES / f"{name}.pt2") as old, zipfile.ZipFile(path, "w") as new:
        for member in old.namelist():
            content = old.read(member)
            if edit is not None and member.endswith(".wrapper.cpp"):
                before, opening, text = content.decode().partition(f"async_compile.triton('{kernel}'")
                inside, end, after = text.partition("device_str=")
                assert edit[0] in inside
                content = "".join((before, opening, inside.replace(*edit), end, after)).encode()
            new.writestr(zipfile.ZipInfo(member), content)
    return path


def seen(scenario, room):
    name, kernel, edit = FAULTS[scenario]
    tensors = list(torch.load(INPUTS / f"{name}-cpu.pt"))
    if edit is None:
        # The table has 40 rows.
        tensors[0] = torch.tensor([1, 2, 40])
    torch.save(tuple(tensors), room / "inputs.pt")
    source = InputsSource(path=str(room / "inputs.pt"))
    told = emulate(Run(package=str(edited(name, kernel, edit, room)), inputs=source), room)["emulation"]
    first = told["findings"][0]
    return {
        "launches": [[one["kernel"], one["grid"]] for one in told["launches"]],
        "kind": first["kind"],
        "launch": first["launch"],
        "kernel": first["kernel"],
        "grid": first["grid"],
    }


if __name__ == "__main__":
    print(json.dumps({scenario: seen(scenario, Path(sys.argv[1])) for scenario in FAULTS}, indent=1))
