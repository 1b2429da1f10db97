"""Do the loaded weights fit the compiled code, and are they complete?

What it does
    Compares the tensors that --setup handed to load_constants with the constants the package was compiled for: names,
    dtype, shape, strides. If the package contains no weights and the call crashed, it names those that were not loaded.

Why it matters
    load_constants checks names only. A float64 weight overflows the heap and the abort comes in a later call; a
    transposed or too small one silently gives wrong numbers. A missing constant is a null pointer: a
    buffer that is not in the state dict (persistent=False) ends in SIGSEGV.

Example
    l.weight: observed float64, expected float32

When it is wrong
    Weights that are not loaded through the model passed to after_load are not detected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aotidoctor.model.answers import GivenWeight, GivenWeights, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.contract import ConstantSpec, ModelContract
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, list_names
from aotidoctor.model.run import Outcome, Signalled
from aotidoctor.probes.probe import History, Reuse, RunFinder
from aotidoctor.probes.symptoms import recognise

CODE, NAME = "AD-LOAD-005", "loaded_weights"
FIND = RunFinder(CODE, NAME, __doc__)
_OUTSIDE = ("external", "disk")
_LISTED = 4


def plan(case: Case, history: History) -> Reuse | NotChecked:
    """Reuse the plain run if --setup loaded weights, or should have."""
    plain = history.plain
    if plain is None:
        return FIND.unchecked("there was no plain run")
    if not _loaded_constants(plain) and not _is_refused(plain) and not _unloaded(case, plain):
        return FIND.unchecked("--setup loaded no weights")
    if case.contract is None or not case.contract.constants:
        return FIND.unchecked("the package lists no constants to compare them with", moot=False)
    return Reuse(probe="plain_run")


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding per constant that does not fit; one for all that were not loaded."""
    wanted = {spec.fqn: spec for spec in (case.contract.constants if case.contract else ())}
    unloaded = _unloaded(case, outcome)
    missing = [_missing(case, unloaded, outcome)] if unloaded else []
    refused = [] if unloaded else list(_refused(case, outcome))
    return [*_compare(wanted, _loaded_constants(outcome), outcome), *missing, *refused]


def _loaded_constants(outcome: Outcome) -> tuple[GivenWeight, ...]:
    return parse_answer(GivenWeights, outcome.result).loaded_constants


def _unloaded(case: Case, outcome: Outcome) -> tuple[str, ...]:
    """Constants outside the package that were not given, if a call of the loaded model failed for that reason."""
    contract = case.contract
    if contract is None or contract.weights not in _OUTSIDE:
        return ()
    if not case.options.setup or case.setup_loads is False:
        # Without an after_load the static check finds this.
        return ()
    died = isinstance(outcome.ending, Signalled) and outcome.stage.startswith("run")
    return _not_given(contract, outcome) if died or _is_refused(outcome) else ()


def _is_refused(outcome: Outcome) -> bool:
    """Whether ``check_full_update`` refused weights that lack a parameter; it accepts that a buffer is missing."""
    # The exception often states only the call that failed, and stderr the reason.
    texts = (outcome.error.message, outcome.stderr_tail) if outcome.error is not None else ()
    return any(recognise(text).name == "constant-not-given" for text in texts)


def _not_given(contract: ModelContract, outcome: Outcome) -> tuple[str, ...]:
    given = {item.name for item in _loaded_constants(outcome)}
    return tuple(spec.fqn for spec in contract.constants if not spec.from_folded and spec.fqn not in given)


def _refused(case: Case, outcome: Outcome) -> Iterator[Evidence]:
    """Constants that an update of weights in the package lacks, if it was refused for that."""
    if case.contract is None or outcome.stage != "after_load" or not _is_refused(outcome):
        return
    for name in _not_given(case.contract, outcome):
        found = f"load_constants was not given {name}"
        expected = f"{name} as well, or check_full_update=False, which leaves the others as they are"
        yield _finding("name", name, found, expected, outcome, found=found)


def _missing(case: Case, names: tuple[str, ...], outcome: Outcome) -> Evidence:
    given = len(_loaded_constants(outcome))
    source = "torch.export.load(...).constants" if case.reference is not None else "the module's buffers"
    by = "load_constants was not given" if given else "no call of load_constants was seen for"
    return FIND.error(outcome)(
        "missing",
        names[0] if len(names) == 1 else list_names(names, _LISTED),
        observed=f"{by} {list_names(names, _LISTED)}",
        expected="every constant loaded before the first call",
        facts={
            "constants": names[:50],
            "count": len(names),
            "given": given,
            # Its own after_load may have loaded them unseen.
            "unseen": not given and parse_answer(GivenWeights, outcome.result).after_load,
            "remedy": f"weights[{names[0]!r}] = ...   # from the state dict; a buffer that is not in it, from {source}",
        },
    )


def _compare(wanted: dict[str, ConstantSpec], given: Sequence[GivenWeight], outcome: Outcome) -> Iterator[Evidence]:
    for item in given:
        name = item.name
        spec = wanted.get(name)
        if spec is None:
            # A name that the package does not have; of tied weights it keeps one name only.
            owner = next((one for one in item.same_as if one in wanted), None)
            if owner is None:
                observed, expected = "no constant of this name", f"one of {list_names(tuple(wanted), _LISTED)}"
                yield _finding("name", name, observed, expected, outcome, found=f"no constant is called {name}")
            else:
                observed = f"{name} is tied to {owner}, and the package keeps it only as {owner}"
                yield _finding("name", name, observed, f"{owner} alone", outcome, tied_to=owner)
            continue
        difference = _difference(spec, item)
        if difference is not None:
            kind, observed, expected = difference
            text = (
                f"{name} has {kind} {observed.removeprefix('strides ')}, expected {expected.removeprefix('strides ')}"
            )
            yield _finding(kind, name, observed, expected, outcome, expected_dtype=spec.dtype, found=text)


def _difference(spec: ConstantSpec, item: GivenWeight) -> tuple[str, str, str] | None:
    """``(kind, observed, expected)`` of the first property that differs: dtype, shape, stride."""
    shape, stride = item.shape, item.stride
    if spec.dtype is not None and item.dtype != spec.dtype:
        return "dtype", item.dtype, spec.dtype
    if spec.shape is not None and shape != spec.shape:
        return "shape", str(shape), str(spec.shape)
    used = [at for at, size in enumerate(shape) if size != 1]
    if spec.stride is not None and any(stride[at] != spec.stride[at] for at in used):
        return "stride", f"strides {stride}", f"strides {spec.stride}"
    return None


def _finding(kind: str, name: str, observed: str, expected: str, outcome: Outcome, **facts: FactValue) -> Evidence:
    return FIND.error(outcome)(kind, name, observed=observed, expected=expected, facts={"constant": name, **facts})


PROBE = FIND.probe(plan, read, "when --setup loaded weights, or should have (no further run)")
