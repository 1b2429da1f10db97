"""One launch lane by lane: Triton's interpreter with checked memory.

``kernel_text`` makes functions of a kernel's text, ``launch`` runs them over its grid, in ``blocks`` of as many
programs as fit. ``memory`` checks every lane of every access, ``races`` remembers who wrote what, ``lane_findings`` and
``first_nan`` say what is wrong.
"""
