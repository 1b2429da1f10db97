"""A batched product of int8: its decomposition sums in int64 and stays there."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Product(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


m = Product().eval()
call = (torch.ones(1, 1, 2, dtype=torch.int8), torch.ones(1, 2, 2, dtype=torch.int8))
with torch.no_grad():
    ep = torch.export.export(m, call)
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    out = aoti_load_package("model.pt2")(*call)
    print("eager  ", m(*call))
    print("package", out)
    torch.testing.assert_close(out, m(*call), equal_nan=True)
