"""The faults, as a table: which model, what is done to its inputs or its package, and which causes are right.

Nothing here imports torch. ``cpu`` holds the causes of the same fault in a package for the CPU, where there is one: the
suite is tried out that way on machines without a GPU.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HEALTHY = "healthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``inputs`` is the name of a function in ``build``; ``edit`` changes a copy of the package.

    ``causes`` are the diagnoses that count as right, ``cpu`` those on the CPU (empty: there is no such fault there).
    """

    name: str
    model: str
    causes: tuple[str, ...]
    inputs: str = "good"
    edit: Callable[[Path, Path], None] | None = None
    cpu: tuple[str, ...] = ()
    reference: bool = False


def members(package: Path) -> dict[str, bytes]:
    """Name to content."""
    with zipfile.ZipFile(package) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(package: Path, parts: dict[str, bytes]) -> None:
    """A package of these members, stored without compression as PyTorch does it."""
    with zipfile.ZipFile(package, "w", zipfile.ZIP_STORED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def other_arch(source: Path, target: Path) -> None:
    """Device code that says it is for compute capability 7.0, under metadata that still says what it was."""
    parts = members(source)
    if not any(name.endswith(".cubin") for name in parts):
        raise ValueError(f"no device code in {source}")
    write(target, {name: for_capability(data, 70) if name.endswith(".cubin") else data for name, data in parts.items()})


def for_capability(cubin: bytes, number: int) -> bytes:
    """The ELF file with another capability in its flags; the code itself stays."""
    if cubin[:4] != b"\x7fELF" or cubin[4] != 2:
        raise ValueError("no 64-bit ELF file")
    (flags,) = struct.unpack_from("<I", cubin, 48)
    # CUDA 13 moved the capability one byte up and gave the variants bits of their own.
    new = flags & ~0xFF08 | number << 8 if cubin[8] >= 8 else flags & ~0x8FF | number
    return cubin[:48] + struct.pack("<I", new) + cubin[52:]


def without_cubin(source: Path, target: Path) -> None:
    """One piece of device code is not there."""
    parts = members(source)
    dropped = next(name for name in parts if name.endswith(".cubin"))
    write(target, {name: data for name, data in parts.items() if name != dropped})


FAULTS: tuple[Fault, ...] = (
    Fault(name="healthy", model="mlp", causes=(HEALTHY,), cpu=(HEALTHY,)),
    Fault(name="cpu_tensor_in", model="mlp", inputs="on_cpu", causes=("input-device",)),
    Fault(name="wrong_dtype", model="mlp", inputs="doubles", causes=("input-dtype",), cpu=("input-dtype",)),
    Fault(
        name="index_with_assert", model="lookup", inputs="bad_index", causes=("cuda-device-assert",),
        cpu=("index-out-of-range",),
    ),
    # On the CPU it reads what lies there, or dies; either is known to the case tables of the CPU.
    Fault(name="index_without_assert", model="unchecked", inputs="wild_index", causes=("cuda-illegal-access",)),
    # An empty grid is not launched by current wrappers; older ones say "invalid argument".
    Fault(
        name="empty_dim", model="mlp", inputs="empty", causes=(HEALTHY, "input-range", "cuda-launch"),
        cpu=(HEALTHY, "input-range"),
    ),
    # Of a model whose first kernel reads the input itself: cuBLAS would go by the strides.
    Fault(name="wrong_stride", model="lookup", inputs="transposed", causes=("input-stride",), cpu=("input-stride",)),
    Fault(name="user_triton_out_of_bounds", model="overrun", causes=("cuda-illegal-access", "user-triton-kernel")),
    Fault(
        name="nan_in_one_kernel", model="logarithm", inputs="negative", causes=("nan-produced",), cpu=("nan-produced",),
        reference=True,
    ),
    Fault(name="out_of_memory", model="cube", inputs="huge", causes=("out-of-memory",), cpu=("out-of-memory",)),
    Fault(name="other_arch", model="mlp", edit=other_arch, causes=("gpu-arch-mismatch",)),
    Fault(name="cubin_missing", model="mlp", edit=without_cubin, causes=("gpu-arch-mismatch",)),
)  # fmt: skip


def chosen(names: tuple[str, ...], device: str) -> tuple[Fault, ...]:
    """The faults with these names (all without any) that exist on ``device``. ``ValueError`` for an unknown name."""
    known = {fault.name for fault in FAULTS}
    if unknown := sorted(set(names) - known):
        raise ValueError(f"no fault is called {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return tuple(fault for fault in FAULTS if (not names or fault.name in names) and (device != "cpu" or fault.cpu))


def right_causes(fault: Fault, device: str) -> tuple[str, ...]:
    """The diagnoses that count as right on ``device``."""
    return fault.cpu if device == "cpu" else fault.causes
