"""Names that are imported when they are asked for: all there, where the type checker sees them, and no others."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module

import pytest

STAGES = ("api", "testing")


@pytest.mark.parametrize("stage", STAGES)
def test_every_public_name_is_what_the_type_checker_sees(stage):
    package = import_module(f"aotidoctor.{stage}")
    seen = {}
    for node in ast.walk(ast.parse(inspect.getsource(package))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"aotidoctor.{stage}."):
            seen |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    assert seen.keys() == set(package.__all__)
    for name, (module, attribute) in seen.items():
        assert getattr(package, name) is getattr(import_module(module), attribute)


@pytest.mark.parametrize("stage", STAGES)
def test_a_name_that_is_not_there(stage):
    with pytest.raises(AttributeError, match=f"module 'aotidoctor.{stage}' has no attribute 'nothing'"):
        import_module(f"aotidoctor.{stage}").nothing  # noqa: B018
