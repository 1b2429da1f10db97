"""Losses, activations and norms, a dozen to a program, and a package of exactly each of these programs."""

import sys

import torch
from torch._inductor import aoti_compile_and_package
from torch.nn import functional

WEIGHT, CLASSES = torch.linspace(0.5, 1.5, 5), torch.tensor([0, 1, 2, 4])
PROGRAMS = {
    "losses_of_numbers": (
        functional.mse_loss,
        functional.l1_loss,
        lambda y, t: functional.smooth_l1_loss(y, t, beta=0.7),
        lambda y, t: functional.huber_loss(y, t, delta=0.3),
        lambda y, t: functional.binary_cross_entropy(torch.sigmoid(y), torch.sigmoid(t)),
        lambda y, t: functional.poisson_nll_loss(y, t.abs(), log_input=False, full=True),
        lambda y, t: functional.hinge_embedding_loss(y, t.sign()),
        lambda y, t: functional.margin_ranking_loss(y, t, t.sign(), margin=0.2),
        lambda y, t: functional.soft_margin_loss(y, t.sign()),
        lambda y, t: functional.cosine_embedding_loss(y, t, torch.tensor([1.0, -1.0, 1.0, -1.0]), margin=0.1),
        lambda y, t: functional.triplet_margin_loss(y, t, y.flip(0)),
        lambda y, t: functional.kl_div(
            functional.log_softmax(y, 1), functional.log_softmax(t, 1), log_target=True, reduction="sum"
        ),
    ),
    "losses_of_classes": (
        lambda y, _: functional.nll_loss(functional.log_softmax(y, 1), CLASSES, weight=WEIGHT, ignore_index=2),
        lambda y, t: functional.cross_entropy(y, CLASSES, weight=WEIGHT, reduction="none"),
        lambda y, t: functional.multilabel_soft_margin_loss(y, torch.sigmoid(t)),
        lambda y, t: functional.cross_entropy(y, torch.softmax(t, -1)),
        lambda y, t: functional.cross_entropy(y, t.argmax(-1), label_smoothing=0.1),
        lambda y, t: functional.kl_div(functional.log_softmax(y, -1), torch.softmax(t, -1), reduction="batchmean"),
        lambda y, t: functional.binary_cross_entropy_with_logits(y, torch.sigmoid(t)),
        lambda y, _: functional.multi_margin_loss(y, torch.tensor([0, 1, 2, 3])),
        lambda y, _: torch.logsumexp(y, -1),
        lambda y, _: torch.distributions.Categorical(logits=y, validate_args=False).entropy(),
        lambda y, t: functional.poisson_nll_loss(y, t.abs(), full=True),
    ),
    "activations_and_norms": (
        lambda y, _: functional.gelu(y),
        lambda y, _: functional.gelu(y, approximate="tanh"),
        lambda y, _: functional.silu(y),
        lambda y, _: functional.hardswish(y),
        lambda y, _: functional.hardsigmoid(y),
        lambda y, _: functional.hardtanh(y, -0.5, 0.7),
        lambda y, _: functional.elu(y),
        lambda y, _: functional.selu(y),
        lambda y, _: functional.celu(y, alpha=0.8),
        lambda y, _: functional.softplus(y, beta=2, threshold=4),
        lambda y, _: functional.mish(y),
        lambda y, _: functional.logsigmoid(y),
        lambda y, _: functional.layer_norm(y, (5,), WEIGHT, WEIGHT),
        lambda y, _: functional.rms_norm(y, (5,), WEIGHT, eps=1e-5),
        lambda y, _: functional.local_response_norm(y[:, :, None], 2).squeeze(2),
    ),
}


class Program(torch.nn.Module):
    def __init__(self, functions):
        super().__init__()
        self.l, self.functions = torch.nn.Linear(8, 5), functions

    def forward(self, x):
        y, t = self.l(x), x[:, 3:]
        return [one(y, t) for one in self.functions]


torch.manual_seed(0)
x = torch.randn(4, 8)
for name in sys.argv[1:] or PROGRAMS:
    with torch.no_grad():
        ep = torch.export.export(Program(PROGRAMS[name]).eval(), (x,))
        torch.export.save(ep, f"{name}.pt2")
        aoti_compile_and_package(ep, package_path=f"{name}_model.pt2")
