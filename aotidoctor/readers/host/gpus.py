"""NVIDIA GPUs and driver, from /proc and the name of libcuda: no nvidia-smi, no CUDA call."""

from __future__ import annotations

import re
from pathlib import Path

from aotidoctor.model.host import Gpu
from aotidoctor.readers.host.proc import text_of_file

_DRIVER = r"Kernel Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)"
_LIBCUDA = r"libcuda\.so\.(\d{3,}\.\d+(?:\.\d+)?)$"

# Marketing names to compute capability, most specific first; a name that is not here leaves it unknown. Plain strings:
# most hosts have no GPU, and compiling all this would cost every start milliseconds.
_CAPABILITIES = (
    (r"\b(B300|GB300)\b", "103"),
    (r"\b(B100|B200|GB200)\b", "100"),
    (r"\bRTX (PRO \d+ Blackwell|50\d0)|RTX PRO", "120"),
    (r"\b(H100|H200|H800|H20|GH200)\b", "90"),
    (r"\b(L4|L40S?|L20)\b|RTX 40\d0|RTX (2000|4000|4500|5000|6000) Ada", "89"),
    (r"\bOrin\b", "87"),
    (r"\b(A2|A10G?|A16|A40)\b|RTX 30\d0|RTX A\d000", "86"),
    (r"\b(A30|A100|A800)\b", "80"),
    (r"\bT4G?\b|RTX 20\d0|GTX 16\d0|Quadro RTX|TITAN RTX", "75"),
    (r"\bXavier\b", "72"),
    (r"\bV100S?\b|TITAN V\b|GV100", "70"),
    (r"\b(P4|P40)\b|GTX 10\d0|TITAN Xp?\b", "61"),
    (r"\bP100\b|GP100", "60"),
)


def read_gpus(root: str = "/") -> tuple[Gpu, ...]:
    """One ``Gpu`` per folder of /proc/driver/nvidia/gpus, in bus order, as CUDA_DEVICE_ORDER=PCI_BUS_ID counts them."""
    folder = Path(root, "proc/driver/nvidia/gpus")
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return ()
    return tuple(_gpu(index, entry) for index, entry in enumerate(entries))


def _gpu(index: int, folder: Path) -> Gpu:
    name = "unknown"
    for line in text_of_file(folder / "information").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "Model" and value.strip():
            name = value.strip()
    return Gpu(index=index, name=name, compute_capability=capability_of(name))


def capability_of(name: str) -> str | None:
    """Compute capability (``90``) of a GPU by its marketing name, None when the name is not known."""
    return next((capability for pattern, capability in _CAPABILITIES if re.search(pattern, name)), None)


def read_driver(libcuda: str | None, root: str = "/") -> str | None:
    """Driver version (``550.54.15``): of libcuda where its file name tells, else of the kernel module.

    The library decides which CUDA it can serve: a forward-compatibility package is newer than the kernel module.
    """
    if libcuda:
        match = re.search(_LIBCUDA, str(Path(libcuda).resolve()))
        if match:
            return match[1]
    match = re.search(_DRIVER, text_of_file(Path(root, "proc/driver/nvidia/version")))
    return match[1] if match else None
