"""A branch on whether a size is even; the size is to be dynamic."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Even(torch.nn.Module):
    def forward(self, x):
        if x.size(0) % 2 == 0:
            return x.clone() * 2
        return x.clone() * 0


m = Even().eval()
call = (torch.ones(5),)
with torch.no_grad():
    ep = torch.export.export(m, (torch.ones(4),), dynamic_shapes={"x": {0: torch.export.Dim.DYNAMIC}})
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    out = aoti_load_package("model.pt2")(*call)
    print("eager  ", m(*call))
    print("package", out)
    torch.testing.assert_close(out, m(*call), equal_nan=True)
