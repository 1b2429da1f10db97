"""``aotidoctor fleet`` on 100,000 lines: processor time and memory."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tests.bench.measure import peak_memory, timed
from tests.unit.fleet.fleets import CAUSES, failing, healthy, write

pytestmark = pytest.mark.bench
LINES = 100_000
MOST_SECONDS, MOST_MEMORY = 20.0, 200 << 20


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A tenth of the items fail, in 40 clusters, on five hosts, with a dozen features each."""
    found = []
    for n in range(LINES):
        facts = {
            "kind": "aoti", "modified": f"2026-{1 + n % 9:02}-{1 + n % 28:02}", "device": "cpu", "machine": "x86_64",
            "built_torch": f"2.{8 + n % 6}", "isa": "avx2 fma", "custom_ops": n % 3, "host_torch": "2.13.0",
            "host_isa": ("avx2", "avx512", "amx")[n % 3], "host_glibc": "2.36",
        }  # fmt: skip
        more = {
            "facts": facts, "labels": {"team": "abcdef"[n % 6], "build": str(n // 1000)}, "host": f"host-{n % 5}", "size": n * 1000,
            "sha256": "0" * 64, "key": "1" * 64, "started": f"2026-09-{1 + n % 28:02}T10:00:00Z", "seconds": n % 97 / 100,
        }  # fmt: skip
        name = f"models/team-{n % 50}/model-{n:06}.pt2"
        bad = n % 10 == 0
        found.append(
            failing(name, CAUSES[n // 10 % 4], f"args[{n // 10 % 40}]", **more, report=None)
            if bad
            else healthy(name, **more)
        )
    return write(tmp_path_factory.mktemp("fleet") / "results", found)


@pytest.mark.parametrize("kind", ["json", "html", "csv", "baseline"])
def test_a_fleet_of_100_000(results, kind, record_property):
    words = ["--format", kind] if kind != "baseline" else ["--json", "--baseline", results, "--fail-on-new"]
    spent = timed([sys.executable, "-m", "aotidoctor", "fleet", results, *words], {**os.environ})
    record_property("cpu_s", round(spent.cpu, 1))
    print(f"fleet {kind}: {spent.cpu:.1f} s of CPU")
    assert spent.status == 0
    assert spent.cpu <= MOST_SECONDS
    if kind in ("json", "baseline"):
        found = json.loads(spent.stdout)
        assert (found["items"], found["failing"], len(found["clusters"])) == (LINES, LINES // 10, 40)


def test_memory(results, record_property):
    memory = peak_memory([sys.executable, "-m", "aotidoctor", "fleet", results, "--format", "html"], {**os.environ})
    record_property("memory_mb", memory >> 20)
    print(f"fleet html: {memory >> 20} MB")
    assert memory <= MOST_MEMORY
