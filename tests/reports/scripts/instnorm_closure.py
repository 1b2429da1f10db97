"""Running statistics that live outside of the module and are updated by the call."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package

mean, var = torch.zeros(4), torch.ones(4)


class Norm(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.instance_norm(x, mean, var, use_input_stats=True, momentum=0.1)


m = Norm().eval()
x = torch.randn(2, 4, 6, 6)
ep = torch.export.export(m, (x,))
torch.export.save(ep, "exported.pt2")
torch.save({"args": (x,), "kwargs": {}}, "sample.pt")
aoti_compile_and_package(ep, package_path="model.pt2")
print(aoti_load_package("model.pt2")(x).shape)
