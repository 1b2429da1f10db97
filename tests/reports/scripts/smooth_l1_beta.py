"""A loss with a negative beta: eager refuses it whatever the inputs are."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Loss(torch.nn.Module):
    def forward(self, x, y):
        return torch.nn.functional.smooth_l1_loss(x, y, beta=-1.0)


m = Loss().eval()
call = (torch.ones(4), torch.zeros(4))
with torch.no_grad():
    ep = torch.export.export(m, call)
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    try:
        print("eager  ", m(*call))
    except Exception as error:
        print("eager raises", type(error).__name__, error)
    print("package", aoti_load_package("model.pt2")(*call))
