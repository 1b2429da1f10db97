"""What this interpreter's PyTorch makes of the packages in ``tests/data/releases``: ``python -m tests.trial_releases.kept``.

It loads each one and calls it with its good sample, in a process of its own, and writes its column of ``loads.json`` there:
package -> release -> ``right``, ``wrong`` (other values), or how it ended. What ``compat`` foretells is held against that.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings

from tests.artifacts.releases import ROOT, Sample, samples

RECORD = ROOT / "loads.json"
_PLACE = re.compile(r"/[\w./+-]*/")


def call(sample: Sample) -> str:
    """Load and call one here."""
    import torch

    # 2.10.0 itself forgets it.
    import torch._inductor.codecache
    from torch._inductor.package import load_package

    warnings.simplefilter("ignore")
    if sample.setup is not None:
        exec(compile(sample.setup.read_text(), "setup", "exec"), {})
    given = torch.load(sample.inputs, weights_only=True)
    args, kwargs = (given["args"], given["kwargs"]) if isinstance(given, dict) else (given, {})
    out = torch.utils._pytree.tree_leaves(load_package(sample.package)(*args, **kwargs))
    expected = torch.utils._pytree.tree_leaves(torch.load(sample.folder / "outputs.pt", weights_only=True))
    pairs = zip(out, expected, strict=True)
    return "right" if all(torch.allclose(a, b, rtol=1e-2, atol=1e-3) for a, b in pairs) else "wrong"


def end_of(sample: Sample) -> str:
    """The answer of a process of its own: a crash is one, too."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.trial_releases.kept", str(sample)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    said = [line.removeprefix("ANSWER ") for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    lines = [line.strip() for line in done.stderr.splitlines() if re.match(r"[\w.]*(?:Error|Exception)\b", line)]
    words = _PLACE.sub("", lines[-1])[:160] if lines else ""
    return said[-1] if said else f"exit {done.returncode}: {words}"


def main() -> None:
    """One package where it is named, else all, and the record."""
    good = [sample for sample in samples() if sample.name == "good"]
    if len(sys.argv) > 1:
        print("ANSWER " + call(next(sample for sample in good if str(sample) == sys.argv[1])))
        return
    import torch

    release = torch.__version__.partition("+")[0]
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for sample in good:
        record.setdefault(f"{sample.release}/{sample.model}", {})[release] = end_of(sample)
    ordered = {
        name: dict(sorted(row.items(), key=_by_release)) for name, row in sorted(record.items(), key=_by_release)
    }
    RECORD.write_text(json.dumps(ordered, indent=1) + "\n")


def _by_release(entry: tuple[str, object]) -> tuple[int, str]:
    return int(entry[0].split(".")[1]), entry[0]


if __name__ == "__main__":
    main()
