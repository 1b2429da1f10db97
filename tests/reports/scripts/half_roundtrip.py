"""A cast to float16 and back, which the compiler leaves out."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Round(torch.nn.Module):
    def forward(self, x):
        y = x.to(torch.float16).to(torch.float32)
        return y, y.sum(1)


m = Round().eval()
call = (torch.arange(20.0).reshape(4, 5) * 1000 / 7,)
with torch.no_grad():
    ep = torch.export.export(m, call)
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    out = aoti_load_package("model.pt2")(*call)
    print("eager  ", m(*call))
    print("package", out)
    torch.testing.assert_close(out, m(*call), equal_nan=True)
