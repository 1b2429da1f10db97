"""A kernel whose text is not checked at all, in the job as it is: prints what it could do, and the job's result.

Arguments: ``confined`` or ``free``, the folder of the run, and a folder that is not its own.
"""

import ast
import builtins
import json
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "unit" / "worker")]

import torch  # noqa: E402
from attempts import attempts, succeeds  # noqa: E402
from cases import healthy, sample  # noqa: E402
from driver import emulate_module, package  # noqa: E402

from aotidoctor.model.jobs import InputsSource, Run  # noqa: E402
from aotidoctor.worker.channel import Channel  # noqa: E402
from aotidoctor.worker.emulation import kernel_source  # noqa: E402
from aotidoctor.worker.emulation.emulate import emulate  # noqa: E402
from aotidoctor.worker.emulation.interpreter import Libdevice  # noqa: E402
from aotidoctor.worker.emulation.kernel_grammar import CheckedText  # noqa: E402
from aotidoctor.worker.sandbox import confine_replay  # noqa: E402

TOLD, ATTEMPTS = {}, {}
LINE = "xoffset = tl.program_id(0) * XBLOCK"


def try_all():
    if not TOLD:
        TOLD.update({name: succeeds(attempt) for name, attempt in ATTEMPTS.items()})


def unchecked(module):
    """The definitions as they are, with all of Python."""
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    for one in functions:
        one.decorator_list = []
        for argument in one.args.args:
            argument.annotation = None
    return CheckedText(functions=tuple(functions), names={}, constants={}, plain=frozenset())


def main():
    run_dir, outside = Path(sys.argv[2]), Path(sys.argv[3])
    (outside / "inside").mkdir()
    ATTEMPTS.update(attempts(outside))
    edit = (LINE, f"{LINE}; __import__('__main__').try_all()")
    kernel_source.check_text = unchecked
    import triton.language as tl
    from torch._inductor.runtime import triton_helpers

    modules = {"tl": tl, "tl_math": tl.math, "libdevice": Libdevice(), "triton_helpers": triton_helpers}
    kernel_source.BUILTINS = {**vars(builtins), **modules}
    emulate_module.confine_replay = confine_replay if sys.argv[1] == "confined" else lambda payload, channel: None
    case = next(one for one in healthy() if one.model == "pointwise")
    path, _ = package("pointwise", run_dir, lambda text: (text.replace(*edit), 0))
    torch.save(sample(case)[1], run_dir / "inputs.pt")
    (run_dir / "channel.jsonl").touch()
    channel = Channel(run_dir / "channel.jsonl", user_cwd=Path("/"), run_dir=run_dir)
    emulate(Run(package=str(path), inputs=InputsSource(path=str(run_dir / "inputs.pt"))), channel)
    lines = (run_dir / "channel.jsonl").read_text(encoding="utf-8").splitlines()
    puts = [json.loads(line).get("put", {}) for line in lines if line]
    (result,) = [one["emulation"] for one in puts if "emulation" in one and "outputs" in one]
    states = [one["state"] for one in result["launches"]]
    print(json.dumps({"could": TOLD, "states": states, "left out": result["not_emulated"]}))


if __name__ == "__main__":
    main()
