"""The tool tried inside and across releases of PyTorch. Not part of the test suite: see ``run``."""
