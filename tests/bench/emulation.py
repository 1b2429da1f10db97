"""Launches emulated in full and by the quick way, and the same eagerly: seconds, and memory.

python -m tests.bench.emulation      # one JSON object

In ``embedding`` the addresses follow from ids in memory, of which least and greatest are enough; in ``index_put`` one id is
negative, which the model allows, so that every lane is looked at.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "emulation"))

import torch  # noqa: E402
from driver import wrapper  # noqa: E402
from models import made  # noqa: E402

from aotidoctor.worker.emulation import engine  # noqa: E402
from aotidoctor.worker.emulation.engine import check_launch  # noqa: E402
from aotidoctor.worker.emulation.interpreter import Libdevice, install_interpreter  # noqa: E402
from aotidoctor.worker.emulation.kernel_source import build_kernel, read_kernel  # noqa: E402
from aotidoctor.worker.emulation.launch import LaneLaunch  # noqa: E402
from aotidoctor.worker.emulation.storage import EmulationFindings, PendingSteps, device_copy, empty_storage  # noqa: E402

LAUNCHES, LANES = 60, 1_000_000
# Lanes of one launch: the time of the quick way must not grow faster than they do.
SIZES = (100_000, 1_000_000, 10_000_000)


class Model:
    """A kernel of a package, and how a launch of it with so many lanes is made."""

    def __init__(self, name):
        functions = list(engine.kernel_functions(wrapper(name)).values())
        function = functions[len(functions) // 2]
        self.kernel = read_kernel(function.name, function.comment, function.line)
        self.blocks = function.blocks
        self.built = build_kernel(self.kernel, Libdevice())

    def launch(self, given, out, lanes, *, number=1):
        found = EmulationFindings()
        made = LaneLaunch(
            number=number, kernel=self.kernel, function=self.built, arguments={**given, **out, "xnumel": lanes},
            grid=(-(-lanes // self.blocks["x"]), 1, 1), blocks=self.blocks, line=1, found=found,
        )  # fmt: skip
        return made, found


def pointwise(model, lanes):
    """No index is loaded: bounds alone settle it."""
    given = {"in_ptr0": device_copy("x", torch.randn(lanes)), "in_ptr1": device_copy("y", torch.randn(lanes))}
    return lambda number: model.launch(
        given, {"out_ptr0": empty_storage("out", "float32", (lanes,), (1,))}, lanes, number=number
    )


def embedding(model, lanes):
    """Every lane's address follows from an index in memory."""
    rows = lanes // 24
    given = {
        "in_ptr0": device_copy("ids", torch.randint(0, 100, (rows,))),
        "in_ptr1": device_copy("weight", torch.randn(100, 24)),
    }
    out = (rows, 24), (24, 1)
    return lambda number: model.launch(
        given, {"out_ptr0": empty_storage("out", "float32", *out)}, rows * 24, number=number
    )


def index_put(model, lanes):
    """An id for each row of 4 lanes."""
    rows = lanes // 4
    ids = torch.randint(0, 30, (rows,))
    ids[0] = -1
    given = {"in_ptr0": device_copy("ids", ids), "in_ptr1": device_copy("values", torch.randn(rows, 4))}
    out = {"out_ptr0": device_copy("out", torch.zeros(30, 4))}
    return lambda number: model.launch(given, out, rows * 4, number=number)


def seconds(launch, count, *, quick):
    began = time.perf_counter()
    for number in range(count):
        made, found = launch(number)
        if quick:
            assert check_launch(made, PendingSteps())[1] is None
        else:
            made.run()
        assert found.findings == []
    return time.perf_counter() - began


def memory():
    """How much memory a look at 10^7 lanes takes on top of the tensors themselves, as a multiple of these."""
    launch = index_put(Model("index_put"), SIZES[-1])
    made, _ = launch(1)
    size = sum(one.storage.size for one in made.arguments.values() if hasattr(one, "storage"))
    # From here on, the high-water mark counts anew.
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    assert check_launch(made, PendingSteps())[1] is None
    return (peak() - before + size) / size


def peak():
    """Bytes of memory at most, since the mark was reset."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])


def main():
    torch.set_num_threads(1)
    install_interpreter(Libdevice())
    told = {}
    for name, make in (("pointwise", pointwise), ("embedding", embedding), ("index_put", index_put)):
        model = Model(name)
        launch = make(model, LANES)
        for quick in (False, True):
            seconds(launch, 1, quick=quick)
            told[f"{name}: {LAUNCHES} launches, {'quick' if quick else 'full'}"] = seconds(
                launch, LAUNCHES, quick=quick
            )
        for lanes in SIZES:
            told[f"{name}: {lanes} lanes, quick"] = min(seconds(make(model, lanes), 1, quick=True) for _ in range(3))
    module, _ = made("pointwise")
    x, y = torch.randn(LANES), torch.randn(LANES)
    module(x, y)
    began = time.perf_counter()
    for _ in range(LAUNCHES):
        module(x, y)
    told[f"pointwise: {LAUNCHES} launches, eager"] = time.perf_counter() - began
    told["memory of 10^7 lanes, to the tensors"] = memory()
    print(json.dumps({name: round(value, 4) for name, value in told.items()}))


if __name__ == "__main__":
    main()
