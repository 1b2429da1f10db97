"""Models that break in one stage on the way to a package; run with a folder, it saves the program of each there."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch

X = torch.linspace(-1, 1, 64).reshape(4, 16)


class Chosen(torch.nn.Module):
    """A Python value chooses the branch."""

    def __init__(self, *, rectified: bool = False, weight: float = 0.5) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.full((16,), weight))
        self.rectified = rectified

    def forward(self, x):
        y = x * self.scale
        y = torch.relu(y) if self.rectified else torch.tanh(y)  # the branch
        return torch.nn.functional.gelu(y + 0.25)


class Refusing(Chosen):
    def forward(self, x):
        return x @ self.scale.reshape(4, 4)  # refused


class Exporting(Chosen):
    def forward(self, x):
        return x + 1 if not torch.compiler.is_exporting() else x * 2


class Counting(torch.nn.Module):
    """It writes to its own buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count.add_(1)
        return x * self.count


class Resizing(torch.nn.Module):
    """Operators whose decompositions need other parts of the compiler."""

    def forward(self, x):
        image = x.reshape(1, 1, 8, 8)
        return torch.nn.functional.interpolate(image, size=(5, 7), mode="bicubic"), torch.nn.functional.max_pool2d(
            image, 2
        )


class Dropping(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5, training=True)


class Dying(torch.nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGSEGV)
        return x


def dying():
    return Dying(), (X,)


def counting():
    return Counting(), (X,)


def resizing():
    return Resizing(), (X,)


def dropping():
    return Dropping(), (X,)


def healthy():
    return Chosen(), (X,)


def rectified():
    return Chosen(rectified=True), (X,)


def refusing():
    return Refusing(), (X,)


def exporting():
    return Exporting(), (X,)


def other_weights():
    """As an initialisation at random would be."""
    return Chosen(weight=2.0), (X,)


def without_example():
    return Chosen()


def called(x):
    return Chosen()(x)


def program():
    return torch.export.export(Chosen(), (X,))


# The faulty compiler: gelu is computed as its quick approximation.
def wrong(x, approximate="none"):
    return x * torch.sigmoid(1.702 * x)


if __name__ == "__main__":
    for name in ("healthy", "exporting", "counting", "resizing", "dropping"):
        model, args = globals()[name]()
        torch.export.save(torch.export.export(model, args), Path(sys.argv[1], f"{name}.pt2"))
    torch.save((X,), Path(sys.argv[1], "sample.pt"))
