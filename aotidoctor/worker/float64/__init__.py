"""Tell whether two results differ by more than rounding: the float64 run, and how both are judged.

These modules import torch at their top; nothing else of the worker does.
"""
