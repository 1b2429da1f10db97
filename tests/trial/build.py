"""Makes the files of one model, in a process of its own.

``model.pt2`` (the package), ``program.pt2`` (the exported program), ``other.pt2`` (the same program with other weights),
``sample0.pt`` … (inputs as a user saves them), ``setup.py`` and ``facts.json``.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import torch

from tests.trial import registry

MAKES = ("model.pt2", "program.pt2", "other.pt2", "facts.json")


def _other_weights(program: torch.export.ExportedProgram) -> None:
    """Another checkpoint: every float parameter is moved by a tenth of its size, in place."""
    generator = torch.Generator().manual_seed(1)
    for tensor in program.state_dict.values():
        if tensor.is_floating_point() and type(tensor) in (torch.Tensor, torch.nn.Parameter):
            noise = torch.randn(tensor.shape, generator=generator).to(tensor.dtype)
            tensor.data = tensor.data * (1 + noise * 0.1) + 0.1 * noise


def make(folder: Path, name: str, family: str) -> None:
    model = registry.load((name,), (family,))[name]
    began = time.monotonic()
    built = model.build()
    torch.manual_seed(7)
    exec(model.setup, {"__name__": "setup"})  # what the samples' and the outputs' classes need
    with torch.no_grad():
        args, kwargs = built.samples[0]
        program = torch.export.export(built.module, args, kwargs, dynamic_shapes=built.dynamic, strict=model.strict)
        torch.export.save(program, folder / "program.pt2")
        with torch._inductor.config.patch(model.config):
            torch._inductor.aoti_compile_and_package(program, package_path=str(folder / "model.pt2"))
    for number, (args, kwargs) in enumerate(built.samples):
        torch.save({"args": args, "kwargs": kwargs}, folder / f"sample{number}.pt")
    other = torch.export.load(folder / "program.pt2")
    _other_weights(other)
    torch.export.save(other, folder / "other.pt2")
    if model.setup:
        (folder / "setup.py").write_text(model.setup, encoding="utf-8")
    facts = {
        "name": name, "traits": model.traits, "samples": len(built.samples), "index_bounds": built.index_bounds,
        "seconds": round(time.monotonic() - began, 1), "package_bytes": (folder / "model.pt2").stat().st_size,
        "in_spec": str(program.call_spec.in_spec), "out_spec": str(program.call_spec.out_spec),
        "dynamic": sorted({str(size) for node in program.graph.nodes if node.op == "placeholder"
                           for size in getattr(node.meta.get("val"), "shape", ()) if isinstance(size, torch.SymInt)}),
        "outputs": _outputs(program),
        "users": _users(program),
    }  # fmt: skip
    (folder / "facts.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _users(program: torch.export.ExportedProgram) -> list[dict]:
    """Shape and dtype of each input of the user's, as the program has them."""
    named = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    found = []
    for name in program.graph_signature.user_inputs:
        value = named.get(name) if isinstance(name, str) else None
        tensor = isinstance(value, torch.Tensor)
        found.append(
            {
                "shape": [str(size) for size in value.shape] if tensor else None,
                "dtype": str(value.dtype) if tensor else None,
            }
        )
    return found


def _outputs(program: torch.export.ExportedProgram) -> list[dict]:
    """Shape, stride and dtype of each output, as the program has them."""
    named = {node.name: node.meta.get("val") for node in program.graph.nodes}
    found = []
    for name in program.graph_signature.user_outputs:
        value = named.get(name)
        if isinstance(value, torch.Tensor):
            found.append(
                {
                    "shape": [str(size) for size in value.shape],
                    "stride": [str(step) for step in value.stride()],
                    "dtype": str(value.dtype),
                }
            )
        else:
            found.append({"shape": None, "stride": None, "dtype": None})
    return found
