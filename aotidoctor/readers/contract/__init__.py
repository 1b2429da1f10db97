"""Artifact to ``Contract``: what the compiled code expects of its caller and of its host. Nothing is executed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model.on_demand import names_of

if TYPE_CHECKING:
    from aotidoctor.readers.contract.leaf_resolution import resolve_leaves
    from aotidoctor.readers.contract.read import read_contract
    from aotidoctor.readers.contract.recovered import recovered_contract

__all__ = ["read_contract", "recovered_contract", "resolve_leaves"]

_PLACES = {"read_contract": "read", "recovered_contract": "recovered", "resolve_leaves": "leaf_resolution"}
__getattr__ = names_of(__name__, _PLACES)
