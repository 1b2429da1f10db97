"""Explain a failed check in one line: kernel, index and bound, input element, operator, source line.

The texts of kernels are followed statement by statement (``kernels.kernel_flow``) to small trees of values; a check is
then computed for every iteration of its loops (``kernels.value_trees``) from the integers that the caller passed.
"""

from aotidoctor.localize.blame.chain import chain_of
from aotidoctor.localize.blame.failing_elements import Failure, failure_of
from aotidoctor.localize.blame.indirect_failures import (
    DeviceAssert,
    chains_in,
    device_asserts,
    failures_in,
    unchecked_chain,
)

__all__ = [
    "DeviceAssert",
    "Failure",
    "chain_of",
    "chains_in",
    "device_asserts",
    "failure_of",
    "failures_in",
    "unchecked_chain",
]
