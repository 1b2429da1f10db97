"""int(shape/1) in a resize: the size of the example is baked in."""

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package
from torch.export import Dim


class Up(torch.nn.Module):
    def forward(self, img):
        size = (int(img.shape[-2] / 1), int(img.shape[-1] / 1))
        return torch.nn.functional.interpolate(img, size=size, mode="bilinear")


m = Up().eval()
a, b = torch.rand(1, 3, 28, 28), torch.rand(1, 3, 56, 56)
ep = torch.export.export(m, (a,), dynamic_shapes={"img": {2: Dim.AUTO, 3: Dim.AUTO}}, strict=False)
torch.export.save(ep, "exported.pt2")
torch.save({"args": (b,), "kwargs": {}}, "sample.pt")
aoti_compile_and_package(ep, package_path="model.pt2")
out = aoti_load_package("model.pt2")(b)
print("eager", tuple(m(b).shape), "package", tuple(out.shape))
torch.testing.assert_close(out, m(b))
