"""The inverse of a resized image: the matrix is singular, and every digit of it is rounding."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Inverse(torch.nn.Module):
    def forward(self, x):
        x = torch.nn.functional.interpolate(x, size=(64, 64), mode="bilinear", align_corners=True)
        return torch.inverse(x)


torch.manual_seed(0)

m = Inverse().eval()
call = (torch.randn(1, 3, 32, 32),)
with torch.no_grad():
    ep = torch.export.export(m, call)
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    out = aoti_load_package("model.pt2")(*call)
    print("eager  ", m(*call))
    print("package", out)
    torch.testing.assert_close(out, m(*call), equal_nan=True)
