"""Inputs that do nothing, with one tensor as the example of several: nothing is wrong with these programs."""

import torch


class Shape(torch.nn.Module):
    def forward(self, now, before):
        return torch.zeros(now.shape) + before * 2


class Unused(torch.nn.Module):
    def forward(self, now, before):
        return before.relu()


x = torch.zeros(2, 10)
for name, model in (("shape", Shape()), ("unused", Unused())):
    torch.export.save(torch.export.export(model, (x, x)), f"{name}.pt2")
