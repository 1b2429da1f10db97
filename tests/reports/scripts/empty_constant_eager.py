"""The model of empty_constant with the weights of its file, called eagerly."""

from pathlib import Path

import torch


def model(x):
    weights = torch.load(Path("weights.pt").resolve())
    return torch.nn.functional.linear(x, weights["l.weight"], weights["l.bias"]).flatten()
