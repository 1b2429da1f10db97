"""A module that calls torch.typename in forward, exported strictly."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Drop(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.LSTM(8, 8)
        w = self.l.weight_hh_l0
        del self.l._parameters["weight_hh_l0"]
        self.l.register_parameter("weight_hh_l0_raw", torch.nn.Parameter(w.data))

    def forward(self, x):
        raw = self.l.weight_hh_l0_raw
        w = torch.nn.functional.dropout(raw, 0.1, training=self.training)
        if torch.typename(w) == "torch.cuda.FloatTensor":
            w = w.cpu()
        return x @ w[:8]


m = Drop().eval()
x = torch.randn(2, 8)
with torch.no_grad():
    ep = torch.export.export(m, (x,), strict=True)
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": (x,), "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    print(aoti_load_package("model.pt2")(x))
