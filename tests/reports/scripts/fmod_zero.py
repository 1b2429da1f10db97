"""Integers modulo zero."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Mod(torch.nn.Module):
    def forward(self, x, y):
        return torch.fmod(x, y)


m = Mod().eval()
call = (torch.arange(16, dtype=torch.int32), torch.tensor([3, 0] * 8, dtype=torch.int32))
with torch.no_grad():
    ep = torch.export.export(m, (torch.arange(16, dtype=torch.int32), torch.full((16,), 3, dtype=torch.int32)))
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    try:
        print("eager  ", m(*call))
    except Exception as error:
        print("eager raises", type(error).__name__, error)
    print("package", aoti_load_package("model.pt2")(*call))
