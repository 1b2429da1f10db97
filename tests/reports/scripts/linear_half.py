"""float16 for a layer of float32: eager refuses it."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(16, 16)

    def forward(self, x):
        return self.l(x)


m = Head().eval()
call = (torch.randn(2, 16, dtype=torch.float16),)
with torch.no_grad():
    ep = torch.export.export(m, (torch.randn(2, 16),))
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    try:
        print("eager  ", m(*call))
    except Exception as error:
        print("eager raises", type(error).__name__, error)
    print("package", aoti_load_package("model.pt2")(*call))
