"""The machine of the tests where what it has would be told: packages were compiled elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.readers.host import host_facts

# What those had that compiled the packages of the test data.
UNITS = frozenset(
    [
        "avx2",
        "fma",
        "avx512f",
        "avx512dq",
        "avx512bw",
        "avx512vl",
        "avx512_vnni",
        "avx512_bf16",
        "amx_tile",
        "amx_bf16",
        "amx_int8",
    ]
)

# What the code of packages in the test data executes: elsewhere it ends by SIGILL, as ``check`` says.
EXECUTED = frozenset(["avx512f", "avx512dq", "avx512bw", "avx512vl"])
MISSING = sorted(EXECUTED - host_facts.read_cpu().flags)
needs_vector_units = pytest.mark.skipif(bool(MISSING), reason=f"runs packages that need {', '.join(MISSING)}")


def with_every_vector_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine, as if it had those, too: else the first thing said of a package is that it cannot run here."""
    here = host_facts.read_cpu()
    monkeypatch.setattr(host_facts, "read_cpu", lambda: replace(here, flags=here.flags | UNITS))
