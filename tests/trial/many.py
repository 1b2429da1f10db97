"""One stage for many models: ``python -m tests.trial.many build|cases JOBS.json``, a line per model as it ends.

Each model has a fork of one process that imported torch, and for ``build`` the libraries: importing them takes as long
as a small model does, and a model that crashes takes nothing but its fork along.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

SECONDS = {"build": 1500, "cases": 1500}


def _build(job: dict) -> None:
    from tests.trial import build

    build.make(Path(job["folder"]), job["name"], job["family"])


def _cases(job: dict) -> None:
    """``cases-N.json``: healthy samples first, then faults, each with what plain PyTorch does with it."""
    from tests.trial import faults, plain

    place, folder = Path(job["place"]), Path(job["folder"])
    # What the samples' classes need is imported by a fork: the case without a setup must find them missing.
    if apart(lambda: faults.write(place, folder, count=job["faults"], turn=job["turn"]), 300, place / "faults.log"):
        raise RuntimeError("the faults could not be made: see faults.log")
    cases = [
        {"name": f"sample{number}", "inputs": str(folder / f"sample{number}.pt"), "causes": [], "subjects": []}
        for number in range(json.loads((folder / "facts.json").read_text())["samples"])
    ]
    cases += json.loads((place / "faults.json").read_text())
    setup = str(folder / "setup.py") if (folder / "setup.py").exists() else None
    files = {"model": str(folder / "model.pt2"), "program": str(folder / "program.pt2"), "setup": setup}
    asked = [{**case, **files} for case in cases]
    asked += [{**asked[0], "name": "no-setup", "setup": None}] if setup else []
    told = {line["case"]: line for line in plain.answers(asked)}
    untold = told.get("no-setup", {}).get("package", {})
    if untold.get("ending") == "error":
        # Operators of the library are missed at the load, its classes with the first call.
        missing = "custom-op-missing" if "Could not find schema" in json.dumps(untold) else "pytree-class-missing"
        cases.append({**cases[0], "name": "no-setup", "causes": [missing], "no_setup": True})
    cases = [{**case, "plain": told[case["name"]]} for case in cases]
    (place / f"cases-{job['faults']}.json").write_text(json.dumps(cases, indent=1))


def apart(work, seconds: float, log: Path) -> int:
    """The exit status of ``work`` in a fork, its output in ``log``; after ``seconds`` it ends with what it started."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        with log.open("w") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        try:
            work()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    deadline = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -signal.SIGKILL
        time.sleep(0.05)


def main() -> None:
    # No pool of compiling processes: a package for the CPU has nothing for them, and each of them imports torch.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    stage, jobs = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    import torch._inductor.package
    import torch.export.pt2_archive._package  # noqa: F401

    if stage == "build":
        from tests.trial import registry

        registry.load(tuple(job["name"] for job in jobs), tuple({job["family"] for job in jobs}))
    for job in jobs:
        log = Path(job["folder"] if stage == "build" else job["place"]) / f"{stage}.log"
        began = time.monotonic()
        status = apart(lambda job=job: {"build": _build, "cases": _cases}[stage](job), SECONDS[stage], log)
        said = "made" if status == 0 else f"status {status}: {log.read_text(errors='replace')[-400:]}"
        print(f"{job['name']}: {stage}: {said} in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
