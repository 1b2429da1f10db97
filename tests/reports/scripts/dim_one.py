"""A range that begins at 1, of which export leaves out 1."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Split(torch.nn.Module):
    def forward(self, x, y):
        rows = x.view(5, -1)
        return [rows[i] - y for i in range(5)]


batch = torch.export.Dim("batch", min=1, max=8)

m = Split().eval()
call = (torch.randn(5), torch.randn(1))
with torch.no_grad():
    ep = torch.export.export(
        m, (torch.randn(20), torch.randn(4)), dynamic_shapes={"x": {0: batch * 5}, "y": {0: batch}}
    )
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    try:
        print("eager  ", m(*call))
    except Exception as error:
        print("eager raises", type(error).__name__, error)
    print("package", aoti_load_package("model.pt2")(*call))
