"""The reference with the package's values where the compiler wrote constants into the code.

Nothing can be loaded into such constants. Where a package with the reference's weights still gives other outputs, the
values in its code go into the reference instead. Which is whose the code does not say: they are tried in the order in
which program and code use them, until the outputs agree. Values that agree are right, however they were found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, permutations, product
from pathlib import Path
from typing import Any

from aotidoctor.readers.contract.written_constants import MOST, is_typed, numbers, vectors
from aotidoctor.worker.load import LoadedModel
from aotidoctor.worker.weight_differences import difference

_TRIES, _SECONDS = 32, 20.0
_SOURCE_BYTES = 64 * 1024 * 1024

Values = tuple[float, ...]
Before = list[tuple[Any, Any]]
Facts = dict[str, Any]


def put_written(
    model: LoadedModel, program: Any, module: Any, before: Before, compared: Callable[[], Facts | None]
) -> tuple[dict[str, tuple[Any, Any]], Facts] | None:
    """``compared`` where constants of ``module`` (that of ``program``) have the values that are in the package's code.

    ``compared`` runs the module and says how its outputs compare with the package's; ``before`` are the buffers as they
    have to be then. The constants are named, with the package's value and the module's own. None without an agreement.
    The module is left as it was.
    """
    from aotidoctor.worker.float64.float64_run import restore

    own = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    held = set(model.get_constant_fqns())
    names = [name for name in _in_order(program) if name in own and name not in held and _is_written(own[name])]
    kept = {name: own[name].detach().clone() for name in names}
    deadline = time.monotonic() + _SECONDS
    try:
        for choice in islice(_choices(list(kept.values()), _source(model.directory)), _TRIES):
            restore(before)
            restore([(own[name], _tensor(values, own[name])) for name, values in zip(names, choice, strict=True)])
            facts = compared()
            if facts is not None and facts["agrees"]:
                return {name: (own[name].detach().clone(), kept[name]) for name in names}, facts
            if time.monotonic() > deadline:
                break
        return None
    finally:
        restore([*before, *((own[name], value) for name, value in kept.items())])


def _tensor(values: Values, like: Any) -> Any:
    import torch

    return torch.tensor(values, dtype=torch.float64).reshape(like.shape)


def differing(found: dict[str, tuple[Any, Any]]) -> list[Facts]:
    """Of each constant that is another one in the package how it differs, as ``weight_differences`` describes it.

    Nothing where one of them is a single number of few digits: any number of the code might have done.
    """
    facts = [difference(name, ours, theirs) for name, (ours, theirs) in found.items()]
    wrong = [item for item in facts if not item["equal"]]
    typed = [item for item in wrong if found[item["name"]][0].numel() == 1 and is_typed(float(found[item["name"]][0]))]
    return [] if typed else [{**item, "written": True} for item in wrong]


def _in_order(program: Any) -> list[str]:
    """Parameters, buffers and constants in the order in which the graph first uses them."""
    targets = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs if spec.target is not None}
    used: dict[str, None] = {}
    for node in program.graph.nodes:
        used.update((targets[one.name], None) for one in node.all_input_nodes if one.name in targets)
    return list(used)


def _is_written(tensor: Any) -> bool:
    """Inductor does so with numbers and with vectors of a few elements."""
    return bool(tensor.dim() <= 1 and 0 < tensor.numel() <= MOST and not tensor.is_complex())


def _source(directory: Path) -> str:
    files = sorted(directory.glob("**/*.cpp"))
    if sum(file.stat().st_size for file in files) > _SOURCE_BYTES:
        return ""
    return "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)


def _choices(wanted: Sequence[Any], source: str) -> Iterator[list[Values]]:
    """What may stand for ``wanted``, the likeliest first: as many values for each as it has."""
    found: dict[int, list[Values]] = {1: [(one,) for one in numbers(source)]}
    for vector in vectors(source):
        found.setdefault(len(vector), []).append(vector)
    # Numbers vary fastest: the code has many that are nobody's constant.
    sizes = sorted({tensor.numel() for tensor in wanted}, reverse=True)
    places = [[at for at, tensor in enumerate(wanted) if tensor.numel() == size] for size in sizes]
    groups = [
        list(islice(_assignments(found.get(size, []), len(ats)), _TRIES))
        for size, ats in zip(sizes, places, strict=True)
    ]
    for picked in product(*groups) if sizes else ():
        chosen = {
            at: values for ats, group in zip(places, picked, strict=True) for at, values in zip(ats, group, strict=True)
        }
        yield [chosen[at] for at in range(len(wanted))]


def _assignments(found: Sequence[Values], count: int) -> Iterator[tuple[Values, ...]]:
    """In the order of the code first. What several kernels read stands there several times."""
    distinct = tuple(dict.fromkeys(found))
    if len(distinct) == count != len(found):
        yield distinct
    yield from permutations(found, count)
