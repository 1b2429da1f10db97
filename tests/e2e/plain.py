"""How plain PyTorch behaves with each case: ``python tests/e2e/plain.py [NAME...]``, ``--record`` to keep the answers.

Per case a forked child makes it, sets it up, loads it through ``aoti_load_package`` and calls it three times, as a user
would; another child gives the same inputs to the exported program. ``plain.json`` keeps the record, so that a case
whose fault went away with a new torch is noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import runpy
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from foundry import build, ops
from foundry.cases import Call, Case, Kit
from foundry.models import BY_NAME as MODELS
from foundry.place import cache_dir
from foundry.registry import BY_NAME, CASES

RECORD = Path(__file__).with_name("plain.json")
SECONDS = 15
SECONDS_TO_COMPILE = 120


def _load_inputs(call: Call):
    import torch

    value = torch.load(call.inputs, weights_only=True)
    match value:
        case {"args": args, "kwargs": kwargs}:
            return args, kwargs
        case (tuple() as args, dict() as kwargs) if len(value) == 2 and all(isinstance(key, str) for key in kwargs):
            return args, kwargs
        case dict():
            return (), value
        case tuple() | list():
            return value, {}
        case _:
            return (value,), {}


def _set_up(call: Call):
    import torch

    options = dict(zip(call.options[::2], call.options[1::2], strict=True))
    torch.set_num_threads(int(options.get("--threads", os.cpu_count() or 1)))
    if "--custom-op-library" in options:
        torch.ops.load_library(options["--custom-op-library"])
    space = runpy.run_path(str(call.setup)) if call.setup else {}
    return options, space


def _digest(value) -> str:
    import torch

    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    parts = [leaf.contiguous().view(-1).view(torch.uint8).numpy().tobytes() for leaf in leaves]
    finite = all(bool(torch.isfinite(leaf).all()) for leaf in leaves)
    return hashlib.sha256(b"|".join(parts)).hexdigest()[:12] + ("" if finite else " non-finite")


def _observe(call: Call, say: Callable[[str], None]) -> None:
    import torch
    from torch._inductor.package import load_package

    say("stage setup")
    options, space = _set_up(call)
    say("stage inputs")
    if call.inputs is None or call.inputs.suffix not in (".pt", ".pt2"):
        say("result not tried: plain PyTorch has no reader for this file")
        return
    args, kwargs = _load_inputs(call)
    say("stage load")
    if call.model.is_dir():
        model = torch._C._aoti.AOTIModelPackageLoader(str(call.model), "model", False, 1, -1)
        say("stage run1")
        model.run([leaf for leaf in torch.utils._pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)])
        say("result ok")
        return
    # What aoti_load_package calls, with the name of the model.
    model = load_package(str(call.model), options.get("--model-name", "model"))
    if "after_load" in space:
        say("stage after_load")
        space["after_load"](model)
    digests, kept = [], []
    for turn in (1, 2, 3):
        say(f"stage run{turn}")
        kept.append(model(*args, **kwargs))
        digests.append(_digest(kept[-1]))
    say("stage end")
    say("result ok" if len(set(digests)) == 1 else "result returns, differs between calls")
    say(f"digest {digests[0]}")
    torch.save(kept[0], call.model.with_name("outputs.pt"))


def _good_operators(kit: Kit, case: Case) -> None:
    import torch

    needs = MODELS[case.base].needs
    if needs == "cpp":
        torch.ops.load_library(str(kit.library))
    elif needs is not None:
        source = ops.FINE if needs == "fine" else ops.python_op()
        exec(compile(source, needs, "exec"), {"__name__": needs})


def _refer(kit: Kit, case: Case, call: Call, say: Callable[[str], None]) -> None:
    import torch

    say("stage reference")
    try:
        _good_operators(kit, case)
        args, kwargs = _load_inputs(call)
        expected = torch.export.load(str(kit.exported(case.base))).module()(*args, **kwargs)
    except BaseException as error:
        say(f"result reference raises {type(error).__name__}: {_scrub((str(error).splitlines() or [''])[0])}")
        return
    outputs = call.model.with_name("outputs.pt")
    if not outputs.exists():
        say("result reference ok")
        return
    got = torch.utils._pytree.tree_leaves(torch.load(outputs, weights_only=False))
    wanted = torch.utils._pytree.tree_leaves(expected)
    wide = torch.complex128  # the exported program promotes a wrong dtype: compare values
    same = len(got) == len(wanted) and all(
        one.shape == other.shape and torch.allclose(one.to(wide), other.to(wide), rtol=1e-3, atol=1e-4, equal_nan=True)
        for one, other in zip(got, wanted, strict=False)
    )
    say("result same as reference" if same else "result differs from reference")


def _guarded(body: Callable[[Callable[[str], None]], None], say: Callable[[str], None], errors: Path) -> None:
    sink = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    try:
        body(say)
    except BaseException as error:
        say(f"result {_first_line(error)}")
    say("done")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {_scrub(lines[0])}"


def _watch(reader: int, pid: int, seconds: float) -> tuple[list[str], str]:
    data, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline:
        ready, _, _ = select.select([reader], [], [], 0.2)
        chunk = os.read(reader, 65536) if ready else None
        if chunk == b"":
            break
        data += chunk or b""
    else:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return data.decode().splitlines(), "hang"
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return data.decode().splitlines(), signal.Signals(os.WTERMSIG(status)).name
    return data.decode().splitlines(), f"exit({os.WEXITSTATUS(status)})"


def _scrub(text: str) -> str:
    """Without what changes from run to run: temporary names, colours, addresses."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"/\S*/|0x[0-9a-f]+", "…/", text)
    return re.sub(r"\bc[a-z2-7]{40,}", "HASH", text)[:110]


def _child(
    body: Callable[[Callable[[str], None]], None], where: Path, env: dict[str, str], seconds: float
) -> tuple[list[str], str]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.environ.update(env)

        def say(line: str) -> None:
            os.write(writer, f"{line}\n".encode())

        _guarded(body, say, where / "child.log")
        os.close(writer)
        sys.stdout.flush()
        os._exit(0)
    os.close(writer)
    lines, ending = _watch(reader, pid, seconds)
    os.close(reader)
    return lines, ending


def _behaviour(lines: list[str], ending: str) -> str:
    stage = next((line[6:] for line in reversed(lines) if line.startswith("stage ")), "start")
    if "done" not in lines:
        return f"{ending} at {stage}"
    result = next((line[7:] for line in lines if line.startswith("result ")), "nothing")
    finite = "" if not any("non-finite" in line for line in lines) else ", non-finite output"
    at = "" if stage in ("end", "reference") or result.startswith(("ok", "returns", "not tried")) else f" at {stage}"
    return f"{result}{finite}{at}"


def observe(case: Case, kit: Kit) -> dict[str, str]:
    """``{"plain": how plain PyTorch behaves, "reference": what the exported program says}``."""
    with tempfile.TemporaryDirectory(prefix="plain-") as temporary:
        where = Path(temporary)
        (where / "case").mkdir()
        (where / "tmp").mkdir()

        def run(say: Callable[[str], None]) -> None:
            say("stage make")
            call = case.make(kit, where / "case")
            os.environ.update(call.env)
            _observe(call, say)

        def refer(say: Callable[[str], None]) -> None:
            room = where / "case2"
            room.mkdir()
            call = case.make(kit, room)
            if (where / "case/outputs.pt").exists():
                shutil.copy(where / "case/outputs.pt", call.model.with_name("outputs.pt"))
            _refer(kit, case, call, say)

        env = {"TMPDIR": str(where / "tmp")}
        seconds = SECONDS_TO_COMPILE if case.base == "cpponly" else SECONDS
        seen = {
            "plain": _behaviour(*_child(run, where, env, seconds)),
            "reference": _behaviour(*_child(refer, where, env, seconds)),
        }
        for folder in where.rglob("*"):
            if folder.is_dir():
                folder.chmod(0o755)
    return seen


def main(arguments: list[str]) -> int:
    """Print and, with ``--record``, keep how the cases behave; the status says whether a record was contradicted."""
    import torch

    torch.set_num_threads(1)  # a forked child must not inherit a thread pool
    import torch._inductor.package
    import torch.export

    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    kit = Kit(cache=cache_dir())
    lacking = build.missing(kit.cache)
    assert not lacking, lacking
    torch.export.load(str(kit.exported("linear"))).module()  # its imports, once for all children
    chosen = [BY_NAME[name] for name in arguments if name != "--record"] or list(CASES)
    contradicted = 0
    for case in chosen:
        seen = observe(case, kit)
        known = record.get(case.name)
        contradicted += known is not None and known["plain"] != seen["plain"]
        mark = "" if known in (None, seen) else f"   [was: {known['plain']} | {known['reference']}]"
        print(f"{case.name} | {case.cause or 'healthy'} | {seen['plain']} | {seen['reference']}{mark}", flush=True)
        record[case.name] = seen
    if "--record" in arguments:
        kept = {case.name: record[case.name] for case in CASES if case.name in record}
        RECORD.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    return int(contradicted > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
