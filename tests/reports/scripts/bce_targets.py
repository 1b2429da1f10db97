"""Targets outside of [0, 1]: eager refuses them."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Loss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(4, 4)

    def forward(self, x, target):
        return torch.nn.functional.binary_cross_entropy(torch.sigmoid(self.l(x)), target)


torch.manual_seed(0)
m = Loss().eval()
x = torch.randn(4, 4)
with torch.no_grad():
    ep = torch.export.export(m, (x, torch.rand(4, 4)))
    torch.export.save(ep, "exported.pt2")
    aoti_compile_and_package(ep, package_path="model.pt2")
    call = (x, torch.full((4, 4), 1.5))
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    try:
        print(m(*call))
    except Exception as e:
        print("eager raises", type(e).__name__, e)
    print("package", aoti_load_package("model.pt2")(*call))
