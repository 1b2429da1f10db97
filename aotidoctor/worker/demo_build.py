"""Compile one small model and save the files that the demo breaks; job ``demo_build``.

The model has a dynamic batch, an embedding and a nested argument. It is compiled twice: with its weights inside, and
with its weights beside the code, which the ordinary loader does not load. The other files are its source, a model
folder of Triton, with a wrong configuration that the server accepts, a program that calls the model, and its output for
a bad id.

A module of its own: ``commands.demo`` reads this file, and those of ``demo_files``, to decide whether files from an
earlier build are still valid.
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
# The model's source; somebody's program, which knows nothing of aotidoctor; and a configuration that names inputs as
# the documentation has it, with the type that the client happens to send, and has them merged with other requests.
_FILES = Path(__file__).with_name("demo_files")
MODEL, APP, CONFIG = ((_FILES / name).read_text(encoding="utf-8") for name in ("model.txt", "app.txt", "config.pbtxt"))
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
