"""``aotidoctor contract``: what the compiled code expects of its caller, as something to ship.

``read`` takes it from the package, ``python``, ``cpp``, ``json_schema`` write it; ``validator.py`` and ``validator.h``
are the parts of what is written that are the same for every package.
"""
