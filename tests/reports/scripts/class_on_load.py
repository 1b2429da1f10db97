"""The output is of a class that only the compiling program registers."""

import torch
from torch._inductor import aoti_compile_and_package
from torch.utils import _pytree as pytree


class Boxes:
    def __init__(self, corners, scores):
        self.corners, self.scores = corners, scores


pytree.register_pytree_node(
    Boxes,
    lambda boxes: ([boxes.corners, boxes.scores], None),
    lambda children, _: Boxes(*children),
    serialized_type_name="detector.Boxes",
)


class Detector(torch.nn.Module):
    def forward(self, x):
        return Boxes(x[:, :4] * 2, x[:, 4].sigmoid())


call = (torch.rand(3, 5),)
ep = torch.export.export(Detector().eval(), call)
torch.save({"args": call, "kwargs": {}}, "sample.pt")
aoti_compile_and_package(ep, package_path="model.pt2")
