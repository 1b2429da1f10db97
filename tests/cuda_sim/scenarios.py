"""What goes wrong on the simulated machines: one table, for the tests and for what is recorded."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "tests" / "data" / "cuda"
RECORDED = ROOT / "tests" / "data" / "cuda_sim"
NEW_DRIVER, OLD_DRIVER = "999.0", "525.60.13"
RELU = "triton_poi_fused_addmm_relu_0"


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """The simulated machine: ``capability`` of its GPU, the name that /proc tells, CUDA version of the driver."""

    capability: str = "9.0"
    name: str = "simulated CUDA H100"
    devices: int = 1
    driver: str = NEW_DRIVER
    cuda: int = 13000
    memory: int = 8 << 30


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """``package`` on ``gpu`` with the driver's ``knobs``; ``without`` is the ending of a member that is taken out.

    ``inputs`` names the file with the inputs (see make_inputs.py).
    """

    package: str
    inputs: str
    gpu: Gpu = field(default_factory=Gpu)
    knobs: dict[str, str] = field(default_factory=dict)
    without: str | None = None

    def file(self, room: Path) -> Path:
        """The package; a copy in ``room`` where it is changed."""
        source = PACKAGES / f"{self.package}.pt2"
        if self.without is None:
            return source
        copy_without(source, room / source.name, self.without)
        return room / source.name


def copy_without(source: Path, target: Path, suffix: str) -> None:
    """Copy a package without its first member that ends in ``suffix``."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        gone = next(name for name in old.namelist() if name.endswith(suffix))
        for name in old.namelist():
            if name != gone:
                new.writestr(name, old.read(name))


SCENARIOS = {
    "healthy": Scenario(package="mlp", inputs="mlp"),
    "illegal_access": Scenario(package="mlp", inputs="mlp", knobs={"FAULT": f"{RELU}:700"}),
    "illegal_access_aborts": Scenario(
        package="mlp", inputs="mlp", knobs={"FAULT": f"{RELU}:700", "STICKY_GETDEVICE": "1"}
    ),
    "illegal_access_in_cublas": Scenario(
        package="mlp", inputs="mlp", knobs={"FAULT": f"{RELU}:700", "SURFACE": "launch"}
    ),
    "illegal_access_printed": Scenario(package="mlp_print3", inputs="mlp", knobs={"FAULT": f"{RELU}:700"}),
    "device_assert": Scenario(
        package="gpu_const", inputs="gpu_const", knobs={"FAULT": "triton_poi_fused_add_index_0:710"}
    ),
    "misaligned": Scenario(package="two_kernels", inputs="two_kernels", knobs={"FAULT": "triton_per_fused:716"}),
    "cpu_tensor": Scenario(package="two_kernels", inputs="two_kernels-cpu"),
    "other_arch": Scenario(package="mlp", inputs="mlp", gpu=Gpu(capability="8.0", name="simulated CUDA A100")),
    "other_arch_unknown_gpu": Scenario(package="mlp", inputs="mlp", gpu=Gpu(capability="8.0", name="simulated CUDA")),
    "missing_cubin": Scenario(package="mlp", inputs="mlp", without=".cubin"),
    "no_device": Scenario(package="mlp", inputs="mlp-cpu", gpu=Gpu(devices=0)),
    "old_driver": Scenario(package="mlp", inputs="mlp", gpu=Gpu(driver=OLD_DRIVER, cuda=12000)),
    "out_of_memory": Scenario(package="mlp", inputs="mlp", gpu=Gpu(memory=24 << 20)),
    "refused_launch": Scenario(package="two_kernels", inputs="two_kernels", knobs={"REFUSE": "triton_per_fused:1"}),
    "weights_not_loaded": Scenario(package="mlp_noweights", inputs="mlp"),
}
