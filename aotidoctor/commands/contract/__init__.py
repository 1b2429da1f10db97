"""Write the contract between a package and its caller as a file to ship (``aotidoctor contract``).

``validator.py`` and ``validator.h`` are the parts of the written files that are the same for every package.
"""
