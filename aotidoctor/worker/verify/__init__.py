"""Verify an exported program: every rule that it breaks, where PyTorch's own verifier stops at the first.

``program_load`` reads the archive with the verifier off. ``program_view`` shows the rebuilt program to the rules of
``aotidoctor.program``, which judge the archive as well, without torch. What only the installed torch can answer is
asked by ``graph_rules`` and, for compiling, by ``verify_program``.
"""
