"""Write the exported program of the packages called mlp to the file given: CUDA torch on the simulated machine."""

import sys

import torch


class Mlp(torch.nn.Module):
    """What tests/data/cuda/mlp*.pt2 were made of, with the weights of this seed."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.l1 = torch.nn.Linear(16, 32)
        self.l2 = torch.nn.Linear(32, 8)

    def forward(self, x):
        return torch.sigmoid(self.l2(torch.relu(self.l1(x)))) * 2


if __name__ == "__main__":
    batch = torch.export.Dim("batch", min=2, max=1024)
    program = torch.export.export(Mlp().cuda().eval(), (torch.ones(5, 16).cuda(),), dynamic_shapes=({0: batch},))
    # Paths of the machine that this was made on.
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    torch.export.save(program, sys.argv[1])
