"""Compile the models and save the inputs: ``python -m tests.gpu.build FOLDER DEVICE FAULT...``, the part with torch.

Per model the folder gets ``models/<name>.pt2`` and ``models/<name>.exported.pt2``, per fault ``<fault>/inputs.pt``.
What cannot be compiled is said on stderr and left out; the rest goes on.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import torch

from tests.gpu.faults import FAULTS

ROWS = 100
BATCH = torch.export.Dim("batch", min=2, max=1024)


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(16, 32), torch.nn.Linear(32, 8)

    def forward(self, x):
        return torch.sigmoid(self.two(torch.relu(self.one(x)))) * 2


class Lookup(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(ROWS, 8)

    def forward(self, ids, x):
        return self.table(ids) + x


class Logarithm(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(torch.log(torch.cumsum(x, 0)), 0)


class Cube(torch.nn.Module):
    def forward(self, x):
        return x[:, None, None] * x[None, :, None] + x[None, None, :]


def overrun():
    """A kernel of the user that writes far behind its output: it has no mask."""
    import triton
    import triton.language as tl

    @triton.jit
    def double(x, y, n, FAR: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803 (a constant of Triton)
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + at + FAR, tl.load(x + at, at < n) * 2)

    class Overrun(torch.nn.Module):
        def forward(self, x):
            y = torch.empty_like(x)
            double[(1,)](x, y, x.numel(), FAR=1 << 30, BLOCK=1024)
            return y + 1

    return Overrun()


def _models(device):
    def normal(*shape):
        return torch.randn(*shape, device=device)

    ids = torch.arange(8, device=device)
    lookup, axes = (ids, normal(8, 8)), ({0: BATCH}, {0: BATCH})
    n = torch.export.Dim("n", min=2, max=1 << 20)
    return {
        "mlp": (Mlp, (normal(8, 16),), ({0: BATCH},), {}),
        "lookup": (Lookup, lookup, axes, {}),
        "unchecked": (Lookup, lookup, axes, {"assert_indirect_indexing": False}),
        "logarithm": (Logarithm, (torch.rand(8, 16, device=device) + 1,), None, {}),
        "cube": (Cube, (normal(8),), ({0: n},), {}),
        "overrun": (overrun, (normal(1024),), None, {}),
    }


def compile_model(name, folder, device):
    """The package and the program it was made of. Returns the inputs that it works with."""
    torch.manual_seed(0)
    make, inputs, dynamic, config = _models(device)[name]
    if device == "cpu":
        # There only the suite itself is tried.
        config = {**config, "aot_inductor.compile_wrapper_opt_level": "O0"}
    program = torch.export.export(make().to(device).eval(), inputs, dynamic_shapes=dynamic)
    torch.export.save(program, folder / f"{name}.exported.pt2")
    package = str(folder / f"{name}.pt2")
    with torch.no_grad():
        torch._inductor.aoti_compile_and_package(program, package_path=package, inductor_configs=config)
    return inputs


def good(*inputs):
    return inputs


def on_cpu(*inputs):
    return tuple(one.cpu() for one in inputs)


def doubles(*inputs):
    return tuple(one.double() for one in inputs)


def bad_index(ids, x):
    ids = ids.clone()
    ids[5] = ROWS
    return ids, x


def wild_index(ids, x):
    ids = ids.clone()
    ids[5] = 1 << 40
    return ids, x


def empty(x):
    return (x[:0],)


def transposed(ids, x):
    return ids, x.t().contiguous().t()


def negative(x):
    x = x.clone()
    x[3, 2] = -100
    return (x,)


def huge(x):
    return (torch.ones(200_000, device=x.device),)


SEEDS = {
    seed.__name__: seed for seed in (good, on_cpu, doubles, bad_index, wild_index, empty, transposed, negative, huge)
}


def _try(name, models, device):
    """One model that does not compile must not cost the others."""
    try:
        return compile_model(name, models, device)
    except Exception:
        print(f"{name} was not compiled:\n{traceback.format_exc()}", file=sys.stderr)
        return None


def build(folder, device, names):
    """All models that the named faults need, and the inputs of each fault. Returns the names of the models that failed."""
    wanted = [fault for fault in FAULTS if fault.name in names]
    models = folder / "models"
    models.mkdir(parents=True, exist_ok=True)
    tried = {name: _try(name, models, device) for name in dict.fromkeys(fault.model for fault in wanted)}
    made = {name: inputs for name, inputs in tried.items() if inputs is not None}
    for fault in wanted:
        if fault.model in made:
            (folder / fault.name).mkdir(exist_ok=True)
            torch.save(SEEDS[fault.inputs](*made[fault.model]), folder / fault.name / "inputs.pt")
    return [name for name in tried if name not in made]


if __name__ == "__main__":
    build(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
