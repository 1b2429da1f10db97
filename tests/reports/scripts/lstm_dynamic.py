"""An LSTM over a time axis that should be dynamic."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package
from torch.export import Dim


class Enc(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.LSTM(32, 8, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]


m = Enc().eval()
with torch.no_grad():
    ep = torch.export.export(m, (torch.randn(1, 100, 32),), dynamic_shapes={"x": {1: Dim("time", min=6, max=100000)}})
    torch.export.save(ep, "exported.pt2")
    aoti_compile_and_package(ep, package_path="model.pt2")
    print(aoti_load_package("model.pt2")(torch.randn(1, 50, 32)).shape)
