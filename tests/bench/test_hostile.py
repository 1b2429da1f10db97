"""What a stranger wrote to keep a reader busy takes no longer than its size. Asserted far from what it takes."""

from __future__ import annotations

import io
import zipfile

import pytest

from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.inputs.read_inputs import read_inputs
from tests.unit.readers.contract.conftest import artifact_of, entry_of, recorded
from tests.unit.readers.contract.test_hostile_wrappers import STATEMENTS, strange

pytestmark = pytest.mark.bench


def seconds(benchmark, function, *words) -> float:
    """The least of three, which other load on the machine moves least."""
    benchmark.pedantic(function, words, rounds=3)
    return benchmark.stats.stats.min


@pytest.mark.parametrize("kind", sorted(STATEMENTS))
def test_a_strange_statement_takes_no_longer_than_its_length(kind, benchmark):
    entry = entry_of(strange(kind, 8))
    # 20 KB take milliseconds; a square of them would take seconds, and four times that when doubled.
    assert seconds(benchmark, read_contract, artifact_of(entry), entry) < 8 * 0.25


def test_five_megabytes_are_read_in_linear_time(benchmark):
    text = recorded("customop")
    at, end = text.index("    // Topologically Sorted"), text.index("    output_handles[0]")
    entry = entry_of(text[:end] + text[at:end] * (5_000_000 // (end - at)) + text[end:])
    assert seconds(benchmark, read_contract, artifact_of(entry), entry) < 20


def test_colliding_keys_take_no_time(tmp_path, benchmark):
    keys = b"".join(b"\x8a\x0a" + (index * ((1 << 61) - 1)).to_bytes(10, "little") + b"N" for index in range(20_000))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}(" + keys + b"u.")
        archive.writestr("archive/version", "3\n")
    (tmp_path / "sample.pt").write_bytes(out.getvalue())
    assert seconds(benchmark, read_inputs, str(tmp_path / "sample.pt")) < 5
