"""Remainders by infinity and of great quotients: vectorized code has another formula than eager."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Wrap(torch.nn.Module):
    def forward(self, angle, period):
        return torch.remainder(angle, period) * 2


INF = float("inf")

m = Wrap().eval()
call = (
    torch.tensor([5.5, -5.5, 0.0, 1e20, 7.0, 1.0, -0.0, 3.0] * 2),
    torch.tensor([INF, -INF, INF, 3.0, 0.7, 0.1, 1.0, 2.0] * 2),
)
with torch.no_grad():
    ep = torch.export.export(m, call)
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    out = aoti_load_package("model.pt2")(*call)
    print("eager  ", m(*call))
    print("package", out)
    torch.testing.assert_close(out, m(*call), equal_nan=True)
