"""First element of a list of detections that may be empty."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package
from torch.export import Dim


class First(torch.nn.Module):
    def forward(self, boxes):
        return boxes[[0]] * 2 + 1


m = First().eval()
ep = torch.export.export(m, (torch.randn(5, 4),), dynamic_shapes=({0: Dim("n", min=0, max=100)},))
torch.export.save(ep, "exported.pt2")
aoti_compile_and_package(ep, package_path="model.pt2")
e = torch.zeros(0, 4)
torch.save({"args": (e,), "kwargs": {}}, "sample.pt")
r = aoti_load_package("model.pt2")
print(r(torch.ones(3, 4)))
try:
    m(e)
except Exception as x:
    print("eager raises", type(x).__name__, x)
print("package", r(e))
