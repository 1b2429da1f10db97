"""One NaN in the query; and a row of the mask that hides everything."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Att(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.p = torch.nn.Linear(8, 8)

    def forward(self, q, k, v, mask):
        return torch.nn.functional.scaled_dot_product_attention(self.p(q), k, v, attn_mask=mask)


torch.manual_seed(0)
m = Att().eval()
q, k, v = (torch.randn(2, 4, 16, 8) for _ in range(3))
mask = torch.zeros(16, 16)
mask[3] = float("-inf")
with torch.no_grad():
    ep = torch.export.export(m, (q, k, v, mask))
    torch.export.save(ep, "exported.pt2")
    aoti_compile_and_package(ep, package_path="model.pt2")
    q = q.clone()
    q[0, 1, 2, 3] = float("nan")
    torch.save({"args": (q, k, v, mask), "kwargs": {}}, "sample.pt")
    o = aoti_load_package("model.pt2")(q, k, v, mask)
    e = m(q, k, v, mask)
    print(
        "NaN in eager",
        int(e.isnan().sum()),
        "in package",
        int(o.isnan().sum()),
        "row 3",
        o[1, 0, 3, :3],
        e[1, 0, 3, :3],
    )
