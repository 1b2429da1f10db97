"""Weights that are no constants of the package: a number, a scale of one element, and a layer that nothing uses."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.spare = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)
        self.temperature = torch.nn.Parameter(torch.tensor(0.73105857))
        self.gain = torch.nn.Parameter(torch.tensor([1.20397282]))

    def forward(self, x):
        return torch.tanh(self.l(x) * self.temperature) * self.gain


torch.manual_seed(0)
m = Scaled().eval()
call = (torch.randn(2, 16),)
with torch.no_grad():
    ep = torch.export.export(m, call)
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    torch.save(m.state_dict(), "same.pt")
    torch.save({**m.state_dict(), "temperature": torch.tensor(0.5127391)}, "hotter.pt")
    torch.save({**m.state_dict(), "gain": torch.tensor([0.9418273])}, "louder.pt")
    print("constants of the package:", aoti_load_package("model.pt2").get_constant_fqns())
