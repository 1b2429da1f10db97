"""One case: a command over damaged files, made of nothing but its number and the seed."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from tests.fuzz import seeds
from tests.fuzz.mutate import mutated
from tests.fuzz.server import Answer, ask

_FORMATS = ("md", "html", "sarif", "junit", "rich", "github")


def run_case(seed: int, number: int, asked: Callable[[tuple[str, ...], Path], Answer] = ask) -> Answer:
    """Make case ``number`` of ``seed`` in a temporary folder and ask it, without more in a fork of its own."""
    rng = random.Random(f"{seed}/{number}")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        folder = Path(name)
        words = rng.choices(list(_MAKERS), weights=_MAKERS.values())[0](folder, rng)
        shown = (
            ("--json",) if words[0] in ("diff", "map") or rng.random() < 0.85 else ("--format", rng.choice(_FORMATS))
        )
        return asked((*words, *shown), folder)


def _put(folder: Path, seed: seeds.Seed, rng: random.Random, *, damaged: bool = True, name: str | None = None) -> str:
    data = mutated(seed.data, seed.kind, rng) if damaged else seed.data
    (folder / (name or seed.name)).write_bytes(data)
    return name or seed.name


def _package(
    folder: Path, rng: random.Random, made: Callable[[], tuple[seeds.Seed, ...]] = seeds.packages
) -> tuple[str, ...]:
    words = (rng.choice(("check", "inspect", "compat")), _put(folder, rng.choice(made()), rng))
    if words[0] == "check" and rng.random() < 0.6:
        words += ("--inputs", _put(folder, rng.choice(seeds.inputs()), rng, damaged=rng.random() < 0.3))
    return words


def _map(folder: Path, rng: random.Random) -> tuple[str, ...]:
    package = _put(folder, rng.choice(seeds.packages()), rng)
    if rng.random() < 0.5:
        return ("map", package)
    return ("map", package, "--reference", _put(folder, rng.choice(seeds.programs()), rng, damaged=rng.random() < 0.5))


def _inputs(folder: Path, rng: random.Random) -> tuple[str, ...]:
    package = _put(folder, rng.choice(seeds.packages()), rng, damaged=False)
    return ("check", package, "--inputs", _put(folder, rng.choice(seeds.inputs()), rng))


def _log(folder: Path, rng: random.Random) -> tuple[str, ...]:
    words = ("classify", _put(folder, rng.choice(seeds.logs()), rng))
    if rng.random() < 0.3:
        words += ("--package", _put(folder, rng.choice(seeds.packages()), rng, damaged=rng.random() < 0.3))
    return words


def _served(folder: Path, rng: random.Random) -> tuple[str, ...]:
    (folder / "mlp" / "1").mkdir(parents=True)
    _put(folder / "mlp" / "1", rng.choice(seeds.packages()), rng, damaged=rng.random() < 0.3, name="model.pt2")
    config = seeds.Seed("pbtxt", "config.pbtxt", seeds.CONFIG.encode())
    _put(folder / "mlp", config, rng)
    return ("triton", "mlp")


def _program(folder: Path, rng: random.Random) -> tuple[str, ...]:
    return (rng.choice(("inspect", "check", "verify", "verify")), _put(folder, rng.choice(seeds.programs()), rng))


def _executorch(folder: Path, rng: random.Random) -> tuple[str, ...]:
    program = _put(folder, rng.choice(seeds.executorch()), rng)
    if rng.random() < 0.5:
        return (rng.choice(("inspect", "check", "compat")), program)
    data = [seed for seed in seeds.executorch() if seed.name.endswith(".ptd")]
    words = ("check", program, "--data", _put(folder, rng.choice(data), rng, name="data.ptd"), "--verify-data")
    if rng.random() < 0.5:
        return words
    (folder / "x.json").write_bytes(
        b'{"args": [{"tensor": {"dtype": "float32", "shape": [4, 32], "low": 0, "high": 1}}]}'
    )
    return (*words, "--inputs", "x.json", "--host", rng.choice(("here", "executorch-1.3", "windows")))


def _precompiled(folder: Path, rng: random.Random) -> tuple[str, ...]:
    return _package(folder, rng, seeds.precompiled)


def _saved(folder: Path, rng: random.Random) -> tuple[str, ...]:
    report = seeds.Seed("json", "report.json", rng.choice(_reports()))
    match rng.randrange(4):
        case 0:
            return ("analyze", _put(folder, report, rng))
        case 3:
            return ("compare", "--from", _put(folder, report, rng), "--rtol", "1e-3")
        case 1:
            other = _put(folder, report, rng, damaged=False, name="other.json")
            return ("diff", _put(folder, report, rng), other)
        case _:
            other = _put(folder, rng.choice(seeds.packages()), rng, damaged=rng.random() < 0.5)
            return ("diff", _put(folder, report, rng), other)


@lru_cache(maxsize=1)
def _reports() -> tuple[bytes, ...]:
    """Reports of undamaged files, by the command line itself."""
    made = []
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        folder = Path(name)
        for at, package in enumerate(seeds.packages()[:6]):
            (folder / "model.pt2").write_bytes(package.data)
            (folder / "x.json").write_bytes(b'{"args": [[1, 2]], "kwargs": {"a": [1.5]}}')
            words = ("check", "model.pt2", "--inputs", "x.json") if at % 2 else ("inspect", "model.pt2")
            made.append(ask((*words, "--json"), folder).stdout)
        for log in seeds.logs()[:3]:
            (folder / "x.log").write_bytes(log.data)
            made.append(ask(("classify", "x.log", "--json"), folder).stdout)
    return tuple(made)


_MAKERS = {
    _package: 6, _inputs: 5, _log: 3, _served: 3, _program: 2, _executorch: 3, _precompiled: 3, _saved: 4, _map: 2,
}  # fmt: skip
