"""Verify an exported program and report every violation; PyTorch's own verifier stops at the first.

``program_load`` reads the archive with the verifier off. ``program_view`` describes the rebuilt program for the rules
of ``aotidoctor.program``, which judge the archive as well, without torch. Rules that need the installed torch are in
``graph_rules`` and, for compiling, in ``verify_program``. ``try_remedy`` exports once more, ``cut_program`` a part.
"""
