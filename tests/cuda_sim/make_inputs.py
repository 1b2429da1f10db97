"""Write the inputs of the test packages to the folder given: run with the CUDA torch on the simulated machine."""

import sys
from pathlib import Path

import torch


def row_major(*shape):
    count = torch.Size(shape).numel()
    return torch.arange(count, dtype=torch.float32).reshape(shape) / count


CALLS = {
    "mlp": [row_major(5, 16)],
    "gpu_const": [torch.tensor([1, 2, 3]), row_major(3, 8)],
    "two_kernels": [row_major(5, 64)],
}

if __name__ == "__main__":
    room = Path(sys.argv[1])
    for name, tensors in CALLS.items():
        torch.save(tensors, room / f"{name}-cpu.pt")
        torch.save([tensor.cuda() for tensor in tensors], room / f"{name}.pt")
