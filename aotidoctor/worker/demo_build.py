"""Compile one small model and save the files that the demo breaks; job ``demo_build``.

The model has a dynamic batch, an embedding and a nested argument. It is compiled twice: with its weights inside, and
with its weights beside the code, which the ordinary loader does not load. The other files are its source, a model
folder of Triton, with a wrong configuration that the server accepts, a program that calls the model, and its output for
a bad id.

A module of its own: ``commands.demo`` reads this file to decide whether files from an earlier build are still valid.
"""

from __future__ import annotations

import os
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

from aotidoctor.model.jobs import DemoBuild
from aotidoctor.worker.channel import Channel

PACKAGE = "model.pt2"
WITHOUT_WEIGHTS = "separate_weights.pt2"
REFERENCE = "exported.pt2"
GOOD, TRANSPOSED, NARROW_IDS, BAD_ID = "good.pt", "transposed.pt", "int32_ids.pt", "bad_id.pt"
PROGRAM, LOG = "app.py", "crash.log"
SOURCE = "model.py"

ROWS = 100
# Named as the documentation has it, with the type that the client happens to send, and merged with other requests.
CONFIG = """\
platform: "torch_aoti"
input [
  { name: "ARGS[0]" data_type: TYPE_FP32 dims: [ -1, 16 ] },
  { name: "ARGS[1][scale]" data_type: TYPE_FP32 dims: [ 16 ] },
  { name: "ARGS[1][shift]" data_type: TYPE_FP32 dims: [ 16 ] },
  { name: "INPUT__3" data_type: TYPE_INT32 dims: [ -1 ] }
]
output [
  { name: "RESULT" data_type: TYPE_FP32 dims: [ -1, 4 ] }
]
instance_group [ { kind: KIND_CPU } ]
parameters { key: "INFERENCE_MOD" value { string_value: "true" } }
"""
MODEL = """\
import torch


class Ranker(torch.nn.Module):
    activation = staticmethod(torch.relu)

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(100, 16)
        self.head = torch.nn.Linear(16, 4)

    def forward(self, x, affine, *, ids):
        hidden = x * affine["scale"] + affine["shift"] + self.embedding(ids)
        return self.head(self.activation(hidden)).softmax(-1)


def ranker():
    torch.manual_seed(0)
    return Ranker().eval()


def edited():
    model = ranker()
    model.activation = torch.nn.functional.gelu  # changed after the export
    return model
"""
# Somebody's program, which knows nothing of aotidoctor.
APP = """\
import sys

import torch

model = torch._inductor.aoti_load_package("model.pt2")
call = torch.load(sys.argv[1])
print(model(*call["args"], **call["kwargs"]))
"""
# With it the package tells which line of the model a kernel comes from.
SOURCE_LINES = {"trace.provenance_tracking_level": 1}
# Precompiled headers pay off from the third model on; these are two, compiled side by side.
QUICK = {"aot_inductor.precompile_headers": False}
WEIGHTS_BESIDE = {
    "aot_inductor.package_constants_in_so": False,
    "aot_inductor.package_constants_on_disk_format": "pickle_weights",
}


def demo_build(payload: DemoBuild, channel: Channel) -> dict[str, Any]:
    """Make one part in ``payload.folder``: ``model`` with exported program and inputs, or ``separate_weights``."""
    from torch._inductor import aoti_compile_and_package

    folder = Path(payload.folder)
    channel.enter("export")
    x, affine, ids = _inputs()
    names: dict[str, Any] = {"__name__": "model"}
    exec(compile(MODEL, SOURCE, "exec"), names)  # noqa: S102 - our own text
    batch = torch.export.Dim("batch", min=2, max=64)
    shapes = {"x": {0: batch}, "affine": {"scale": None, "shift": None}, "ids": {0: batch}}
    exported = torch.export.export(names["ranker"](), (x, affine), {"ids": ids}, dynamic_shapes=shapes)
    separate = payload.part == "separate_weights"
    if not separate:
        (folder / SOURCE).write_text(MODEL, encoding="utf-8")
        _save(folder / GOOD, x, affine, ids)
        _save(folder / TRANSPOSED, x.t().contiguous().t(), affine, ids)
        _save(folder / NARROW_IDS, x, affine, ids.to(torch.int32))
        _save(folder / BAD_ID, x, affine, _with_bad_id(ids))
        torch.export.save(exported, folder / REFERENCE)
    channel.enter("compile")
    aoti_compile_and_package(
        exported,
        package_path=str(folder / (WITHOUT_WEIGHTS if separate else PACKAGE)),
        inductor_configs={**QUICK, **SOURCE_LINES, **(WEIGHTS_BESIDE if separate else {})},
    )
    if not separate:
        # Make a model folder as Triton expects it.
        version = folder / "served" / "ranker" / "1"
        version.mkdir(parents=True)
        (version.parent / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
        shutil.copyfile(folder / PACKAGE, version / PACKAGE)
        _crash(folder)
    return {"torch": torch.__version__}


def _crash(folder: Path) -> None:
    """Write a program and the log of its failure: the output of the runtime, and the traceback."""
    (folder / PROGRAM).write_text(APP, encoding="utf-8")
    os.chdir(folder)
    sys.argv = [PROGRAM, BAD_ID]
    stderr = os.dup(2)
    with Path(LOG).open("w", encoding="utf-8") as log:
        os.dup2(log.fileno(), 2)
        try:
            exec(compile(APP, PROGRAM, "exec"), {"__name__": "__main__"})  # noqa: S102 - our own text, as a program
        except RuntimeError as error:
            # From the program's own frame on.
            trace = error.__traceback__.tb_next if error.__traceback__ is not None else None
            log.write("".join(traceback.format_exception(RuntimeError, error, trace)))
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def _inputs() -> tuple[Any, dict[str, Any], Any]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 16, generator=generator)
    affine = {"scale": torch.rand(16, generator=generator) + 0.5, "shift": torch.randn(16, generator=generator)}
    return x, affine, torch.randint(0, ROWS, (8,), generator=generator)


def _with_bad_id(ids: Any) -> Any:
    """The ids, with one beyond the table."""
    changed = ids.clone()
    changed[5] = ROWS
    return changed


def _save(path: Path, x: Any, affine: dict[str, Any], ids: Any) -> None:
    torch.save({"args": (x, affine), "kwargs": {"ids": ids}}, path)
