"""What this interpreter's PyTorch makes of the packages in ``tests/data/releases``: ``python -m tests.trial_releases.kept``.

It loads each one and calls it with its good sample, in a process of its own (forked), and writes its column of ``loads.json`` there:
package -> release -> ``right``, ``wrong`` (other values), or how it ended. What ``compat`` foretells is held against that.
"""

from __future__ import annotations

import json
import os
import re
import warnings

from tests.artifacts.releases import ROOT, Sample, samples

RECORD = ROOT / "loads.json"
_PLACE = re.compile(r"/[\w./+-]*/")


def call(sample: Sample) -> str:
    """Load and call one here."""
    import torch
    from torch._inductor.package import load_package

    warnings.simplefilter("ignore")
    if sample.setup is not None:
        exec(compile(sample.setup.read_text(), "setup", "exec"), {})
    given = torch.load(sample.inputs, weights_only=True)
    args, kwargs = (given["args"], given["kwargs"]) if isinstance(given, dict) else (given, {})
    out = torch.utils._pytree.tree_leaves(load_package(sample.package)(*args, **kwargs))
    kept = torch.load(sample.folder / "outputs.pt", weights_only=True)
    expected = torch.utils._pytree.tree_leaves(kept[sample.name] if isinstance(kept, dict) else kept)
    pairs = zip(out, expected, strict=True)
    return "right" if all(torch.allclose(a, b, rtol=1e-2, atol=1e-3) for a, b in pairs) else "wrong"


def end_of(sample: Sample) -> str:
    """The answer of a forked process: a crash is one, too."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = call(sample)
        except Exception as error:
            said = f"{type(error).__name__}: {_PLACE.sub('', str(error).strip().splitlines()[0])[:160]}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        said = answer.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return said or f"exit {status}"


def main() -> None:
    """Each package that is kept, and the record."""
    import torch

    # 2.10.0 itself forgets it.
    import torch._inductor.codecache

    # To ask for the CPU's instructions the compiler is started: once, and not in each process.
    torch._inductor.config.cpp.vec_isa_ok = True
    getattr(torch._inductor.codecache, "get_device_information", str)("cpu")

    good = [sample for sample in samples() if sample.name == "good"]
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
