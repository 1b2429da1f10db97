"""The nesting, container types, dict keys or their insertion order differ from the call spec.

What it does
    Compares the call with the call spec that was recorded at export, container by container.

Why it matters
    The runtime flattens the call and never compares the trees: a dict whose keys were inserted in a different order
    passes its tensors in that order, and two tensors of one shape are swapped silently.

Example:
    args[1]: observed keys ['b', 'a'], expected keys ['a', 'b']

When it is wrong
    A list for a tuple (or an OrderedDict for a dict with the same keys in the same order) flattens in the same way:
    only a note. So do sequences that are nested in another way, ``model([x, y])`` for ``(x, y)``, where every tensor
    fits the place that it gets. The content of an object of a registered class (a dataclass, a cache) cannot be read
    without its code.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.leaves import call_error, difference_facts, missing_reason, overlay_of
from aotidoctor.model.case import Case

FIND = Finder("AD-IN-002", "input_tree")


def run(case: Case) -> Observations:
    """One finding per container that differs."""
    overlay = overlay_of(case)
    if overlay is None:
        yield FIND.unchecked(missing_reason(case))
        return
    raises = call_error(case)
    for difference in overlay.of("tree"):
        note = FIND.info if difference.kind in ("object", "nested-alike") else FIND.warn
        state = note if difference.harmless else FIND.error
        yield state(
            difference.kind,
            difference.path,
            observed=difference.observed,
            expected=difference.expected,
            facts=difference_facts(difference, raises) | {"harmless": difference.harmless},
        )


CHECK = FIND.check(run, needs=("inputs_file",), facts=("call-spec",))
