"""A written validator against one call of the package that it was written for. Nothing is asserted about time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.bench.conftest import MEDIANS
from tests.e2e.foundry.place import cache_dir

pytestmark = [pytest.mark.bench, pytest.mark.torch]

# Interleaved, so that other load on the machine moves both alike; seconds of one call each.
LOOP = """
import statistics, sys, timeit, torch
sys.path.insert(0, sys.argv[1])
from model_inputs import validate_inputs
model = torch._inductor.aoti_load_package(sys.argv[2])
call = torch.load(sys.argv[3])
args, kwargs = call["args"], call["kwargs"]
asked, called = [], []
for _ in range(20):
    asked.append(timeit.timeit(lambda: validate_inputs(args, kwargs), number=2000) / 2000)
    called.append(timeit.timeit(lambda: model(*args, **kwargs), number=2000) / 2000)
print(statistics.median(asked), statistics.median(called))
"""


def test_validator(tmp_path, benchmark):
    from aotidoctor.commands import demo

    folder = demo.prepare_demo({**os.environ, "XDG_CACHE_HOME": str(cache_dir())}, lambda _event: None)
    command = [sys.executable, "-m", "aotidoctor", "contract", str(folder / "model.pt2"), "-o"]
    subprocess.run([*command, str(tmp_path / "model_inputs.py")], check=True)
    words = [sys.executable, "-c", LOOP, str(tmp_path), str(folder / "model.pt2"), str(folder / "good.pt")]
    done = benchmark.pedantic(subprocess.run, (words,), {"capture_output": True, "text": True, "check": True}, rounds=1)
    MEDIANS["validator, demo"], MEDIANS["call, demo"] = map(float, done.stdout.split())
    benchmark.extra_info.update({"validator": MEDIANS["validator, demo"], "call": MEDIANS["call, demo"]})
