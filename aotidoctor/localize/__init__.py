"""Locate a failure in the compiled code from what child runs left behind. Pure; imports ``model`` only.

One file per kind of trail: call trace, stacks, values of kernels, static facts of the package.
"""
