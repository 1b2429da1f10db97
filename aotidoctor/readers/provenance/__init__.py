"""Compare a package with an exported program: call, tensors, outputs, constants and operators.

Pure, over facts that were read from both; checks and ``verify --package`` share it.
"""
