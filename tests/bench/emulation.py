"""Sixty launches of a million lanes, emulated with every address checked, and the same eagerly: seconds of each.

python -m tests.bench.emulation      # prints two numbers: emulated, eager
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "emulation"))

import torch  # noqa: E402
from driver import wrapper  # noqa: E402
from models import made  # noqa: E402

from aotidoctor.worker.emulation import job  # noqa: E402
from aotidoctor.worker.emulation.found import Found  # noqa: E402
from aotidoctor.worker.emulation.kernel_text import build, read_kernel  # noqa: E402
from aotidoctor.worker.emulation.launch import Launch  # noqa: E402
from aotidoctor.worker.emulation.libdevice import Libdevice  # noqa: E402
from aotidoctor.worker.emulation.storage import empty, of_torch  # noqa: E402

LAUNCHES, LANES = 60, 1_000_000


def main():
    torch.set_num_threads(1)
    job._install()
    (function,) = job._functions(wrapper("pointwise")).values()
    kernel = read_kernel(function.name, function.comment, function.line)
    model, _ = made("pointwise")
    x, y = torch.randn(LANES), torch.randn(LANES)
    given = [of_torch("x", x), of_torch("y", y)]
    block = function.blocks["x"]
    with tempfile.TemporaryDirectory() as folder:
        built = build(kernel, Path(folder), Libdevice())
        found = Found()

        def launch(number):
            out = empty("out", "float32", (LANES,), (1,))
            names = {"in_ptr0": given[0], "in_ptr1": given[1], "out_ptr0": out, "xnumel": LANES}
            grid = (-(-LANES // block), 1, 1)
            Launch(
                number=number, kernel=kernel, function=built, arguments=names, grid=grid, blocks=function.blocks,
                line=1, found=found,
            ).run()  # fmt: skip

        launch(0)
        began = time.perf_counter()
        for number in range(LAUNCHES):
            launch(number + 1)
        emulated = time.perf_counter() - began
        assert found.findings == []
    model(x, y)
    began = time.perf_counter()
    for _ in range(LAUNCHES):
        model(x, y)
    print(f"{emulated:.3f} {time.perf_counter() - began:.3f}")


if __name__ == "__main__":
    main()
