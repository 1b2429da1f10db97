"""Artifact to ``Contract``: what the compiled code expects of its caller and of its host. Nothing is executed."""

from aotidoctor.contract.read import read_contract
from aotidoctor.contract.recovered import recovered_contract
from aotidoctor.contract.settle import settle_leaves

__all__ = ["read_contract", "recovered_contract", "settle_leaves"]
