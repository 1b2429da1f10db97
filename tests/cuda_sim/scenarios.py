"""What goes wrong on the simulated machines: one table, for the tests and for what is recorded."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "tests" / "data" / "cuda"
RECORDED = ROOT / "tests" / "data" / "cuda_sim"
# The program that the packages called mlp were made of, with the weights that they hold; see make_program.py.
PROGRAM = RECORDED / "mlp-exported.pt2"
NEW_DRIVER, OLD_DRIVER = "999.0", "525.60.13"
RELU = "triton_poi_fused_addmm_relu_0"
SIGMOID = "triton_poi_fused_addmm_mul_sigmoid_1"


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

    ``inputs`` names the file with the inputs (see make_inputs.py), ``tools`` what is installed of NVIDIA's, ``toolkit``
    says that a program can be compiled there. ``options`` are fields of ``Options``.
    """

    package: str
    inputs: str
    gpu: Gpu = field(default_factory=Gpu)
    knobs: dict[str, str] = field(default_factory=dict)
    without: str | None = None
    tools: tuple[str, ...] = ()
    toolkit: bool = False
    options: dict[str, object] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """The options as the command line has them."""
        return [
            word
            for name, value in self.options.items()
            for word in (f"--{name}", ",".join(value) if isinstance(value, tuple) else str(value))
        ]

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
    "cpu_tensor_in_mm": Scenario(package="mlp", inputs="mlp-cpu"),
    "other_arch": Scenario(package="mlp", inputs="mlp", gpu=Gpu(capability="8.0", name="simulated CUDA A100")),
    "other_arch_unknown_gpu": Scenario(package="mlp", inputs="mlp", gpu=Gpu(capability="8.0", name="simulated CUDA")),
    "missing_cubin": Scenario(package="mlp", inputs="mlp", without=".cubin"),
    "no_device": Scenario(package="mlp", inputs="mlp-cpu", gpu=Gpu(devices=0)),
    "old_driver": Scenario(package="mlp", inputs="mlp", gpu=Gpu(driver=OLD_DRIVER, cuda=12000)),
    "out_of_memory": Scenario(package="mlp", inputs="mlp", gpu=Gpu(memory=24 << 20)),
    "refused_launch": Scenario(package="two_kernels", inputs="two_kernels", knobs={"REFUSE": "triton_per_fused:1"}),
    # Two tools of NVIDIA's, simulated as well: the kernel is one of a library, which the launch trace cannot see into.
    "fault_in_library": Scenario(
        package="mlp", inputs="mlp", knobs={"FAULT": "cublasSgemm:700"}, tools=("cuda-gdb", "compute-sanitizer")
    ),
    "no_core_dump": Scenario(
        package="mlp", inputs="mlp", knobs={"FAULT": "cublasSgemm:700", "NO_CORE": "1"}, tools=("cuda-gdb",)
    ),
    "library_refuses": Scenario(package="mlp", inputs="mlp", knobs={"REFUSE": "cublasSgemm:1"}),
    # An earlier launch must still be under way for it to show.
    "race": Scenario(package="mlp", inputs="mlp", knobs={"FAULT": f"{RELU}:700", "ONLY": "overlapping"}),
    "race_with_default_stream": Scenario(
        package="mlp", inputs="mlp", knobs={"FAULT": f"{RELU}:700", "ONLY": "default-stream"}
    ),
    "race_within_kernel": Scenario(
        package="mlp",
        inputs="mlp",
        knobs={"FAULT": f"{RELU}:700", "ONLY": "overlapping", "HAZARD": RELU},
        tools=("compute-sanitizer",),
    ),
    # One kernel writes beyond its buffer, into what the allocator left there; a later one stumbles over it.
    "overrun": Scenario(package="mlp", inputs="mlp", knobs={"FAULT": f"{SIGMOID}:700", "REACH": f"{RELU}:65536"}),
    "overrun_sanitized": Scenario(
        package="mlp",
        inputs="mlp",
        knobs={"FAULT": f"{SIGMOID}:700", "REACH": f"{RELU}:65536"},
        tools=("compute-sanitizer",),
    ),
    "capture": Scenario(package="mlp", inputs="mlp", knobs={"REFUSE": f"{RELU}:900"}),
    "capture_variant": Scenario(
        package="mlp",
        inputs="mlp",
        # Two calls warm up; the third is captured.
        knobs={"REFUSE": f"{RELU}:900:3"},
        options={"rungs": ("plain_run", "cuda_variants")},
    ),
    "device_index": Scenario(package="mlp", inputs="mlp", options={"device": "cuda:3"}),
    "invalid_argument_at_load": Scenario(package="mlp", inputs="mlp", knobs={"REFUSE": "cudaMemcpy$:1"}),
    # Compiled again with the value printer. While it compiles, the kernels are tried on the GPU: there they work.
    "printed_launches": Scenario(
        package="mlp",
        inputs="mlp",
        knobs={"FAULT": f"{RELU}:700", "ONLY": "file"},
        toolkit=True,
        options={"reference": str(PROGRAM), "rungs": ("plain_run", "printed_launches")},
    ),
    "weights_not_loaded": Scenario(package="mlp_noweights", inputs="mlp"),
}
