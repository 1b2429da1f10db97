"""An agent that may execute: the cause is proved in a child, by the client of the official package."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.optional import optional

pytestmark = [pytest.mark.torch]
mcp = optional("mcp", reason="the package mcp is not installed")
ROOT = Path(__file__).parents[2]


def test_run(packages, tmp_path):
    import torch

    torch.save(({"ids": 0}, 1), tmp_path / "wrong.pt")
    (tmp_path / "model.pt2").write_bytes(packages.package("mlp").read_bytes())
    (tmp_path / "good.pt").write_bytes(packages.sample_path("mlp").read_bytes())

    async def main():
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = ["-m", "aotidoctor", "mcp", "--root", str(tmp_path), "--allow-run"]
        server = mcp.StdioServerParameters(command=sys.executable, args=command, env=environ)
        async with mcp.Client(server, read_timeout_seconds=240) as client:
            asked = ({"package": "model.pt2", "inputs": name} for name in ("good.pt", "wrong.pt"))
            return [(await client.call_tool("run", given)).structured_content for given in asked]

    good, wrong = asyncio.run(main())
    assert (good["verdict"], good["exit_status"]) == ("healthy", 0)
    assert {run["id"] for run in good["runs"]} <= set(good["evidence"])
    assert wrong["exit_status"] in (1, 3)
    assert wrong["diagnoses"][0]["evidence"]
