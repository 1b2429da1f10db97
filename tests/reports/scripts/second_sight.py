"""Small models of nine reports, three of which are mended in torch 2.13. The argument is one of them."""

import sys

import torch
from torch.nn import functional


class Cholesky(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.cholesky(x)


class Celu(torch.nn.Module):
    def forward(self, x):
        return functional.celu(x, alpha=0.0)


class Nearest(torch.nn.Module):
    def forward(self, x):
        return functional.interpolate(x, scale_factor=1.3, mode="nearest")


class Infinite(torch.nn.Module):
    def forward(self, x):
        return torch.sum(torch.log(torch.zeros(4)), dtype=torch.int32) + x


class ItemInBranch(torch.nn.Module):
    def forward(self, a, b):
        rows = a.nonzero()
        return 2 * torch.cond(rows.size(0) > 3, lambda y: y * b.item(), lambda y: y + 1, (rows,))


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("counter", torch.ones(1))

    def forward(self, x):
        self.counter = self.counter + 1.0
        return x * self.counter


class FlagOfBranch(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("is_full", torch.tensor([False]), persistent=False)

    def forward(self, x):
        out = torch.cond(self.is_full, lambda y: y + 1.0, lambda y: y + 0.0, (x,))
        self.is_full.fill_(True)
        return out


class Rotary(torch.nn.Module):
    def forward(self, q, cos, sin, position):
        cos, sin = cos[position].unsqueeze(1), sin[position].unsqueeze(1)
        half = q.shape[-1] // 2
        return q * cos + torch.cat((-q[..., half:], q[..., :half]), -1) * sin


class Unique(torch.nn.Module):
    def forward(self, x):
        return torch.unique_consecutive(functional.interpolate(x, scale_factor=3, mode="bilinear", align_corners=True))


def main(name):
    from torch._inductor import aoti_compile_and_package

    torch.manual_seed(0)
    rotary = (torch.randn(2, 4, 8, 32), torch.randn(64, 32), torch.randn(64, 32))
    model, example, call = {
        "cholesky": (Cholesky(), (torch.eye(2),), (torch.tensor([[1.0, 2.0], [2.0, 1.0]]),)),
        "celu": (Celu(), (torch.randn(2, 3),), None),
        "nearest": (Nearest(), (torch.tensor([[[[1.0, 2.0]]]], dtype=torch.float64),), None),
        "infinite": (Infinite(), (torch.randn(3),), None),
        "item_in_branch": (ItemInBranch(), (torch.randn(7), torch.tensor([4])), None),
        "counter": (Counter(), (torch.ones(3),), None),
        "flag_of_branch": (FlagOfBranch(), (torch.ones(1),), None),
        "unique": (Unique(), (torch.full((1, 1, 16, 16), 0.1),), None),
        "rotary": (Rotary(), (*(one.bfloat16() for one in rotary), torch.arange(8).expand(2, 8)), None),
    }[name]
    program = torch.export.export(model.eval(), example)
    torch.export.save(program, "exported.pt2")
    torch.save({"args": call or example, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(program, package_path="model.pt2")


if __name__ == "__main__":
    main(sys.argv[1])
