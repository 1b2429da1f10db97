"""index_add with an index of -1: eager refuses it."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Pool(torch.nn.Module):
    def forward(self, x, index, values):
        return torch.index_add(x, 0, index, values).clamp_max(1.0)


m = Pool().eval()
call = (torch.zeros(4, 3), torch.tensor([0, -1]), torch.ones(2, 3))
with torch.no_grad():
    ep = torch.export.export(m, (torch.zeros(4, 3), torch.tensor([0, 1]), torch.ones(2, 3)))
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    try:
        print("eager  ", m(*call))
    except Exception as error:
        print("eager raises", type(error).__name__, error)
    print("package", aoti_load_package("model.pt2")(*call))
