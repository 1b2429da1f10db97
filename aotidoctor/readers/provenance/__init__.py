"""Whether a package was compiled from an exported program: what the two say of call, tensors, outputs and constants.

Pure, over facts that both were read for; checks and ``verify --against`` share it.
"""
