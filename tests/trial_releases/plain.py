"""What plain PyTorch makes of the good call of each model: ``python -m tests.trial_releases.plain FOLDER...``.

One line of JSON per folder: ``right``, ``wrong`` (other values), ``loads`` (a call
needs weights), or the end in a few words. Across releases this is what
a healthy report, or one that speaks of the load, is held against.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path


def call(folder: Path) -> str:
    """Load and call the model of ``folder`` here."""
    import torch

    warnings.simplefilter("ignore")
    case = next(one for one in json.loads((folder / "cases.json").read_text()) if one["sample"] == "good")
    if case["setup"]:
        exec(compile(Path(case["setup"]).read_text(), "setup", "exec"), {})
    given = torch.load(case["inputs"], weights_only=True)
    if case["package"].endswith(".so"):
        from torch._export import aot_load

        loaded = aot_load(case["package"], "cpu")
    else:
        # 2.10.0 itself forgets it.
        import torch._inductor.codecache
        from torch._inductor.package import load_package

        loaded = load_package(case["package"], case["model_name"] or "model")
    if case["expected"] == ["weights-not-loaded"]:
        return "loads"
    out = torch.utils._pytree.tree_leaves(loaded(*given["args"], **given["kwargs"]))
    expected = torch.load(folder / "expected.pt", weights_only=True)
    pairs = zip(out, expected, strict=True)
    return "right" if all(torch.allclose(a, b, rtol=1e-2, atol=1e-3) for a, b in pairs) else "wrong"


def main() -> None:
    """Each in a process of its own: a crash is an answer."""
    if sys.argv[1] == "--one":
        print("ANSWER " + call(Path(sys.argv[2])))
        return
    for folder in map(Path, sys.argv[1:]):
        command = [sys.executable, "-m", "tests.trial_releases.plain", "--one", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        said = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        end = said[-1].split()[1] if said else f"exit {done.returncode}: {lines[-1][:200] if lines else ''}"
        print(json.dumps({"folder": str(folder), "end": end}), flush=True)


if __name__ == "__main__":
    main()
