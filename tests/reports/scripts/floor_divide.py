"""Floor division of numbers whose quotient lies just below an integer: 1.0 // 0.1 is 9."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Bins(torch.nn.Module):
    def forward(self, x, width):
        return torch.div(x, width, rounding_mode="floor") + 1


m = Bins().eval()
call = (torch.tensor([1.0, 0.5, 6.0, 1.0]), torch.tensor([0.1, 0.1, 0.2, 1 / 3]))
with torch.no_grad():
    ep = torch.export.export(m, call)
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    out = aoti_load_package("model.pt2")(*call)
    print("eager  ", m(*call))
    print("package", out)
    torch.testing.assert_close(out, m(*call), equal_nan=True)
