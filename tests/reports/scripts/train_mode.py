"""Exported without eval(): dropout and batch statistics are baked in."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package

torch.manual_seed(0)
m = torch.nn.Sequential(
    torch.nn.Linear(16, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(64, 4)
)
for _ in range(30):
    m(torch.randn(32, 16) * 3 + 1)
x = torch.randn(8, 16)
with torch.no_grad():
    ep = torch.export.export(m, (x,))
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": (x,), "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    r = aoti_load_package("model.pt2")
    print("two calls agree:", torch.equal(r(x), r(x)))
    m.eval()
    print("with eval():", (r(x) - m(x)).abs().max())
