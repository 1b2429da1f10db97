"""A dynamic batch whose example is one."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = torch.nn.Conv2d(3, 4, 3), torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(torch.flatten(torch.nn.functional.adaptive_avg_pool2d(self.conv(x), 1), 1))


m = Net().eval()
call = None
with torch.no_grad():
    ep = torch.export.export(
        m, (torch.randn(1, 3, 8, 8),), dynamic_shapes={"x": {0: torch.export.Dim("batch", max=10)}}, strict=True
    )
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    print(aoti_load_package("model.pt2"))
