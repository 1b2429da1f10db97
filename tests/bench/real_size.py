"""Generated models of 1.5, 100 and 450 MB: ``python real_size.py CACHE NAME...`` compiles what is missing.

Random weights, few different kernels (compiled in a minute or less), and a shape that is common: a network of
convolutions, or of attention layers, each with a table that integers look up. ``-bare`` is the same model compiled
without its check of those integers, so that one out of range crashes in a kernel instead of being complained about.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

FILES = ("model.pt2", "exported.pt2", "sample.pt", "narrow.pt", "range.pt", "wild.pt")
# Name -> shape, width, blocks, rows of the table.
SIZES = {"1.5 MB": ("conv", 64, 8, 1000), "100 MB": ("conv", 512, 10, 2600), "450 MB": ("attention", 1024, 8, 11_500)}
NAMES = tuple(name + bare for name in SIZES for bare in ("", "-bare"))
VERSION = 1


def folder(cache: Path, name: str) -> Path:
    """Where a compiled model lies, or will."""
    import importlib.metadata

    version = importlib.metadata.version("torch")
    return cache / f"real-size-{VERSION}-{version}-{os.cpu_count()}-{name.replace(' ', '')}"


def missing(cache: Path) -> list[str]:
    """Names of what the cache lacks."""
    return [name for name in NAMES if not folder(cache, name).exists()]


def _convolutions(width, blocks, rows):
    """x: float32 [B, 3, 32, 32], ids: int64 [B, 8]."""
    import torch

    class Convolutions(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(rows, width)
            self.stem = torch.nn.Conv2d(3, width, 4, stride=4)
            self.blocks = torch.nn.ModuleList(torch.nn.Conv2d(width, width, 3, padding=1) for _ in range(blocks))
            self.head = torch.nn.Linear(width, 10)

        def forward(self, x, ids):
            x = self.stem(x) + self.table(ids).mean(dim=1)[:, :, None, None]
            for block in self.blocks:
                x = x + 0.1 * torch.relu(block(x))
            return self.head(x.mean(dim=(2, 3)))

    batch = torch.export.Dim("batch", min=2, max=16)
    sample = (torch.randn(2, 3, 32, 32), torch.arange(16).reshape(2, 8) * 7 % rows)
    return Convolutions(), sample, ({0: batch}, {0: batch})


def _attention(width, blocks, rows):
    """scale: float32 [B, 1, width], ids: int64 [B, 64]."""
    import torch

    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(rows, width)
            options = {"activation": "gelu", "batch_first": True, "dropout": 0.0}
            self.blocks = torch.nn.ModuleList(
                torch.nn.TransformerEncoderLayer(width, 16, 4 * width, **options) for _ in range(blocks)
            )
            self.head = torch.nn.Linear(width, 10)

        def forward(self, x, ids):
            x = x * self.table(ids)
            for block in self.blocks:
                x = block(x)
            return self.head(x[:, 0])

    batch = torch.export.Dim("batch", min=2, max=16)
    sample = (torch.randn(2, 1, width), torch.arange(128).reshape(2, 64) * 7 % rows)
    return Attention(), sample, ({0: batch}, {0: batch})


def _save_samples(room: Path, sample, rows: int) -> None:
    """The healthy sample, and three that each hold one fault that users make."""
    import torch

    x, ids = sample
    beyond, wild = ids.clone(), ids.clone()
    beyond[1, 3], wild[1, 3] = rows + 50, 1 << 50
    faulty = {"narrow": (x.half(), ids), "range": (x, beyond), "wild": (x, wild)}
    for name, tensors in {"sample": sample, **faulty}.items():
        torch.save(tensors, room / f"{name}.pt")


def _build(name: str, target: Path) -> None:
    import torch

    size, _, bare = name.partition("-")
    shape, *numbers = SIZES[size]
    torch.manual_seed(0)
    module, sample, dynamic = (_convolutions if shape == "conv" else _attention)(*numbers)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary, torch.no_grad():
        room = Path(temporary) / target.name
        room.mkdir()
        program = torch.export.export(module.eval(), sample, dynamic_shapes=dynamic)
        torch.export.save(program, room / "exported.pt2")
        _save_samples(room, sample, numbers[-1])
        torch._inductor.aoti_compile_and_package(
            program,
            package_path=str(room / "model.pt2"),
            inductor_configs={"assert_indirect_indexing": False} if bare else {},
        )
        room.rename(target)


def main(arguments: list[str]) -> int:
    """Build what is asked for; one line per model on stderr."""
    cache = Path(arguments[0])
    cache.mkdir(parents=True, exist_ok=True)
    for name in arguments[1:]:
        started = time.monotonic()
        _build(name, folder(cache, name))
        print(f"{name}: {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
