"""An index one beyond the last place of a scatter: the operator refuses it, and nobody looks at its status."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Fold(torch.nn.Module):
    def forward(self, x, index):
        return torch.zeros(1024).scatter_reduce(0, index, x, reduce="amax", include_self=False) + 1


m = Fold().eval()
x = torch.rand(4096)
index = torch.arange(4096) % 1024
ep = torch.export.export(m, (x, index))
torch.export.save(ep, "exported.pt2")
aoti_compile_and_package(ep, package_path="model.pt2")
wrong = index.clone()
wrong[2000] = 1024
torch.save({"args": (x, wrong), "kwargs": {}}, "sample.pt")
torch.save({"args": (x, index), "kwargs": {}}, "fine.pt")
try:
    m(x, wrong)
except Exception as error:
    print("eager raises", type(error).__name__, error)
print("package", aoti_load_package("model.pt2")(x, wrong)[:4])
