"""A tensor is made in a branch of torch.cond."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


def branch(x):
    return x.clone() + torch.tensor(0.0)


class Choose(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.any(), branch, branch, (x,))


m = Choose().eval()
call = None
with torch.no_grad():
    ep = torch.export.export(m, (torch.ones(4),))
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    print(aoti_load_package("model.pt2"))
