"""What each call of a loaded package reads and writes, seen while it runs: no second compile, no printer.

``prototypes`` knows the signatures of kernels and shims, ``handles`` turns what a call gets into tensors, ``watch``
follows a run, and ``candidates`` compares what was written with the values of a reference program.
"""
