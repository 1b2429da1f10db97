"""The remainder of bfloat16 by a number of Python, which eager rounds to bfloat16 first."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Phase(torch.nn.Module):
    def forward(self, x):
        return torch.remainder(x, 1.7)


m = Phase().eval()
call = (torch.tensor([1.703125, -1.703125, 1.0, 3.0], dtype=torch.bfloat16),)
with torch.no_grad():
    ep = torch.export.export(m, call)
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    out = aoti_load_package("model.pt2")(*call)
    print("eager  ", m(*call))
    print("package", out)
    torch.testing.assert_close(out, m(*call), equal_nan=True)
