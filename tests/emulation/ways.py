"""Which way a package goes, with the limits that decide it set by hand: one JSON object, situation by situation."""

from __future__ import annotations

import gc
import json
import sys
import weakref
from pathlib import Path

import torch
from cases import put
from driver import emulate, package
from models import made

from aotidoctor.model.jobs import InputsSource, Run
from aotidoctor.worker.emulation import emulate as emulate_module

# Two launches: a cumulated sum, and a gather whose indices it makes.
MODEL = "computed_index"
KERNELS = ("triton_per_fused__to_copy_abs_cumsum_mul_0", "triton_poi_fused__to_copy_abs_add_index_mul_remainder_1")


def went(room, change=None, model=MODEL, **more):
    """``[way of each launch, kinds of findings, what was left out, whether there are outputs]``."""
    path, _ = package(model, room)
    _, args = made(model)
    torch.save(change(args) if change else args, room / "inputs.pt")
    source = InputsSource(path=str(room / "inputs.pt"))
    result = emulate(Run(package=str(path), inputs=source, emulate_seconds=60, **more), room)
    told = result["emulation"]
    ways = [one.get("way") for one in told["launches"]]
    left = sorted({one["what"] for one in told["not_emulated"]})
    return [ways, [one["kind"] for one in told["findings"]], left, len(result["outputs"][0])]


def kept(room):
    """How many weights of earlier passes are still there when those of a pass are read."""
    counts, weights, read = [], [], emulate_module._constants

    def counted(*given):
        counts.append(sum(one() is not None for one in weights))
        made = read(*given)
        weights.extend(weakref.ref(one.storage) for one in made)
        return made

    gc.disable()
    emulate_module._constants = counted
    went(room, model="mlp")
    emulate_module._constants = read
    gc.enable()
    return [counts, len(weights) > 0]


def situations(room):
    found = {"small": went(room)}
    emulate_module.LARGE = 0
    found["large, time enough"] = went(room)
    found["large, one kernel named"] = went(room, emulate_kernels=[KERNELS[1]], emulate_way="quick")
    found["large, weights kept"] = kept(room)
    emulate_module.SECONDS_A_LANE = 1e9
    found["large, no time"] = went(room)
    # 40 rows: the first index is beyond them.
    found["large, at fault"] = went(room, put(1, (0,), 4.0))
    emulate_module.LARGE, emulate_module.SHARE_OF_FULL = 1 << 60, 1e-9
    found["small, no time"] = went(room)
    return found


if __name__ == "__main__":
    print(json.dumps(situations(Path(sys.argv[1]))))
