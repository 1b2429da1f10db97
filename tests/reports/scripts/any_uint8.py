"""A mask reduction on uint8: torch.any keeps uint8 in eager."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Flags(torch.nn.Module):
    def forward(self, mask):
        hit = torch.any(mask, 1)
        return hit, hit * 200 + 100


m = Flags().eval()
x = torch.tensor([[0, 3, 0, 1], [0, 0, 0, 0]], dtype=torch.uint8)
ep = torch.export.export(m, (x,))
torch.export.save(ep, "exported.pt2")
torch.save({"args": (x,), "kwargs": {}}, "sample.pt")
aoti_compile_and_package(ep, package_path="model.pt2")
out = aoti_load_package("model.pt2")(x)
print("eager  ", m(x))
print("package", out)
torch.testing.assert_close(out, m(x))
