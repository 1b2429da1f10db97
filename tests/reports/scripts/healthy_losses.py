"""Losses and norms: a package of exactly each of these programs."""

import sys

import torch
from torch import nn
from torch._inductor import aoti_compile_and_package


class Head(nn.Module):
    def __init__(self, loss):
        super().__init__()
        self.l, self.loss = nn.Linear(8, 5), loss

    def forward(self, x):
        return self.loss(self.l(x), x[:, :5])


LOSSES = {
    "cross_entropy": lambda y, t: torch.nn.functional.cross_entropy(y, torch.softmax(t, -1)),
    "cross_entropy_classes": lambda y, t: torch.nn.functional.cross_entropy(y, t.argmax(-1), label_smoothing=0.1),
    "kl_div": lambda y, t: torch.nn.functional.kl_div(
        torch.nn.functional.log_softmax(y, -1), torch.softmax(t, -1), reduction="batchmean"
    ),
    "bce_logits": lambda y, t: torch.nn.functional.binary_cross_entropy_with_logits(y, torch.sigmoid(t)),
    "multi_margin": lambda y, _: torch.nn.functional.multi_margin_loss(y, torch.tensor([0, 1, 2, 3])),
    "logsumexp": lambda y, _: torch.logsumexp(y, -1),
    "entropy": lambda y, _: torch.distributions.Categorical(logits=y, validate_args=False).entropy(),
    "gaussian_nll": lambda y, t: torch.nn.functional.gaussian_nll_loss(y, t, torch.ones(4, 5)),
    "poisson_nll": lambda y, t: torch.nn.functional.poisson_nll_loss(y, t.abs(), full=True),
}

torch.manual_seed(0)
x = torch.randn(4, 8)
for name in sys.argv[1:] or LOSSES:
    with torch.no_grad():
        ep = torch.export.export(Head(LOSSES[name]).eval(), (x,))
        torch.export.save(ep, f"{name}.pt2")
        aoti_compile_and_package(ep, package_path=f"{name}_model.pt2")
