"""A number among the arguments, which is another one than at export."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Power(torch.nn.Module):
    def forward(self, x, times: int):
        for _ in range(times):
            x = x * 1.5
        return x


m = Power().eval()
call = (torch.ones(4), 3)
with torch.no_grad():
    ep = torch.export.export(m, (torch.ones(4), 2))
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    try:
        print("eager  ", m(*call))
    except Exception as error:
        print("eager raises", type(error).__name__, error)
    print("package", aoti_load_package("model.pt2")(*call))
