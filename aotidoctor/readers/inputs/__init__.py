"""Describe the inputs of a call by metadata: .pt, .npz, .safetensors, .json, a plain pickle, made-up or live values.

Nothing of an inputs file is executed, and torch and numpy are not needed.
"""
