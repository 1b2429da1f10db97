"""The table of jobs names functions that exist."""

from __future__ import annotations

import ast
from pathlib import Path

import aotidoctor
from aotidoctor.worker import JOBS

ROOT = Path(aotidoctor.__file__).parent.parent


def test_every_job_is_a_function_of_its_module():
    """Read, not imported: some need torch."""
    for name, (module, function, _) in JOBS.items():
        tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name
