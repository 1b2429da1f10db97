"""Programs that a package of the foundry may or may not come from: ``origins.py FOLDER CACHE`` writes them all."""

from __future__ import annotations

import io
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch
from foundry import edit
from foundry.models import BY_NAME
from torch._export.serde.serialize import serialize
from torch.export import Dim, export


def linear(seed=0, *, table="w", scale=1.0):
    torch.manual_seed(seed)

    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.l = torch.nn.Linear(16, 12)
            self.register_parameter(table, torch.nn.Parameter(torch.randn(12, 8)))

        def forward(self, x):
            return torch.relu(self.l(x)) @ getattr(self, table) * scale

    return export(Linear(), (torch.randn(4, 16),))


def mlp(*, low=2, high=64, dim=1024, dtype=torch.float32, static=False, double=False):
    class Mlp(torch.nn.Module):
        def forward(self, x, y):
            out = torch.relu(x) * y + x.mean(dim=1, keepdim=True)
            return (out, out + 1) if double else out

    args = torch.randn(8, dim, dtype=dtype), torch.randn(8, dim, dtype=dtype)
    batch = Dim("batch", min=low, max=high)
    return export(Mlp(), args, dynamic_shapes=None if static else ({0: batch}, {0: batch}))


def mlp_apart():
    class Mlp(torch.nn.Module):
        def forward(self, x, y):
            return torch.relu(x) * y.sum() + x.mean(dim=1, keepdim=True)

    one, other = Dim("one", min=2, max=64), Dim("other", min=2, max=64)
    return export(Mlp(), (torch.randn(8, 1024), torch.randn(9, 1024)), dynamic_shapes=({0: one}, {0: other}))


def nested(*, keys=("a", "b")):
    module, (x, opts, pair), _, _ = BY_NAME["nested"].build()
    return export(module, (x, {key: opts[key] for key in keys}, pair))


def kwargs():
    class Kwargs(torch.nn.Module):
        def forward(self, x, *, scale, offset):
            return x * scale + offset

    return export(Kwargs(), (torch.randn(4, 16),), {"scale": torch.randn(4, 16), "offset": torch.randn(4, 16)})


def instead_of_gelu(function):
    """The model ``gelu`` with its weights and another function in the middle."""

    class Other(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(16, 32)
            self.b = torch.nn.Linear(32, 16)

        def forward(self, x):
            return self.b(function(self.a(x))) + x

    torch.manual_seed(0)
    return export(Other(), (torch.randn(4, 16),))


def gelu(x):
    return torch.nn.functional.gelu(x)


def sines():
    """What ``pointwise`` is called with and gives, and not what it does."""

    class Sines(torch.nn.Module):
        def forward(self, x, y):
            return torch.sin(x).exp() / torch.tanh(y)

    return export(Sines(), (torch.randn(16, 16), torch.randn(16, 16)))


PROGRAMS = {
    "other_checkpoint": lambda: linear(1),
    "renamed_parameter": lambda: linear(table="table"),
    "mlp_again": mlp,
    "mlp_narrower": lambda: mlp(high=32),
    "mlp_wider": lambda: mlp(high=128),
    "mlp_dims": lambda: mlp(dim=512),
    "mlp_dtype": lambda: mlp(dtype=torch.float64),
    "mlp_static": lambda: mlp(static=True),
    "mlp_two_outputs": lambda: mlp(double=True),
    "mlp_apart": mlp_apart,
    "nested_again": nested,
    "nested_other_order": lambda: nested(keys=("b", "a")),
    "other_keyword": kwargs,
    "sines": sines,
    "relu_for_gelu": lambda: instead_of_gelu(torch.relu),
    "silu_for_gelu": lambda: instead_of_gelu(torch.nn.functional.silu),
    "gelu_by_tanh": lambda: instead_of_gelu(lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
    "gelu_and_sine": lambda: instead_of_gelu(lambda x: gelu(x).sin()),
    # What does not depend on an input need not be left of it.
    "gelu_and_sine_of_nothing": lambda: instead_of_gelu(lambda x: gelu(x) + torch.ones(1).sin()),
}


def flip(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


def older(program, folder: Path, name: str) -> None:
    """The same program as torch 2.7 and 2.6 wrote it: weights in one pickle."""
    made = serialize(program)
    parts = (made.exported_program, made.state_dict, made.constants, made.example_inputs)
    pickled = ("models/model.json", "data/weights/model.pt", "data/constants/model.pt", "data/sample_inputs/model.pt")
    legacy = tuple(f"serialized_{what}" for what in ("exported_program.json", "state_dict.pt", "constants.pt", "example_inputs.pt"))  # fmt: skip
    edit.write(folder / f"{name}_pickled.pt2", [(f"e/{path}", data) for path, data in zip(pickled, parts, strict=True)])
    edit.write(folder / f"{name}_legacy.pt2", [*zip(legacy, parts, strict=True), ("version", b"8.2")])


def main(folder: Path, linear_program: Path) -> None:
    for name, make in PROGRAMS.items():
        torch.export.save(make(), folder / f"{name}.pt2")
    members = edit.read(linear_program)
    weight = edit.find(members, "weights/weight_1")[1]
    one_bit = edit.replace(members, "weights/weight_1", lambda data: flip(data, 103, 6))
    edit.write(folder / "one_bit.pt2", one_bit)
    other = torch.frombuffer(bytearray(weight), dtype=torch.float32) * 1.25 + 0.5
    edit.write(folder / "one_weight.pt2", edit.replace(members, "weights/weight_1", lambda _: other.numpy().tobytes()))
    edit.write(folder / "no_bytes.pt2", edit.drop(members, "weights/weight_1"))
    older(torch.export.load(io.BytesIO(linear_program.read_bytes())), folder, "linear")
    older(linear(1), folder, "other_checkpoint")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
