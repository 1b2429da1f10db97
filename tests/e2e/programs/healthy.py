"""Exported programs that break no rule. Each function makes one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache, wraps

import torch
from torch.export import Dim, ExportedProgram, export

LIBRARY = torch.library.Library("zooverify", "DEF")
LIBRARY.define("scale(Tensor x, float factor) -> Tensor")
LIBRARY.impl("scale", lambda x, factor: x * factor, "CPU")
torch.library.register_fake("zooverify::scale", lambda x, factor: torch.empty_like(x), lib=LIBRARY)
torch.manual_seed(0)


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)
        self.register_buffer("scale", torch.ones(4))
        self.register_buffer("shift", torch.ones(4), persistent=False)

    def forward(self, x):
        return (self.body(x) * self.scale + self.shift).relu()


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x):
        self.steps.add_(1)
        return x * self.steps


class Two(torch.nn.Module):
    def forward(self, x, y):
        return x + y, x * y


class Options(torch.nn.Module):
    def forward(self, x, *, opts, k=2, mode="mul"):
        return (x * opts["a"] if mode == "mul" else x) + opts["b"][0] * k


class Constant(torch.nn.Module):
    def forward(self, x):
        return x + torch.tensor([1.0, 2.0, 3.0, 4.0])


class Cond(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


class Map(torch.nn.Module):
    def forward(self, xs, y):
        from functorch.experimental.control_flow import map as each

        return each(lambda x, y: x + y, xs, y)


class Custom(torch.nn.Module):
    def forward(self, x):
        return torch.ops.zooverify.scale(x, 2.0) + 1


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(x))


class Size(torch.nn.Module):
    """The bound makes the size that comes from data a good one."""

    def forward(self, x):
        n = x.max().to(torch.int64).item()
        torch._check(n >= 0)
        torch._check(n <= 64)
        return torch.zeros(n) + 1


class Sized(torch.nn.Module):
    def forward(self, x, n):
        return x * n


def _made_once(make: Callable[[], ExportedProgram]) -> Callable[[], ExportedProgram]:
    """Copies of one program: most of those that are broken begin as one of these, and to make it takes long."""
    once = cache(make)

    @wraps(make)
    def copied() -> ExportedProgram:
        return copy.deepcopy(once())

    return copied


@_made_once
def linear() -> ExportedProgram:
    return export(Linear(), (torch.randn(2, 4),))


def dynamic() -> ExportedProgram:
    return export(Two(), (torch.randn(6, 4), torch.randn(6, 4)), dynamic_shapes=[{0: Dim("batch", min=2, max=64)}] * 2)


def derived() -> ExportedProgram:
    class Halves(torch.nn.Module):
        def forward(self, x):
            return x.view(-1, 8).sum(1)

    d = Dim("d", min=1, max=16)
    return export(Halves(), (torch.randn(24),), dynamic_shapes=({0: 8 * d},))


def counter() -> ExportedProgram:
    return export(Counter(), (torch.randn(4),))


@_made_once
def counter_aten() -> ExportedProgram:
    return counter().run_decompositions()


@_made_once
def two() -> ExportedProgram:
    return export(Two(), (torch.randn(4), torch.randn(4))).run_decompositions({})


def kwargs() -> ExportedProgram:
    inputs = {"opts": {"a": torch.randn(4), "b": [torch.randn(4)]}, "k": 3, "mode": "mul"}
    return export(Options(), (torch.randn(4),), inputs)


def constants() -> ExportedProgram:
    return export(Constant(), (torch.randn(4),))


@_made_once
def cond() -> ExportedProgram:
    return export(Cond(), (torch.randn(2, 4),))


def cond_aten() -> ExportedProgram:
    return cond().run_decompositions()


def mapped() -> ExportedProgram:
    return export(Map(), (torch.randn(3, 4), torch.randn(4)))


def custom() -> ExportedProgram:
    return export(Custom(), (torch.randn(4),))


def core_aten() -> ExportedProgram:
    return linear().run_decompositions(torch.export.default_decompositions())


def evaluated() -> ExportedProgram:
    return export(Norm().eval(), (torch.randn(3, 4),))


def preserved() -> ExportedProgram:
    return export(Linear(), (torch.randn(2, 4),), preserve_module_call_signature=("body",))


def bounded() -> ExportedProgram:
    return export(Size(), (torch.tensor([3.0, 5.0]),))


def number_of_a_size() -> ExportedProgram:
    """A number that is the size of a tensor as well: AOTInductor gets it from there."""

    class Shaped(torch.nn.Module):
        def forward(self, x, y, n):
            torch._check(y.shape[0] == n)
            return x * n + y.sum()

    args = (torch.randn(3), torch.randn(5), 5)
    return export(Shaped(), args, dynamic_shapes=({}, {0: Dim.DYNAMIC}, Dim.DYNAMIC))


def complex_numbers() -> ExportedProgram:
    class Spectrum(torch.nn.Module):
        def forward(self, x):
            return torch.fft.rfft(x).abs()

    return export(Spectrum(), (torch.randn(8),))


def lowered() -> ExportedProgram:
    """A part that was handed to a backend, with all that belongs to it."""
    program = two()
    program.graph_module.lowered_module_0 = LoweredBackendModule()
    _read_first(program, "lowered_module_0")
    return program


class LoweredBackendModule(torch.nn.Module):
    """Known to the verifier by this name."""

    def __init__(self, **fields):
        super().__init__()
        values = {"backend_id": "demo", "processed_bytes": b"", "compile_specs": [], "original_module": None}
        for name, value in (values | fields).items():
            setattr(self, name, value)


def _read_first(program: ExportedProgram, name: str) -> None:
    graph = program.graph
    first = next(node for node in graph.nodes if node.op == "call_function")
    with graph.inserting_before(first):
        graph.create_node("get_attr", name)


def copied(program: ExportedProgram) -> ExportedProgram:
    return copy.deepcopy(program)
