"""The bench of ``aotidoctor batch``: ``python -m tests.bench.fleet --items 10000`` (``make bench-fleet``).

A fleet is made by editing compiled packages, so that no two are alike: a member more in each, some with a byte changed
or cut off. What is compared runs in turns, and each figure is a ratio within one run; seconds are of this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).parents[2]
BASES = 30
SAMPLE = 20
# What the figures should be: at most, or (with a minus) at least.
AIMS = {
    "cold_s_per_10000": 600.0,
    "unchanged_s_per_10000": 60.0,
    "per item, pool : single": 0.35,
    "two workers : one, times faster": -1.8,
    "Dask : pool": 1.15,
    "parent at 100,000 lines, MB": 200.0,
}


def bases() -> list[Path]:
    """Compiled packages: those of the end-to-end tests where they have been made, else those in the repository."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aotidoctor-tests"
    found = sorted(cache.glob("*-*/model.pt2"), key=lambda path: path.stat().st_size)
    found += sorted((ROOT / "tests" / "data").glob("**/*.pt2"))
    return [path for path in found if path.stat().st_size < 4 << 20][:BASES]


def make_fleet(folder: Path, count: int) -> None:
    """``count`` packages that all differ; about one in ten is damaged."""
    folder.mkdir()
    chance, originals = random.Random(0), bases()
    for at in range(count):
        path = folder / f"{at:06}.pt2"
        shutil.copyfile(originals[at % len(originals)], path)
        with zipfile.ZipFile(path, "a") as archive:
            root = archive.namelist()[0].partition("/")[0]
            archive.writestr(f"{root}/data/extra/number", str(at))
        if at % 20 == 7:
            os.truncate(path, chance.randrange(1000, path.stat().st_size))
        elif at % 20 == 17:
            with path.open("r+b") as stream:
                stream.seek(path.stat().st_size // 2)
                stream.write(b"damaged")


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "aotidoctor", *map(str, words)]


def timed(words: Sequence[str], folder: Path) -> tuple[float, float, float]:
    """Seconds of wall clock, of processor time with all children, and the peak of the process itself in MB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, used.ru_maxrss / 1024


def batch(folder: Path, output: str, *more: object, cache: str | None = None) -> tuple[float, float, float]:
    kept = ("--cache", cache) if cache is not None else ("--no-cache",)
    return timed(command("batch", "m", "-o", output, "-q", *kept, *more), folder)


def measure(items: int, rounds: int, lines: int) -> Iterator[tuple[str, float]]:
    """The figures, as they are found."""
    with tempfile.TemporaryDirectory(prefix="aotidoctor-bench-") as name:
        folder = Path(name)
        make_fleet(folder / "m", items)
        share = 10_000 / items
        yield "cold_s_per_10000", batch(folder, "cold", "--jobs", 2, cache="c.sqlite")[0] * share
        yield "unchanged_s_per_10000", batch(folder, "cold", "--jobs", 2, cache="c.sqlite")[0] * share
        yield "from_cache_s_per_10000", batch(folder, "other", "--jobs", 2, cache="c.sqlite")[0] * share
        sample = random.Random(1).sample(sorted((folder / "m").iterdir()), min(SAMPLE, items))
        took: dict[str, list[tuple[float, float]]] = {"single": [], "one": [], "two": [], "dask": []}
        for at in range(rounds):
            alone = [timed(command("check", path, "-q"), folder) for path in sample]
            took["single"].append((mean(one[0] for one in alone), mean(one[1] for one in alone)))
            took["one"].append(batch(folder, f"one{at}", "--jobs", 1)[:2])
            took["two"].append(batch(folder, f"two{at}", "--jobs", 2)[:2])
            took["dask"].append(batch(folder, f"dask{at}", "--cluster", "local:2")[:2])
        wall = {name: min(one[0] for one in each) for name, each in took.items()}
        cpu = {name: min(one[1] for one in each) for name, each in took.items()}
        yield "single check, s", wall["single"]
        yield "per item, pool : single", wall["one"] / items / wall["single"]
        yield "per item, pool : single, processor", cpu["one"] / items / cpu["single"]
        yield "two workers : one, times faster", wall["one"] / wall["two"]
        yield "Dask : pool", wall["dask"] / wall["two"]
        yield "Dask : pool, processor", cpu["dask"] / cpu["two"]
        yield "parent at 100,000 lines, MB", parent_memory(folder, lines)


def parent_memory(folder: Path, lines: int) -> float:
    """Peak of the process that keeps the results, with so many lines. The items need nobody who judges them."""
    with (folder / "big.jsonl").open("w") as stream:
        for at in range(lines):
            stream.write(json.dumps({"package": f"models/{at:06}/model.pt2", "host": "no-such-host"}) + "\n")
    return timed(command("batch", "big.jsonl", "-o", "big", "-q", "--no-cache"), folder)[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--lines", type=int, default=100_000)
    given = parser.parse_args()
    print(f"{given.items:,} packages, {given.rounds} rounds, load {os.getloadavg()[0]:.1f}", flush=True)
    for name, value in measure(given.items, given.rounds, given.lines):
        aim = AIMS.get(name)
        told = "" if aim is None else f"   (aim: at {'least' if aim < 0 else 'most'} {abs(aim):g})"
        print(f"{name:36} {value:10.3f}{told}", flush=True)


if __name__ == "__main__":
    main()
