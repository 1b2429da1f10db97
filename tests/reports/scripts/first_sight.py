"""Small models of five reports. The argument is one of them; ``program_NAME`` in this file exports it."""

import sys

import torch
from torch.export import Dim
from torch.nn import functional


class IndexCopy(torch.nn.Module):
    def forward(self, x, index, source):
        return torch.index_copy(x, 0, index, source)


class PoolOfIntegers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = torch.nn.AdaptiveMaxPool1d(1)

    def forward(self, x):
        return self.pool(torch.argsort(x, dim=-1))


class Condition(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.cond(torch.arctan(x))


class MaskedRow(torch.nn.Module):
    def forward(self, x, mask):
        return functional.softmax(x.masked_fill(mask, float("-inf")), -1)


class Reshape(torch.nn.Module):
    def forward(self, x, y):
        return x + y.reshape(x.shape)


class Branch(torch.nn.Module):
    def forward(self, x):
        wide = torch.tan(x).expand(31, 51, 1)
        return torch.sin(wide * 0.5 if wide.mean().item() > 0.5 else wide * 1.5)


def program_reshape():
    shapes = ({}, {0: Dim("a"), 1: Dim("b")})
    return torch.export.export(Reshape(), (torch.randn(4, 4), torch.randn(2, 8)), dynamic_shapes=shapes)


def program_branch():
    return torch.export.export(Branch(), (torch.rand(31, 51, 1).half(),))


def mask(*rows):
    return torch.tensor([[row] * 4 for row in rows])


def main(name):
    from torch._inductor import aoti_compile_and_package

    torch.manual_seed(0)
    rows = torch.zeros(4, 3), torch.ones(1, 3)
    model, example, call = {
        "index_copy": (IndexCopy(), (rows[0], torch.tensor([1]), rows[1]), (rows[0], torch.tensor([-1]), rows[1])),
        "pool": (PoolOfIntegers(), (torch.randn(2, 3, 8),), None),
        "condition": (Condition(), (torch.ones(2, 2),), None),
        "masked_row": (MaskedRow(), (torch.randn(2, 4), mask(False, False)), (torch.randn(2, 4), mask(True, False))),
    }[name]
    program = torch.export.export(model.eval(), example)
    torch.export.save(program, "exported.pt2")
    torch.save({"args": call or example, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(program, package_path="model.pt2")


if __name__ == "__main__":
    known = {"reshape": program_reshape, "branch": program_branch}
    known.get(sys.argv[1], lambda: main(sys.argv[1]))()
