"""A dataclass of settings among the inputs."""

from dataclasses import dataclass

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package


@dataclass
class Settings:
    scale: int
    shift: int


class Affine(torch.nn.Module):
    def forward(self, x, settings):
        return x * settings.scale + settings.shift


m = Affine().eval()
call = None
with torch.no_grad():
    ep = torch.export.export(m, (torch.randn(4), Settings(2, 3)))
    torch.export.save(ep, "exported.pt2")
    torch.save({"args": call, "kwargs": {}}, "sample.pt")
    aoti_compile_and_package(ep, package_path="model.pt2")
    print(aoti_load_package("model.pt2"))
