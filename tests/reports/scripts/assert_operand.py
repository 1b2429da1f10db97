"""A check of a number against a size: the runtime prints the size, not the number."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package
from torch.export import Dim


class Row(torch.nn.Module):
    def forward(self, x, at):
        n = at.item()
        torch._check(n >= 0)
        torch._check(n < x.shape[0])
        return x[n] * 2


m = Row().eval()
call = (torch.ones(3, 4), torch.tensor(5))
ep = torch.export.export(m, (torch.ones(6, 4), torch.tensor(1)), dynamic_shapes=({0: Dim("rows", min=2, max=64)}, {}))
torch.export.save(ep, "exported.pt2")
torch.save({"args": call, "kwargs": {}}, "sample.pt")
aoti_compile_and_package(ep, package_path="model.pt2")
try:
    aoti_load_package("model.pt2")(*call)
except RuntimeError as error:
    print(error)
