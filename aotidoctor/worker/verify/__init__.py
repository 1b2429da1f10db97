"""Job ``verify``: every rule that an exported program breaks, where PyTorch's own verifier stops at the first.

``load`` reads the archive with the verifier off, ``graph`` and ``signature_*`` judge by its rules, the ``ahead_*``
modules look for what makes AOTInductor fail later. Records become findings in ``aotidoctor.program``.
"""
