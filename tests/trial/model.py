"""What a trial model is: how to build it, its samples, what a process that loads the package has to import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

# Torchvision's wheels are built against another torch than the CPU one: its operators are declared here, so that its
# Python code imports. No model of the trial calls them.
TORCHVISION = """
import torch
if not hasattr(torch.ops.torchvision, "nms"):
    # Kept by the module: a library that is collected takes its operators along.
    torch.torchvision_operators = torch.library.Library("torchvision", "FRAGMENT")
    for _name in ("nms", "qnms"):
        torch.torchvision_operators.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A module in eval mode, one list of samples (args, kwargs), of which the first is the example of the export.

    ``dynamic`` is what ``torch.export.export`` takes as ``dynamic_shapes``. ``index_bounds`` gives, per path of a leaf
    (``kwargs['input_ids']``), the first index that is out of range in plain PyTorch.
    """

    module: object
    samples: tuple[tuple[tuple, dict], ...]
    dynamic: object = None
    index_bounds: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """``traits`` are the categories of the trial that it stands for; ``setup`` is what loading the package needs.

    ``config`` are patches of ``torch._inductor.config``; ``heavy`` is left out unless it is asked for.
    """

    name: str
    traits: tuple[str, ...]
    build: Callable[[], Built]
    setup: str = ""
    config: dict[str, object] = field(default_factory=dict)
    heavy: bool = False
    strict: bool = False
