"""aotidoctor against plain torch, each as a command of its own, in one run. Nothing is asserted about time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from aotidoctor.readers.host import profiles
from tests.bench.conftest import CUDA, MEDIANS, MEMORY
from tests.unit.triton.harness import MLP

pytestmark = [pytest.mark.bench, pytest.mark.torch]

PLAIN = """
import sys, torch
model = torch._inductor.aoti_load_package(sys.argv[1])
sample = torch.load(sys.argv[2])
model(*sample)
"""
DIRECT = """
import sys, torch
loader = torch._C._aoti.AOTIModelPackageLoader(sys.argv[1], "model", False, 1, -1)
loader.run(list(torch.load(sys.argv[2])))
"""
CALLS = """
import statistics, sys, time, torch
from pathlib import Path
from aotidoctor.worker.call_hooks.package_calls import start_trace
from aotidoctor.model.jobs import Run
from aotidoctor.worker.load_package import load_model

class Channel:
    run_dir = Path(sys.argv[3])
    def put(self, **_):
        pass

def loop(model, sample):
    began = time.perf_counter()
    for _ in range(5000):
        model.loader.run(list(sample))
    return time.perf_counter() - began

model, sample = load_model(Run(), Path(sys.argv[1])), torch.load(sys.argv[2])
loop(model, sample)
plain = [loop(model, sample) for _ in range(7)]
start_trace(model.directory, Channel())
traced = [loop(model, sample) for _ in range(7)]
print(statistics.median(plain), statistics.median(traced))
"""
TRACED = (
    CALLS.partition("def loop")[0]
    + """
model = load_model(Run(), Path(sys.argv[1]))
start_trace(model.directory, Channel())
model(*torch.load(sys.argv[2]))
"""
)
UNTRACED = TRACED.replace("start_trace(model.directory, Channel())", "")
DOCTOR = (sys.executable, "-m", "aotidoctor")


@pytest.fixture(scope="module")
def model(kit):
    return str(kit.package("mlp")), str(kit.sample_path("mlp"))


@pytest.fixture(scope="module")
def narrow(kit, tmp_path_factory):
    """The same call in another dtype: silent, so every probe and a treatment are needed."""
    import torch

    x, y = torch.load(kit.sample_path("mlp"))
    path = tmp_path_factory.mktemp("bench") / "narrow.pt"
    torch.save((x.half(), y), path)
    return str(path)


def test_plain(stopwatch, model):
    stopwatch("plain load+run", sys.executable, "-c", PLAIN, *model)


def test_import_torch(stopwatch):
    stopwatch("import torch", sys.executable, "-c", "import torch")


def test_direct_loader(stopwatch, model):
    stopwatch("direct loader", sys.executable, "-c", DIRECT, *model)


def test_check(stopwatch, model):
    stopwatch("check", *DOCTOR, "check", model[0], "--inputs", model[1], "--format", "json", rounds=9)


def test_inspect(stopwatch, model):
    stopwatch("inspect", *DOCTOR, "inspect", model[0], "--format", "json", rounds=9)


def test_compat_of_ten_hosts(stopwatch, model):
    """One package; a matrix with refusals and open answers has an exit status of its own."""
    hosts = [word for name in list(profiles.built_in_profiles())[:10] for word in ("--host", name)]
    stopwatch(
        "compat, ten hosts", *DOCTOR, "compat", model[0], *hosts, "--format", "json", rounds=9, statuses=(0, 1, 3)
    )


@pytest.mark.parametrize("command", ["check", "inspect"])
@pytest.mark.parametrize("name", CUDA)
def test_cuda_package(stopwatch, command, name):
    """A right verdict on a machine without a GPU: for ``check`` a problem, for ``inspect`` one of the file at most."""
    package = Path(__file__).parents[1] / "data" / "cuda" / f"{name}.pt2"
    words = (*DOCTOR, command, str(package), "--format", "json")
    stopwatch(f"{command} cuda {name}", *words, statuses=(1,) if command == "check" else (0, 1))


def test_triton(stopwatch, model, tmp_path):
    (tmp_path / "mlp" / "1").mkdir(parents=True)
    (tmp_path / "mlp" / "config.pbtxt").write_text(MLP)
    shutil.copy(model[0], tmp_path / "mlp" / "1" / "model.pt2")
    stopwatch("triton", *DOCTOR, "triton", str(tmp_path), "--format", "json", rounds=9)


def test_run_healthy(stopwatch, model):
    stopwatch("run, healthy", *DOCTOR, "run", model[0], "--inputs", model[1], "--format", "json")


def test_run_failing(stopwatch, model, narrow):
    command = ("run", model[0], "--inputs", narrow, "--format", "json")
    stopwatch("run, failing, all probes", *DOCTOR, *command, statuses=(1,))


def test_run_crash(stopwatch, kit):
    command = ("run", str(kit.package("external")), "--inputs", str(kit.sample_path("external")), "--format", "json")
    stopwatch("run, crash", *DOCTOR, *command, statuses=(1,))


def test_traced_calls(benchmark, kit, tmp_path):
    """The smallest model there is, three calls of some microseconds: nothing could make the stubs weigh more."""
    command = [sys.executable, "-c", CALLS, str(kit.package("linear")), str(kit.sample_path("linear")), str(tmp_path)]
    environ = {**os.environ, "TMPDIR": str(tmp_path)}

    def once():
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environ).stdout

    MEDIANS["calls, untraced"], MEDIANS["calls, traced"] = map(float, benchmark.pedantic(once, rounds=1).split())


@pytest.mark.parametrize(("name", "script"), [("load and call", UNTRACED), ("load and call, traced", TRACED)])
def test_traced_load(stopwatch, kit, tmp_path, monkeypatch, name, script):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    package, sample = str(kit.package("linear")), str(kit.sample_path("linear"))
    stopwatch(name, sys.executable, "-c", script, package, sample, str(tmp_path))


@pytest.fixture(scope="module")
def huge(model, tmp_path_factory):
    """The package with 2 GB of weights beside it; a sparse file, so that the disk does not notice."""
    path = tmp_path_factory.mktemp("huge") / "model.pt2"
    with zipfile.ZipFile(model[0]) as small:
        members = [(info.filename, small.read(info)) for info in small.infolist()]
    prefix = members[0][0].partition("/")[0]
    with path.open("wb") as raw, zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members:
            archive.writestr(name, data)
        info = zipfile.ZipInfo(f"{prefix}/data/aotinductor/model/weights.wrapper_weights.blob")
        with archive.open(info, "w", force_zip64=True) as member:
            block = bytes(1 << 20)
            for _ in range(2048):
                member.write(block)
    return str(path)


def test_inspect_huge(stopwatch, huge):
    stopwatch("inspect 2 GB", *DOCTOR, "inspect", huge, "--format", "json", rounds=9)


@pytest.mark.parametrize("size", ["small", "2 GB"])
def test_inspect_memory(benchmark, size, model, huge):
    package = model[0] if size == "small" else huge
    script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True);"
    script += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    command = [sys.executable, "-c", script, *DOCTOR, "inspect", package, "--format", "json"]
    done = benchmark.pedantic(lambda: subprocess.run(command, capture_output=True, text=True, check=True), rounds=1)
    MEMORY[f"inspect {size}"] = int(done.stdout)
    assert Path(package).exists()
