import torch


@torch.library.custom_op("trial::shift", mutates_args=())
def shift(x: torch.Tensor, by: float) -> torch.Tensor:
    raise KeyError("trial: no entry")
    return x + by


@shift.register_fake
def _(x, by):
    return torch.empty_like(x)
