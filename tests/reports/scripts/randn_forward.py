"""A layer whose weights are drawn in every call."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Draw(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.ConvTranspose2d(3, 2, 3, stride=2)

    def forward(self, x):
        x = self.up(x).flatten(1)
        return torch.argmax(torch.nn.functional.linear(x, torch.randn(64, x.shape[1])), 1)


torch.manual_seed(0)

m = Draw().eval()
call = (torch.randn(1, 3, 4, 4),)
with torch.no_grad():
    ep = torch.export.export(m, call)
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    out = aoti_load_package("model.pt2")(*call)
    print("eager  ", m(*call))
    print("package", out)
    torch.testing.assert_close(out, m(*call), equal_nan=True)
