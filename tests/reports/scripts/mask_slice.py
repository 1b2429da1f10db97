"""A mask of the example's length is added; the length is to be dynamic."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.zeros(6, 6))

    def forward(self, q, k):
        return q @ k.transpose(1, 2) + self.mask


m = Attention().eval()
call = None
with torch.no_grad():
    ep = torch.export.export(
        m,
        (torch.randn(1, 6, 8), torch.randn(1, 6, 8)),
        dynamic_shapes={"q": {1: torch.export.Dim("seq_len", max=128)}, "k": {1: torch.export.Dim("seq_len", max=128)}},
    )
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    print(aoti_load_package("model.pt2"))
