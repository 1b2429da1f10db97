"""The size of the input is returned with the result."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package
from torch.export import Dim


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(6, 6)

    def forward(self, x):
        return self.l(x), x.size()


m = M().eval()
x = torch.rand(2, 6)
with torch.no_grad():
    ep = torch.export.export(m, (x,), dynamic_shapes={"x": {0: Dim("bs", max=128)}}, strict=False)
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": (x,), "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    print(aoti_load_package("model.pt2")(x))
