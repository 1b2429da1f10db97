"""Job ``verify``: every rule that an exported program breaks, where PyTorch's own verifier stops at the first.

``load`` reads the archive with the verifier off. ``signature``, ``values`` and ``state`` show the rebuilt program to
the rules of ``aotidoctor.program``, which judge the archive as well, without torch. What only the installed torch can
answer is asked by ``graph`` and its parts, and by the ``ahead_*`` modules.
"""
