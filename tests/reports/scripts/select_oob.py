"""A fixed column that does not exist."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Cols(torch.nn.Module):
    def forward(self, x):
        v = x.unsqueeze(1)
        return torch.cat([v.select(1, 0), v.select(1, 1)], -1)


m = Cols().eval()
x = torch.arange(12.0).reshape(3, 4)
ep = torch.export.export(m, (x,))
aoti_compile_and_package(ep, package_path="model.pt2")
print(aoti_load_package("model.pt2")(x))
