"""An index of -2 into an embedding: eager refuses it, the package counts from the end."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Table(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = torch.nn.Embedding(5, 16)

    def forward(self, ids):
        return self.rows(ids)


m = Table().eval()
call = (torch.tensor([2, -2, 4]),)
with torch.no_grad():
    ep = torch.export.export(m, (torch.tensor([2, 0, 4]),))
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    try:
        print("eager  ", m(*call))
    except Exception as error:
        print("eager raises", type(error).__name__, error)
    print("package", aoti_load_package("model.pt2")(*call))
