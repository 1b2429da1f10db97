"""One tensor as the example of both inputs."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Diff(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(10, 10)

    def forward(self, now, before):
        return self.l(now) - before


torch.manual_seed(0)
m = Diff().eval()
x = torch.zeros(2, 10)
with torch.no_grad():
    ep = torch.export.export(m, (x, x))
    torch.export.save(ep, "exported.pt2")
    aoti_compile_and_package(ep, package_path="model.pt2")
    call = (torch.zeros(2, 10), torch.ones(2, 10))
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    out = aoti_load_package("model.pt2")(*call)
    print("eager", m(*call)[0, :4], "package", out[0, :4])
    torch.testing.assert_close(out, m(*call))
