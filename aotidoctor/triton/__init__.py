"""Triton Inference Server: would it serve this package with this config.pbtxt, and what would it answer?

Pure reading: nothing is executed, and torch is not needed.
"""
