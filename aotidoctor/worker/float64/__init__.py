"""Judge whether two results differ by more than rounding, against a float64 run.

These modules import torch at the top; no others of the worker do.
"""
