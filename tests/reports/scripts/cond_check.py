"""A check in a branch becomes a bound of the whole program."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Long(torch.nn.Module):
    def forward(self, x):
        def long(x):
            torch._check(x.shape[1] > 5)
            return x + 1

        def short(x):
            return x + 2

        return torch.cond(x.shape[1] > 5, long, short, (x,))


m = Long().eval()
call = None
with torch.no_grad():
    ep = torch.export.export(
        m,
        (torch.rand(2, 70, 3),),
        dynamic_shapes={"x": {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence_length")}},
    )
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    print(aoti_load_package("model.pt2"))
