"""Which leaf of the call spec is which input.

The spec counts all leaves, the runtime takes tensors only, and nothing in a package says which leaves are tensors. The
generated names do: ``argN_1`` was placeholder N of the exported graph, where parameters and buffers come first and then
one placeholder per leaf. So leaf = N - offset, with one unknown offset for all. It is at least the number of parameters
and buffers that are listed as constants (those that were inlined or not used are missing there), it must leave room for
the largest N, and it cannot exceed the smallest. Where that leaves one offset, the order is certain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from aotidoctor.model.contract import ConstantSpec, Reading
from aotidoctor.model.record import record

_NAME = re.compile(r"arg(\d{1,9})_\d+$")


@record
class LeafOrder:
    """``input_of`` maps leaf to input, by the best guess where ``certain`` does not hold the leaf.

    ``readings`` are all that are possible, where there are several.
    """

    input_of: Mapping[int, int]
    certain: frozenset[int]
    problem: str | None = None
    readings: tuple[Reading, ...] = ()

    def kind(self, leaf: int) -> str:
        """What the leaf is: ``tensor``, ``constant``, or ``unknown`` where that is not certain."""
        if leaf not in self.certain:
            return "unknown"
        return "tensor" if leaf in self.input_of else "constant"


def order_leaves(
    names: Sequence[str], n_leaves: int, constants: Sequence[ConstantSpec], constant_leaves: frozenset[int] | None
) -> LeafOrder:
    """Match inputs called ``names`` with ``n_leaves`` leaves.

    ``constant_leaves`` are the leaves that an export of the same model is known to have baked in, None when unknown.
    """
    everything = frozenset(range(n_leaves))
    if len(names) == n_leaves:
        return LeafOrder(input_of={at: at for at in range(n_leaves)}, certain=everything)
    if constant_leaves is not None and n_leaves - len(constant_leaves) == len(names):
        tensors = sorted(everything - constant_leaves)
        return LeafOrder(input_of={leaf: at for at, leaf in enumerate(tensors)}, certain=everything)
    numbers = [int(found[1]) for name in names if (found := _NAME.match(name)) is not None]
    if not names:
        return LeafOrder(input_of={}, certain=everything)
    if len(numbers) != len(names) or len(names) > n_leaves:
        text = f"{n_leaves} leaves and {len(names)} inputs could not be matched by the generated names"
        return LeafOrder(input_of={}, certain=frozenset(), problem=text)
    return _by_offset(numbers, n_leaves, _lifted(constants))


def _lifted(constants: Sequence[ConstantSpec]) -> int:
    """Parameters and buffers that are listed: each had a placeholder of its own."""
    return sum(constant.kind in ("parameter", "buffer") and not constant.from_folded for constant in constants)


def _by_offset(numbers: list[int], n_leaves: int, lifted: int) -> LeafOrder:
    low = max(lifted, max(numbers) - (n_leaves - 1), 0)
    high = min(numbers)
    if low > high:
        text = f"the generated names do not fit {n_leaves} leaves"
        return LeafOrder(input_of={}, certain=frozenset(), problem=text)
    readings = [{number - offset: at for at, number in enumerate(numbers)} for offset in range(low, high + 1)]
    # All listed constants accounted for: nothing is missing. Otherwise a tensor as first argument is the usual case.
    best = readings[0] if low == lifted else readings[-1]
    certain = frozenset(leaf for leaf in range(n_leaves) if len({reading.get(leaf) for reading in readings}) == 1)
    if len(readings) == 1:
        return LeafOrder(input_of=best, certain=certain)
    problem = f"which of the {n_leaves} leaves are tensors is not certain: {len(readings)} readings fit the names"
    every = tuple(tuple(reading.get(leaf) for leaf in range(n_leaves)) for reading in readings)
    return LeafOrder(input_of=best, certain=certain, problem=problem, readings=every)
