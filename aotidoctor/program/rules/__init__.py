"""The rules of ``aotidoctor verify``, in the order of their codes, each with its manual page; a file for each family.

G and S are those of PyTorch's own verifier (graph and signature), A is what makes AOTInductor fail later, L is
loading, P is ``--package``: a package and a program.
"""

from __future__ import annotations

from aotidoctor.model.evidence import ExportRule
from aotidoctor.program.rules import ahead, graph, loading, origin, signature

RULES: tuple[ExportRule, ...] = (*graph.RULES, *signature.RULES, *ahead.RULES, *loading.RULES)
BY_CODE = {rule.code: rule for rule in (*RULES, *origin.RULES)}
