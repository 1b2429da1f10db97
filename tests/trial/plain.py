"""What plain PyTorch does with the cases of one model, in a process that imported nothing of the model's libraries.

Per case one forked child loads the package through ``aoti_load_package`` and calls it, as a user would; another gives
the same inputs to the exported program's module. A third compares what they gave. No module of aotidoctor is used.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SECONDS = 120


def _load_inputs(path: str):
    import torch

    value = torch.load(path, weights_only=False)
    return value["args"], value["kwargs"]


class _Ready:
    """What all children share, made once by the parent: it never computes, so that children may start threads."""

    model: object = None
    module: object = None


def _package(case: dict, place: Path) -> None:
    import torch

    (place / "stage").write_text("load")
    model = _Ready.model or torch._inductor.aoti_load_package(case["model"])
    for name in ("package", "again"):
        args, kwargs = _load_inputs(case["inputs"])
        (place / "stage").write_text("run" if name == "package" else "again")
        torch.save(_leaves(model(*args, **kwargs)), place / f"{name}.pt")


def _eager(case: dict, place: Path) -> None:
    import torch

    args, kwargs = _load_inputs(case["inputs"])
    with torch.no_grad():
        torch.save(_leaves(_Ready.module(*args, **kwargs)), place / "eager.pt")


def _leaves(value) -> list:
    import torch

    return [
        leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf
        for leaf in torch.utils._pytree.tree_leaves(value)
    ]


def _compare(_case: dict, place: Path) -> None:
    import torch

    torch.set_num_threads(1)
    ours, theirs = (torch.load(place / f"{name}.pt", weights_only=False) for name in ("package", "eager"))
    worst, found = 0.0, len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=False):
        if not isinstance(one, torch.Tensor):
            continue
        if one.shape != other.shape or one.dtype != other.dtype:
            found = False
            continue
        if one.numel() == 0:
            continue
        a, b = one.double().nan_to_num(1e30), other.double().nan_to_num(1e30)
        worst = max(worst, float((a - b).abs().max() / b.abs().max().clamp_min(1e-6)))
    (place / "verdict").write_text(json.dumps({"same_form": found, "worst": worst, "finite": all(
        bool(torch.isfinite(leaf.double()).all()) for leaf in ours if isinstance(leaf, torch.Tensor))}))  # fmt: skip


def _fork(work, case: dict, place: Path, name: str) -> dict:
    """How ``work`` ends in a child: ``ok``, ``error`` with its text, ``SIGSEGV`` …, or ``hang``."""
    child = os.fork()
    if child == 0:
        with (place / f"{name}.err").open("w") as stream:
            os.dup2(stream.fileno(), 2)
            os.dup2(stream.fileno(), 1)
        try:
            work(case, place)
        except BaseException as error:
            (place / f"{name}.error").write_text(f"{type(error).__name__}: {str(error)[:1500]}")
            os._exit(1)
        os._exit(0)
    deadline = time.monotonic() + SECONDS
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return {"ending": "hang"}
        time.sleep(0.05)
    tail = (place / f"{name}.err").read_text(errors="replace")[-600:]
    if os.WIFSIGNALED(status):
        return {"ending": signal.Signals(os.WTERMSIG(status)).name, "stderr": tail}
    if os.WEXITSTATUS(status):
        said = place / f"{name}.error"
        return {"ending": "error", "text": said.read_text() if said.exists() else tail, "stderr": tail}
    return {"ending": "ok"}


def observe(case: dict) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        package = _fork(_package, case, place, "package_run")
        stage = (place / "stage").read_text() if (place / "stage").exists() else "setup"
        found = {"package": {**package, "stage": stage}}
        if case.get("program"):
            found["eager"] = _fork(_eager, case, place, "eager_run")
        if (place / "package.pt").exists() and (place / "eager.pt").exists():
            _fork(_compare, case, place, "compare")
            found["compared"] = json.loads((place / "verdict").read_text()) if (place / "verdict").exists() else None
    return found


def answers(cases: list[dict]) -> Iterator[dict]:
    """What plain PyTorch does with each case of one model, by the case's name."""
    import torch
    import torch._inductor.package
    import torch.export.pt2_archive._package  # noqa: F401

    # Before the libraries are imported: that is what these are about.
    for case in cases:
        if case["name"] == "no-setup":
            yield {"case": case["name"], **observe({**case, "program": None})}
    _prepare(cases[0])
    for case in cases:
        if case["name"] != "no-setup":
            yield {"case": case["name"], **observe(case)}


def _prepare(case: dict) -> None:
    import torch

    if case.get("setup"):
        runpy.run_path(case["setup"])
    _Ready.model = torch._inductor.aoti_load_package(case["model"])
    _Ready.module = torch.export.load(case["program"]).module()
