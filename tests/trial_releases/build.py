"""Compile the models with the PyTorch of this interpreter: ``python -m tests.trial_releases.build FOLDER [MODEL...]``.

Each model gets a folder with the package, ``exported.pt2``, setup files, samples, and ``cases.json``: what ``examine``
takes, and whether plain PyTorch can call it. What cannot be compiled is said on stderr and left out.
"""

from __future__ import annotations

import copy
import json
import shutil
import sys
import traceback
import warnings
from pathlib import Path

import torch
import torch._inductor.package
from torch.export import export

from tests.trial_releases.models import MODELS, SETUPS, Model, Outside

OPTIONS = {"outside": {"aot_inductor.package_constants_in_so": False}}


def build(name: str, folder: Path) -> None:
    """One model."""
    # To ask for the CPU's instructions the compiler is started again and again, in each process.
    torch._inductor.config.cpp.vec_isa_ok = True
    if hasattr(torch._inductor.config.aot_inductor, "precompile_headers"):
        # The compiler does it by itself.
        torch._inductor.config.aot_inductor.precompile_headers = False
    torch.manual_seed(1)
    model = MODELS[name]()
    module = model.module.eval()
    if model.setup is not None:
        for one, text in SETUPS.items():
            (folder / f"{one}.py").write_text(text)
        exec(compile(SETUPS[model.setup], "setup", "exec"), {})
    for one, sample in model.samples.items():
        torch.save({"args": sample.args, "kwargs": sample.kwargs}, folder / f"{one}.pt")
    call = model.call
    with torch.no_grad():
        expected = copy.deepcopy(module)(*copy.deepcopy(call.args), **copy.deepcopy(call.kwargs))
        torch.save(torch.utils._pytree.tree_leaves(expected), folder / "expected.pt")
        program = export(module, call.args, call.kwargs, dynamic_shapes=model.dims)
        torch.export.save(program, folder / "exported.pt2")
        _compile(program, model, folder)
    (folder / "cases.json").write_text(json.dumps(_cases(name, model, folder), indent=1))


def _compile(program: torch.export.ExportedProgram, model: Model, folder: Path) -> None:
    args = model.call.args
    if model.how == "two":
        other = export(Outside().eval(), model.samples["other"].args)
        options = {"aot_inductor.package": True}
        files = {
            name: torch._inductor.aot_compile(one.module(), given, options=dict(options))
            for name, one, given in (("one", program, args), ("other", other, model.samples["other"].args))
        }
        torch._inductor.package.package_aoti(str(folder / "model.pt2"), files)
    elif model.how == "library":
        options = {"aot_inductor.output_path": str(folder / "compiled" / "model.so")}
        made = torch._inductor.aot_compile(program.module(), args, options=options)
        path = made if isinstance(made, str) else next(one for one in made if one.endswith(".so"))
        shutil.copyfile(path, folder / "model.so")
    else:
        torch._inductor.aoti_compile_and_package(
            program, package_path=str(folder / "model.pt2"), inductor_configs=OPTIONS.get(model.how, {})
        )


def _cases(name: str, model: Model, folder: Path) -> list[dict]:
    library = model.how == "library"
    return [
        {
            "release": torch.__version__.split("+")[0],
            "model": name,
            "sample": one,
            "package": str(folder / ("model.so" if library else "model.pt2")),
            "inputs": str(folder / f"{one}.pt"),
            "reference": str(folder / "exported.pt2") if model.how != "two" else None,
            "setup": str(folder / f"{sample.setup}.py") if sample.setup is not None else None,
            "model_name": sample.model,
            "expected": list(sample.causes),
        }
        for one, sample in model.samples.items()
    ]


def main() -> None:
    """Those that are named, or all."""
    warnings.simplefilter("ignore")
    root = Path(sys.argv[1]).absolute()
    for name in sys.argv[2:] or MODELS:
        folder = root / name
        if (folder / "cases.json").exists():
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            torch._dynamo.reset()
            build(name, folder)
        except Exception:
            print(f"{name} cannot be compiled here:\n{traceback.format_exc()}", file=sys.stderr)


if __name__ == "__main__":
    main()
