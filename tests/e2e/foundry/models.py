"""The base models. Each is tiny, each is compiled once per machine, and each carries one property that faults are made of.

A builder is self-contained: its source text is part of the cache key, so that a change recompiles that model alone.
It returns ``(module, args, kwargs, dynamic_shapes)``. torch is imported inside the builders only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

Built = tuple[Any, tuple[Any, ...], dict[str, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModel:
    """A model to compile. ``config`` holds Inductor options beyond the defaults; ``needs`` names the op library.

    ``around`` is in force while it is compiled: a compiler with a fault.
    """

    name: str
    build: Callable[[], Built]
    config: Mapping[str, object] = field(default_factory=dict)
    needs: str | None = None
    around: Callable[[], AbstractContextManager[None]] | None = None


def pointwise() -> Built:
    """x, y: float32 [16, 16], static; the control for silent faults: every element depends on both inputs."""
    import torch

    class Pointwise(torch.nn.Module):
        def forward(self, x, y):
            return torch.clamp(x, -100.0, 100.0) * 2 + y * 3

    return Pointwise(), (torch.randn(16, 16), torch.randn(16, 16)), {}, None


def embedding() -> Built:
    """ids: int64 [8] into a table of 100 rows."""
    import torch

    class Embedding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(100, 16)

        def forward(self, ids):
            return self.table(ids) * 2

    return Embedding(), (torch.tensor([1, 5, 9, 99, 0, 42, 17, 3]),), {}, None


def tokens() -> Built:
    """ids: int64 [64, 32] into a table of 500 rows: enough work that the kernel's loop is given to several threads."""
    import torch

    class Tokens(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(500, 64)

        def forward(self, ids):
            return torch.relu(self.table(ids) * 2)

    return Tokens(), (torch.arange(2048).reshape(64, 32) % 500,), {}, None


def mlp() -> Built:
    """x, y: float32 [B, 1024], one symbol shared by both, 2 <= B <= 64, with a reduction over the static dim."""
    import torch

    class Mlp(torch.nn.Module):
        def forward(self, x, y):
            return torch.relu(x) * y + x.mean(dim=1, keepdim=True)

    batch = torch.export.Dim("batch", min=2, max=64)
    return Mlp(), (torch.randn(8, 1024), torch.randn(8, 1024)), {}, ({0: batch}, {0: batch})


def positions() -> Built:
    """input_ids: int64 [2, S], 2 <= S <= 16; the weights are left to the caller.

    The head has the embedding's weight, and ``position_ids`` is a buffer that the state dict does not hold.
    """
    import torch

    class Positions(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.word = torch.nn.Embedding(50, 8)
            self.pos = torch.nn.Embedding(16, 8)
            self.head = torch.nn.Linear(8, 50, bias=False)
            self.head.weight = self.word.weight
            self.register_buffer("position_ids", torch.arange(16).expand(1, -1).clone(), persistent=False)

        def forward(self, input_ids):
            places = self.position_ids[:, : input_ids.shape[1]]
            return self.head(torch.tanh(self.word(input_ids) + self.pos(places)))

    length = torch.export.Dim("length", min=2, max=16)
    return Positions(), (torch.arange(16).reshape(2, 8) % 50,), {}, ({1: length},)


def bag() -> Built:
    """ids: int64 [N] into a table of 20 rows; offsets: int64 [B] into ids: bags of unequal length."""
    import torch

    class Bag(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.EmbeddingBag(20, 4, mode="sum")

        def forward(self, ids, offsets):
            return torch.relu(self.table(ids, offsets)) * 2

    count, bags = torch.export.Dim("count", min=2, max=64), torch.export.Dim("bags", min=2, max=16)
    args = (torch.tensor([1, 2, 3, 4, 5, 19, 0]), torch.tensor([0, 2, 4]))
    return Bag(), args, {}, ({0: count}, {0: bags})


def gelu() -> Built:
    """x: float32 [4, 16] through two layers with a gelu in between; x is added at the end."""
    import torch

    class Gelu(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(16, 32)
            self.b = torch.nn.Linear(32, 16)

        def forward(self, x):
            return self.b(torch.nn.functional.gelu(self.a(x))) + x

    return Gelu(), (torch.randn(4, 16),), {}, None


def crowd() -> Built:
    """x: float32 [B, 16], 2 <= B <= 64; the rows of the first output influence each other, those of the second do not."""
    import torch

    class Crowd(torch.nn.Module):
        def forward(self, x):
            return torch.softmax(x, dim=0), x * 2

    batch = torch.export.Dim("batch", min=2, max=64)
    return Crowd(), (torch.randn(8, 16),), {}, ({0: batch},)


def kwargs() -> Built:
    """x positional; scale and bias are keyword-only; all float32 [4, 16]."""
    import torch

    class Kwargs(torch.nn.Module):
        def forward(self, x, *, scale, bias):
            return x * scale + bias

    return Kwargs(), (torch.randn(4, 16),), {"scale": torch.randn(4, 16), "bias": torch.randn(4, 16)}, None


def nested() -> Built:
    """x, then a dict with 'a' and 'b', then a list of two: five float32 [4, 16] leaves that none may trade."""
    import torch

    class Nested(torch.nn.Module):
        def forward(self, x, opts, pair):
            return x + opts["a"] * 2, x * opts["b"], pair[0] - opts["a"] * pair[1]

    leaves = [torch.randn(4, 16) for _ in range(5)]
    return Nested(), (leaves[0], {"a": leaves[1], "b": leaves[2]}, [leaves[3], leaves[4]]), {}, None


def gather() -> Built:
    """x: float32 [4, 16]; index: int64 [4, 16] into the 16 columns."""
    import torch

    class Gather(torch.nn.Module):
        def forward(self, x, index):
            return torch.gather(x, 1, index) + 1

    return Gather(), (torch.randn(4, 16), torch.randint(0, 16, (4, 16))), {}, None


def integers() -> Built:
    """base[rows] = values on float32 [100], and rows modulo divisor on int64 [8]."""
    import torch

    class Integers(torch.nn.Module):
        def forward(self, base, rows, values, divisor):
            return torch.index_put(base, (rows,), values) + 1, rows % divisor

    args = (torch.randn(100), torch.arange(8) * 3, torch.randn(8), torch.arange(1, 9))
    return Integers(), args, {}, None


def div8() -> Built:
    """x: float32 [8*d], viewed as rows of eight."""
    import torch

    class Div8(torch.nn.Module):
        def forward(self, x):
            return x.reshape(-1, 8).sum(dim=1)

    d = torch.export.Dim("d", min=2, max=512)
    return Div8(), (torch.randn(32),), {}, ({0: 8 * d},)


def masked() -> Built:
    """x: float32 [4, 16]; mask: bool [4, 16]; fill: float32, 0-d."""
    import torch

    class Masked(torch.nn.Module):
        def forward(self, x, mask, fill):
            return torch.where(mask, x, fill)

    return Masked(), (torch.randn(4, 16), torch.rand(4, 16) > 0.5, torch.tensor(2.0)), {}, None


def complex_product() -> Built:
    """z: complex64 [4, 8], multiplied by itself."""
    import torch

    class ComplexProduct(torch.nn.Module):
        def forward(self, z):
            return torch.view_as_real(z * z)

    return ComplexProduct(), (torch.randn(4, 8, dtype=torch.complex64),), {}, None


def constants() -> Built:
    """x: float32 [4, 16]; k, m and mode are no tensors, so their values are baked in."""
    import torch

    class Constants(torch.nn.Module):
        def forward(self, x, k=3, m=None, mode="mul"):
            y = x * k if mode == "mul" else x + k
            return y if m is None else y + m

    return Constants(), (torch.randn(4, 16), 3, None, "mul"), {}, None


def conv() -> Built:
    """x: float32 [1, 3, 16, 16] in the default memory format, into an extern convolution."""
    import torch

    class Conv(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 8, 3)

        def forward(self, x):
            return self.conv(x).mean(dim=(2, 3))

    return Conv().eval(), (torch.randn(1, 3, 16, 16),), {}, None


def numeric() -> Built:
    """log of x (float32 [4, 16]) makes NaN from negatives; the float16 matmul of h ([4, 64]) can overflow."""
    import torch

    class Numeric(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.rand(64, 8, dtype=torch.float16) + 0.5)

        def forward(self, x, h):
            return torch.log(x) + 1, h @ self.w

    return Numeric(), (torch.rand(4, 16) + 0.5, torch.rand(4, 64).half()), {}, None


def misbehave() -> Built:
    """x: float32 [4, 16] through the C++ operator ``zoo::misbehave``."""
    import torch

    class Misbehave(torch.nn.Module):
        def forward(self, x):
            return torch.ops.zoo.misbehave(x + 1) * 2 + x

    return Misbehave(), (torch.randn(4, 16),), {}, None


def scale() -> Built:
    """x: float32 [16, 16] through the Python operator ``zoopy::scale``."""
    import torch

    class Scale(torch.nn.Module):
        def forward(self, x):
            return torch.ops.zoopy.scale(x + 1, 2.0) * 2 + x

    return Scale(), (torch.randn(16, 16),), {}, None


def two_ops() -> Built:
    """x: float32 [4, 16] through two C++ operators, one of which is called twice."""
    import torch

    class TwoOps(torch.nn.Module):
        def forward(self, x):
            y = torch.ops.zoo.misbehave(torch.ops.zoo.behave(x) + 1)
            return torch.ops.zoo.behave(y * 2) - x

    return TwoOps(), (torch.randn(4, 16),), {}, None


def fine_ops() -> Built:
    """x: float32 [B, 16], 2 <= B <= 64, through operators with all kinds of arguments and results."""
    import torch

    class FineOps(torch.nn.Module):
        def forward(self, x):
            fine = torch.ops.zoofine
            rows = x.shape[0]
            y = fine.mix(x, [x + 1, x * 2], [None, x * 3], None, rows, 0.5, "sum", torch.float16, [rows, 4], True, 2)
            left, right = fine.halves(y)
            first, second = fine.rows(right)
            right = right + 2
            fine.add_one_(right)
            chosen = fine.positive(right.flatten()).sum()
            empty = fine.say(x[:0] * 2, "nothing").sum()
            return left @ right, first - second, chosen + empty, fine.say(x, "all") + fine.noise(x) * 0

    batch = torch.export.Dim("batch", min=2, max=64)
    return FineOps(), (torch.randn(4, 16),), {}, ({0: batch},)


def alias() -> Built:
    """Returns views of its input."""
    import torch

    class Alias(torch.nn.Module):
        def forward(self, x):
            return x.view(-1), x.t(), x + 1

    return Alias(), (torch.randn(4, 16),), {}, None


def inplace() -> Built:
    """Writes to x; y must not share memory with it."""
    import torch

    class Inplace(torch.nn.Module):
        def forward(self, x, y):
            x.add_(y)
            return x * y + y.sum()

    return Inplace(), (torch.randn(4, 16), torch.randn(4, 16)), {}, None


def dropout() -> Built:
    """Exported in training mode: dropout stays on."""
    import torch

    class Dropout(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(x) * 2

    return Dropout().train(), (torch.randn(64, 64),), {}, None


def rand() -> Built:
    """Adds noise, by an operator of PyTorch's own and not by a kernel."""
    import torch

    class Rand(torch.nn.Module):
        def forward(self, x):
            return x + torch.rand(64, 64)

    return Rand(), (torch.randn(64, 64),), {}, None


def batchnorm() -> Built:
    """Exported in training mode: batch statistics, and buffers updated at each call."""
    import torch

    class BatchNorm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(16)

        def forward(self, x):
            return self.norm(x) + 1

    return BatchNorm().train(), (torch.randn(8, 16),), {}, None


def empty() -> Built:
    """Multiplies by memory that nobody wrote."""
    import torch

    class Empty(torch.nn.Module):
        def forward(self, x):
            return x @ torch.empty(64, 64)

    return Empty(), (torch.randn(64, 64),), {}, None


def empty_folded() -> Built:
    """Adds memory that nobody wrote; here the compiler puts NaN for it."""
    import torch

    class EmptyFolded(torch.nn.Module):
        def forward(self, x):
            return x + torch.empty(64, 64)

    return EmptyFolded(), (torch.randn(64, 64),), {}, None


def item() -> Built:
    """n: int64, 0-d, read on the host: 0 <= n <= 16 is asserted."""
    import torch

    class Item(torch.nn.Module):
        def forward(self, x, n):
            k = n.item()
            torch._check(k >= 0)
            torch._check(k <= 16)
            return torch.zeros(k) + x.sum()

    return Item(), (torch.randn(4, 16), torch.tensor(5)), {}, None


def cube() -> Built:
    """x: float32 [n]; the output has n**3 elements."""
    import torch

    class Cube(torch.nn.Module):
        def forward(self, x):
            return x[:, None, None] * x[None, :, None] + x[None, None, :]

    n = torch.export.Dim("n", min=2, max=1 << 20)
    return Cube(), (torch.randn(8),), {}, ({0: n},)


def lookup() -> Built:
    """ids: int64 [n], x: float32 [n, m]; rows of a table with 100 of them."""
    import torch

    class Lookup(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(100, 1)

        def forward(self, ids, x):
            return self.table(ids) * x + 1

    n, m = torch.export.Dim("n", min=2, max=4096), torch.export.Dim("m", min=2, max=64)
    return Lookup(), (torch.arange(8), torch.randn(8, 4)), {}, ({0: n}, {0: n, 1: m})


def total() -> Built:
    """A full reduction, whose per-thread accumulators are sized by the machine that compiles."""
    import torch

    class Total(torch.nn.Module):
        def forward(self, x):
            return (x * 2).sum()

    return Total(), (torch.randn(256, 1024),), {}, None


def linear() -> Built:
    """x: float32 [4, 16] through a linear layer and a table: the model with weights."""
    import torch

    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.l = torch.nn.Linear(16, 12)
            self.w = torch.nn.Parameter(torch.randn(12, 8))

        def forward(self, x):
            return torch.relu(self.l(x)) @ self.w

    return Linear(), (torch.randn(4, 16),), {}, None


def sentence() -> Built:
    """x: float32 [8, 16]; ids: int64 [8], by keyword, into a table of 100 rows inside a module inside a module."""
    import torch

    class Words(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.e = torch.nn.Embedding(100, 16)

        def forward(self, ids):
            return self.e(ids)

    class Sentence(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = Words()

        def forward(self, x, *, ids):
            rows = self.words(ids)
            return torch.softmax(rows * x, -1)

    return Sentence(), (torch.randn(8, 16),), {"ids": torch.tensor([1, 5, 9, 99, 0, 42, 17, 3])}, None


def buffered() -> Built:
    """ids, lengths: int64 [8]; rows of a table of 100 by numbers that other kernels compute from them."""
    import torch

    class Buffered(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.e = torch.nn.Embedding(100, 16)

        def forward(self, ids, lengths):
            doubled = ids * 2 + 1
            return self.e(torch.sort(doubled)[0]), self.e(torch.cumsum(lengths, 0)), self.e(doubled)

    return Buffered(), (torch.arange(8), torch.arange(8)), {}, None


def activation() -> Built:
    """x: float32 [16, 64] through gelu, whose exact form the faulty compiler below takes for the one with tanh."""
    import torch

    class Activation(torch.nn.Module):
        def forward(self, x):
            y = torch.nn.functional.gelu(x * 1.5) + 1
            return y, y.mean(dim=1)

    return Activation(), (torch.randn(16, 64),), {}, None


def rounded() -> Built:
    """x: bfloat16 [16, 64] through a chain that is fused, and so rounds once where eager rounds ten times."""
    import torch

    class Rounded(torch.nn.Module):
        def forward(self, x):
            y = x
            for _ in range(5):
                y = torch.sin(y * 1.7 + 0.3) * 1.3
            return y, (y * x).sum(dim=1)

    return Rounded(), (torch.randn(16, 64).bfloat16(),), {}, None


@contextmanager
def approximate_gelu() -> Iterator[None]:
    """The decomposition of gelu does not look at ``approximate``: an error of 5e-4 at most."""
    import torch
    from torch._inductor import decomposition

    gelu = torch.ops.aten.gelu.default
    before = decomposition.decompositions.get(gelu)

    def with_tanh(x, approximate="none"):
        return x * 0.5 * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

    decomposition.fast_random_decomps.cache_clear()
    decomposition.decompositions[gelu] = with_tanh
    try:
        yield
    finally:
        decomposition.decompositions.pop(gelu)
        if before is not None:
            decomposition.decompositions[gelu] = before
        decomposition.fast_random_decomps.cache_clear()


def rescaled() -> Built:
    """x: float32 [4, 4] through a layer whose weight the model rescales in place; a None beside the result."""
    import torch

    class Rescaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.l = torch.nn.Linear(4, 4)
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x):
            self.l.weight.div_(2)
            self.calls.add_(1)
            return {"y": self.l(x), "cache": None}

    return Rescaled().requires_grad_(False), (torch.randn(4, 4),), {}, None


_OUTSIDE = "aot_inductor.package_constants_on_disk_format"

MODELS: tuple[BaseModel, ...] = (
    BaseModel(name="pointwise", build=pointwise),
    BaseModel(name="embedding", build=embedding),
    BaseModel(name="tokens", build=tokens),
    BaseModel(name="mlp", build=mlp),
    BaseModel(name="crowd", build=crowd),
    BaseModel(name="positions", build=positions, config={"aot_inductor.package_constants_in_so": False}),
    BaseModel(name="bag", build=bag),
    BaseModel(name="gelu", build=gelu),
    BaseModel(name="kwargs", build=kwargs),
    BaseModel(name="nested", build=nested),
    BaseModel(name="linear", build=linear),
    BaseModel(name="masked", build=masked),
    BaseModel(name="misbehave", build=misbehave, needs="cpp"),
    BaseModel(name="scale", build=scale, needs="python"),
    BaseModel(name="twoops", build=two_ops, needs="cpp"),
    BaseModel(name="fineops", build=fine_ops, needs="fine"),
    BaseModel(name="constants", build=constants),
    BaseModel(name="gather", build=gather),
    BaseModel(name="integers", build=integers),
    BaseModel(name="div8", build=div8),
    BaseModel(name="complex", build=complex_product),
    BaseModel(name="conv", build=conv),
    BaseModel(name="numeric", build=numeric),
    BaseModel(name="alias", build=alias),
    BaseModel(name="inplace", build=inplace),
    BaseModel(name="dropout", build=dropout),
    BaseModel(name="rand", build=rand, config={"fallback_random": True}),
    BaseModel(name="batchnorm", build=batchnorm),
    BaseModel(name="empty", build=empty),
    BaseModel(name="emptyfolded", build=empty_folded),
    BaseModel(name="item", build=item),
    BaseModel(name="cube", build=cube),
    BaseModel(name="rescaled", build=rescaled),
    BaseModel(name="sentence", build=sentence, config={"trace.provenance_tracking_level": 1}),
    BaseModel(name="buffered", build=buffered),
    BaseModel(name="lookup", build=lookup),
    BaseModel(name="total", build=total),
    BaseModel(name="wronggelu", build=activation, around=approximate_gelu),
    BaseModel(name="bfloat16", build=rounded),
    BaseModel(name="external", build=linear, config={"aot_inductor.package_constants_in_so": False}),
    BaseModel(
        name="blob", build=linear, config={"aot_inductor.package_constants_in_so": False, _OUTSIDE: "binary_blob"}
    ),
    BaseModel(
        name="pickled", build=linear, config={"aot_inductor.package_constants_in_so": False, _OUTSIDE: "pickle_weights"}
    ),
    BaseModel(name="mmapped", build=linear, config={"aot_inductor.force_mmap_weights": True}),
    BaseModel(name="cpponly", build=linear, config={"aot_inductor.package_cpp_only": True}),
)

BY_NAME: Mapping[str, BaseModel] = {model.name: model for model in MODELS}
