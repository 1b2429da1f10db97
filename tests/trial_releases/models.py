"""The models that each release compiles, with calls that are right and calls that are not.

Sizes of one dim differ from those of every other, so that a diagnosis that names a dim can only mean that one. Causes
of a sample are all that would be right to name first; ``None`` stands for a healthy report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import Dim

OPERATOR = """import torch


@torch.library.custom_op("trial::shift", mutates_args=())
def shift(x: torch.Tensor, by: float) -> torch.Tensor:
    {body}
    return x + by


@shift.register_fake
def _(x, by):
    return torch.empty_like(x)
"""
SETUPS = {"setup": OPERATOR.format(body=""), "raises": OPERATOR.format(body='raise KeyError("trial: no entry")')}
HEALTHY = (None,)


@dataclass
class Sample:
    """A call: ``causes`` that may be named first, ``setup`` the file that registers operators, ``model`` its name."""

    causes: tuple[str | None, ...]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    setup: str | None = None
    model: str | None = None


@dataclass
class Model:
    """``how`` is ``package``, ``two`` (a second model beside it), ``outside`` (weights beside the code) or ``library``."""

    module: torch.nn.Module
    samples: dict[str, Sample]
    dims: Any = None
    how: str = "package"
    setup: str | None = None

    @property
    def call(self) -> Sample:
        """What it is exported with."""
        return self.samples["good"]


def right(*args: Any, **kwargs: Any) -> Sample:
    return Sample(causes=HEALTHY, args=args, kwargs=kwargs)


def wrong(cause: str, *args: Any, **kwargs: Any) -> Sample:
    return Sample(causes=(cause,), args=args, kwargs=kwargs)


class Dense(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = torch.nn.Linear(12, 20), torch.nn.LayerNorm(20), torch.nn.Linear(20, 6)

    def forward(self, x):
        return torch.nn.functional.gelu(self.norm(self.first(x))) * 0.5, self.last(self.norm(self.first(x)))


def dense() -> Model:
    x = torch.randn(5, 12)
    samples = {
        "good": right(x),
        "double": wrong("input-dtype", x.double()),
        "flat": wrong("input-rank", x[0]),
        "deep": wrong("input-rank", x[None]),
        "wide": wrong("input-shape", torch.randn(5, 13)),
        "few": wrong("input-shape", torch.randn(3, 12)),
        "nothing": wrong("input-count"),
        "twice": wrong("input-count", x, x),
        # The library of matrix products goes by the strides of the tensor: harmless is right as well.
        "transposed": Sample(causes=("input-stride", None), args=(torch.randn(12, 5).t(),)),
    }
    return Model(Dense(), samples)


class Pairs(torch.nn.Module):
    def forward(self, left, right, longer):
        return torch.sigmoid(left - right) + longer[:-1].unsqueeze(0), (left * right).amax(1)


def pairs() -> Model:
    rows, steps = Dim("rows", min=2, max=48), Dim("steps", min=2, max=24)
    three = (torch.randn(5, 7, 10), torch.randn(5, 7, 10), torch.randn(8, 10))
    samples = {
        "good": right(*three),
        "other": right(torch.randn(11, 3, 10), torch.randn(11, 3, 10), torch.randn(4, 10)),
        "double": wrong("input-dtype", three[0], three[1].double(), three[2]),
        "flat": wrong("input-rank", three[0], torch.randn(5, 70), three[2]),
        "rows": wrong("input-shape-disagree", three[0], torch.randn(4, 7, 10), three[2]),
        "steps": wrong("input-shape-disagree", three[0], torch.randn(5, 6, 10), three[2]),
        "derived": wrong("input-shape-disagree", three[0], three[1], torch.randn(7, 10)),
        "many": wrong("input-range", torch.randn(49, 7, 10), torch.randn(49, 7, 10), three[2]),
        "last": wrong("input-shape", torch.randn(5, 7, 9), torch.randn(5, 7, 9), torch.randn(8, 9)),
        "transposed": wrong("input-stride", three[0], torch.randn(7, 5, 10).transpose(0, 1), three[2]),
    }
    dims = ({0: rows, 1: steps}, {0: rows, 1: steps}, {0: steps + 1})
    return Model(Pairs(), samples, dims=dims)


class Nest(torch.nn.Module):
    def forward(self, x, parts, ends, *, power=2, scale=None):
        y = x * parts["gain"] - parts["bias"] ** power
        return {"inner": y if scale is None else y * scale, "ends": (ends[0] * 3, ends[1] + 1)}


def nest() -> Model:
    x, ends = torch.randn(3, 6), (torch.randn(4), torch.randn(9))
    gain, bias = torch.randn(3, 6), torch.randn(3, 6)
    both = {"gain": gain, "bias": bias}
    samples = {
        "good": right(x, both, ends, power=2, scale=None),
        "half": wrong("input-dtype", x, {"gain": gain.half(), "bias": bias}, ends, power=2, scale=None),
        "key": wrong("input-tree", x, {"gain": gain}, ends, power=2, scale=None),
        "order": wrong("input-order", x, {"bias": bias, "gain": gain}, ends, power=2, scale=None),
        "swapped": wrong("input-order", x, both, ends[::-1], power=2, scale=None),
        "tensor": wrong("input-nontensor", x, both, ends, power=2, scale=gain),
        "changed": wrong("input-constant-changed", x, both, ends, power=3, scale=None),
        "keyword": wrong("input-kwargs", x, both, ends, power=2),
        "renamed": wrong("input-kwargs", x, both, ends, power=2, scales=None),
    }
    # Each may be said in two ways.
    samples["swapped"].causes = ("input-order", "input-shape")
    samples["order"].causes = ("input-order", "input-tree")
    samples["tensor"].causes = ("input-nontensor", "input-count")
    return Model(Nest(), samples)


class Rows(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(90, 14)

    def forward(self, ids, *, weight):
        return torch.tanh(self.table(ids)) * weight


def rows() -> Model:
    ids, weight = torch.arange(0, 60, 10), torch.randn(14)
    beyond, before = ids.clone(), ids.clone()
    beyond[4], before[1] = 90, -91
    samples = {
        "good": right(ids, weight=weight),
        "more": right(torch.arange(40), weight=weight),
        "int32": wrong("input-dtype", ids.int(), weight=weight),
        "float": wrong("input-dtype", ids.float(), weight=weight),
        "beyond": wrong("index-out-of-range", beyond, weight=weight),
        "before": wrong("index-out-of-range", before, weight=weight),
        "square": wrong("input-rank", ids.view(2, 3), weight=weight),
        "weight": wrong("input-shape", ids, weight=torch.randn(7)),
        "missing": wrong("input-kwargs", ids),
    }
    return Model(Rows(), samples, dims={"ids": {0: Dim("n", min=2, max=100)}, "weight": None})


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3, 7))

    def forward(self, x):
        self.seen.add_(x.abs())
        return x / (1 + self.seen)


def counter() -> Model:
    x = torch.randn(3, 7)
    samples = {
        "good": right(x),
        "double": wrong("input-dtype", x.double()),
        "last": wrong("input-shape", torch.randn(3, 8)),
        "transposed": wrong("input-stride", torch.randn(7, 3).t()),
        "nan": wrong("input-nan", torch.full((3, 7), float("nan"))),
    }
    return Model(Counter(), samples)


class Operator(torch.nn.Module):
    def forward(self, x, y):
        return torch.ops.trial.shift(x * y, 0.25).abs()


def operator() -> Model:
    x, y, n = torch.randn(4, 9), torch.randn(4, 9), Dim("n", min=2, max=50)
    samples = {
        "good": right(x, y),
        "double": wrong("input-dtype", x, y.double()),
        "rows": wrong("input-shape-disagree", x, torch.randn(6, 9)),
        "transposed": wrong("input-stride", x, torch.randn(9, 4).t()),
        "raises": wrong("custom-op-exception", x, y),
        "missing": wrong("custom-op-missing", x, y),
    }
    for name, sample in samples.items():
        sample.setup = {"raises": "raises", "missing": None}.get(name, "setup")
    return Model(Operator(), samples, dims={"x": {0: n}, "y": {0: n}}, setup="setup")


class Handed(torch.nn.Module):
    """The operator makes the output itself: before 2.13 a call in which it raised returns, with None."""

    def forward(self, x):
        return torch.ops.trial.shift(x, 0.25)


def handed() -> Model:
    x = torch.randn(3, 8)
    samples = {"good": right(x), "half": wrong("input-dtype", x.half()), "raises": wrong("custom-op-exception", x)}
    for name, sample in samples.items():
        sample.setup = "raises" if name == "raises" else "setup"
    return Model(Handed(), samples, setup="setup")


class Picture(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = torch.nn.Conv2d(3, 5, 3)

    def forward(self, x):
        return self.filter(x).relu().sum((2, 3)), x.amin((2, 3))


def picture() -> Model:
    x = torch.randn(2, 3, 11, 13).bfloat16()
    samples = {
        "good": right(x),
        "float": wrong("input-dtype", x.float()),
        "half": wrong("input-dtype", x.half()),
        "one": wrong("input-rank", x[0]),
        "channels": wrong("input-shape", torch.randn(2, 4, 11, 13).bfloat16()),
        "last": wrong("input-stride", x.to(memory_format=torch.channels_last)),
    }
    return Model(Picture().bfloat16(), samples)


class Select(torch.nn.Module):
    def forward(self, x, index):
        return torch.linalg.qr(x)[1] + torch.kthvalue(x, 3, dim=1)[0].unsqueeze(1), torch.index_select(x, 0, index)


def select() -> Model:
    x, index = torch.randn(8, 8), torch.tensor([1, 7, 0])
    samples = {
        "good": right(x, index),
        "double": wrong("input-dtype", x.double(), index),
        "int32": wrong("input-dtype", x, index.int()),
        "last": wrong("input-shape", torch.randn(8, 9), index),
        "flat": wrong("input-rank", torch.randn(64), index),
        "beyond": wrong("index-out-of-range", x, torch.tensor([1, 8, 0])),
        "swapped": wrong("input-order", index, x),
    }
    return Model(Select(), samples)


class Volume(torch.nn.Module):
    """Operators whose C shims are younger than the others': 2.13 and 2.11."""

    def forward(self, x, grid):
        sampled = torch.nn.functional.grid_sample(x, grid, align_corners=False)
        return sampled, torch.nonzero_static(x[0, 0, 0] > 0, size=5)


def volume() -> Model:
    x, grid = torch.randn(2, 3, 4, 6, 7), torch.randn(2, 5, 8, 9, 3).clamp(-0.9, 0.9)
    samples = {
        "good": right(x, grid),
        "double": wrong("input-dtype", x, grid.double()),
        "flat": wrong("input-rank", x[0], grid),
        "last": wrong("input-shape", x, grid[..., :2].contiguous()),
        "transposed": wrong("input-stride", x.transpose(3, 4).contiguous().transpose(3, 4), grid),
    }
    return Model(Volume(), samples)


class Outside(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(12, 20)

    def forward(self, x):
        return self.layer(x).relu() + 1


def outside() -> Model:
    """aoti_load_package leaves such weights unset: every call needs them loaded first."""
    x = torch.randn(5, 12)
    samples = {"good": wrong("weights-not-loaded", x), "double": wrong("weights-not-loaded", x.double())}
    samples["double"].causes = ("weights-not-loaded", "input-dtype")
    return Model(Outside(), samples, dims={"x": {0: Dim("n", min=2, max=50)}}, how="outside")


def two() -> Model:
    """Beside ``one`` there is ``other``: the same layers for another number of rows."""
    samples = {
        "good": right(torch.randn(5, 12)),
        "other": right(torch.randn(8, 12)),
        "rows": wrong("input-shape", torch.randn(8, 12)),
        "unnamed": wrong("model-name", torch.randn(5, 12)),
    }
    for name, model in {"good": "one", "other": "other", "rows": "one"}.items():
        samples[name].model = model
    return Model(Outside(), samples, how="two")


def library() -> Model:
    x, y, n = torch.randn(5, 12), torch.randn(5, 20), Dim("n", min=2, max=50)

    class Plain(Outside):
        def forward(self, x, y):
            return super().forward(x) * y

    samples = {
        "good": right(x, y),
        "double": wrong("input-dtype", x.double(), y),
        "flat": wrong("input-rank", torch.randn(12), y),
        "rows": wrong("input-shape-disagree", x, torch.randn(4, 20)),
        "last": wrong("input-shape", torch.randn(5, 13), y),
    }
    return Model(Plain(), samples, dims={"x": {0: n}, "y": {0: n}}, how="library")


MODELS: dict[str, Callable[[], Model]] = {
    made.__name__: made
    for made in (dense, pairs, nest, rows, counter, operator, handed, picture, select, volume, outside, two, library)
}
