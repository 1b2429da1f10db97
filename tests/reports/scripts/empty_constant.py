"""Weights are updated in place; one constant of the package is in no checkpoint."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Rank(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(8, 4)
        self.register_buffer("_empty_tensor", torch.empty(0), persistent=False)

    def forward(self, x):
        return torch.cat([self.l(x).flatten(), self._empty_tensor])


torch.manual_seed(0)
m = Rank().eval()
x = torch.randn(2, 8)
with torch.no_grad():
    ep = torch.export.export(m, (x,))
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": (x,), "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    r = aoti_load_package("model.pt2")
    print("constants of the package:", r.get_constant_fqns())
    new = {k: v + 1 for k, v in m.state_dict().items()}
    torch.save(new, "weights.pt")
    torch.save(m.state_dict(), "same.pt")
    r.load_constants(new, check_full_update=True)
    print(r(x))
