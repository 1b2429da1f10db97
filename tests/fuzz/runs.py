"""``python -m tests.fuzz.runs --cases 200 --seed 1``: damaged packages, inputs and programs through what executes them.

Each case is a process of its own, as a user would start it, with a TMPDIR and a mark of its own: nothing may be left in
the one, and no process with the other may be alive after it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.fuzz.mutate import mutated

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from foundry import build
from foundry.models import BY_NAME
from foundry.place import cache_dir

MODELS = ("linear", "alias", "embedding", "buffered", "bag", "kwargs", "gather", "mlp", "nested", "tokens")
STATUSES = {0, 1, 3, 4, 6}
MARK = "AOTIDOCTOR_FUZZ_CASE"
LIMIT_S = 400
# What is damaged in a case, by command: most faults are in what is executed.
_DAMAGED = (("package",), ("package",), ("inputs",), ("package", "inputs"), ("program",))


def compiled() -> tuple[Path, ...]:
    """The folders of compiled models that are at hand: package, sample and exported program each."""
    folders = [build.folder(cache_dir(), BY_NAME[name]) for name in MODELS if name in BY_NAME]
    return tuple(folder for folder in folders if folder.exists())


def words_of(rng: random.Random, folder: Path, room: Path) -> tuple[str, ...]:
    """The command of a case, over files that are put into ``room``."""
    damaged = rng.choice(_DAMAGED)
    kinds = {"package": "zip", "inputs": "pickle", "program": "zip"}
    names = {"package": "model.pt2", "inputs": "sample.pt", "program": "exported.pt2"}
    for part, name in names.items():
        data = (folder / name).read_bytes()
        (room / name).write_bytes(mutated(data, kinds[part], rng) if part in damaged else data)
    given = ("model.pt2", "--inputs", "sample.pt")
    reference = ("--reference", "exported.pt2")
    match rng.randrange(8):
        case 0 | 1 | 2:
            return ("run", *given)
        case 3:
            return ("run", *given, *reference)
        case 4:
            return ("compare", *given, *reference)
        case 5 | 6:
            return ("localize", *given)
        case _:
            against = ("--against", "model.pt2") if rng.random() < 0.5 else ()
            return ("verify", "exported.pt2", *against)


def run_case(seed: int, number: int) -> tuple[tuple[str, ...], int, float, list[str]]:
    """Words, exit status, seconds and faults of one case."""
    rng = random.Random(f"runs/{seed}/{number}")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        room, temporary = Path(name) / "room", Path(name) / "tmp"
        room.mkdir()
        temporary.mkdir()
        words = (*words_of(rng, rng.choice(compiled()), room), "--timeout", "60", "--json")
        before = sorted(path.name for path in room.iterdir())
        mark = f"{os.getpid()}-{seed}-{number}"
        environ = {**os.environ, "TMPDIR": str(temporary), MARK: mark}
        began = time.monotonic()
        status, out, err = _finished([sys.executable, "-m", "aotidoctor", *words], room, environ)
        seconds = time.monotonic() - began
        faults = list(_faults(status, out, err))
        faults += [f"left in TMPDIR: {path.name}" for path in temporary.iterdir()]
        after = sorted(path.name for path in room.iterdir())
        faults += [f"files beside the package: {sorted(set(after) ^ set(before))}"] if after != before else []
        faults += [f"still alive: {process}" for process in _alive(mark)]
        return words, status, seconds, faults


def _finished(command: list[str], room: Path, environ: dict[str, str]) -> tuple[int, bytes, bytes]:
    with subprocess.Popen(command, cwd=room, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return 124, out, err
    return process.returncode, out, err


def _faults(status: int, out: bytes, err: bytes):
    if status not in STATUSES:
        yield f"exit status {status}"
    if b"Traceback (most recent call last)" in err:
        yield f"a traceback on stderr: {err[-600:].decode('utf-8', 'replace')}"
    try:
        document = json.loads(out)
    except ValueError as error:
        yield f"no JSON document: {error}"
        return
    if document.get("internal_error"):
        yield f"internal error: {document['internal_error'][-800:]}"


def _alive(mark: str) -> list[str]:
    """Processes that carry the mark of the case; their ends are awaited for a moment, then they are killed."""
    end = time.monotonic() + 5
    while (found := list(_marked(mark))) and time.monotonic() < end:
        time.sleep(0.05)
    for pid, _ in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [f"{pid} {name}" for pid, name in found]


def _marked(mark: str):
    wanted = f"{MARK}={mark}".encode()
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with suppress(OSError):
                if wanted in (place / "environ").read_bytes().split(b"\0"):
                    yield int(place.name), (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()


def main() -> None:
    """Run the cases; exit status 1 where one of them is bad."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    bad, slowest, statuses = 0, 0.0, Counter[int]()
    for number in range(given.first, given.first + given.cases):
        words, status, seconds, faults = run_case(given.seed, number)
        statuses[status] += 1
        slowest = max(slowest, seconds)
        if faults:
            bad += 1
            sys.stdout.write(f"case {given.seed}/{number}: {' '.join(words)}: {' | '.join(faults)}\n")
            sys.stdout.flush()
    figures = f"{given.cases} cases: {bad} bad; statuses {dict(statuses)}; slowest {slowest:.0f} s"
    sys.stdout.write(f"seed {given.seed}: {figures}\n")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
