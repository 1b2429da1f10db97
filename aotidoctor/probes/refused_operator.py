"""Which input did an operator of PyTorch refuse?

What it does
    If the package does not record the properties of its inputs (before torch 2.7, and for a bare library), reads the
    message of a PyTorch operator that refused its arguments, and looks for the only input that fits the message: by
    number of dims, sizes or dtype. If the package names the arguments of the operator, only inputs among them are
    considered.

Why it matters
    Without checks, the first message about a wrong input comes from an operator, which calls it mat1 or self.

Example:
    args[0].shape[1]: observed 13, expected 12 (mat1 and mat2 shapes cannot be multiplied (5x13 and 12x20))

When it is wrong
    A computed tensor may resemble an input by chance. The treatment decides: with it the call returns, or it does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from aotidoctor.localize.comparison import kernel_inputs
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, plural
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome
from aotidoctor.model.torch_names import SCALAR_NAMES
from aotidoctor.probes.probe import History, Reuse, RunFinder, succeeded

CODE, NAME = "AD-RUN-037", "refused_input"
FIND = RunFinder(CODE, NAME, __doc__)
_LONGEST = 2000
_PRODUCT = re.compile(r"shapes cannot be multiplied \((\d{1,18})x(\d{1,18}) and (\d{1,18})x(\d{1,18})\)")
_BATCH = re.compile(
    r"dimensions of batch2 tensor to be: \[(\d{1,18}), (\d{1,18})\] but got: \[(\d{1,18}), (\d{1,18})\]"
)
_DTYPES = (
    re.compile(r"expected scalar type (?P<wanted>\w{1,20}) but found (?P<got>\w{1,20})"),
    re.compile(r"same dtype, but got:? (?:c10::)?(?P<one>\w{1,20}) (?:and|!=) (?:c10::)?(?P<other>\w{1,20})"),
    re.compile(r"same dtype\. Got: (?P<one>\w{1,20}) and (?P<other>\w{1,20})"),
)
_EXACT = re.compile(r"must be a (?P<what>matrix|vector), got (?P<got>\d{1,3})-D tensor")
_LEAST = re.compile(r"must have at least (?P<least>\d{1,3}) dimensions?")
_RANGE = re.compile(
    r"Dimension out of range \(expected to be in range of \[-(?P<dims>\d{1,3}), \d{1,3}\], but got (?P<dim>-?\d{1,3})\)"
)
_NAMES = {name.lower(): dtype for name, dtype in SCALAR_NAMES.items()}


@record
class _Refused:
    """The fault of one input according to the message."""

    kind: str
    path: str
    subject: str
    observed: str
    expected: str
    facts: dict[str, FactValue]


def plan(case: Case, history: History) -> Reuse | NotChecked:
    """Reuse the plain run if it raised and the package does not record the properties of its inputs."""
    plain = history.plain
    if plain is None or succeeded(plain) or case.inputs is None or _line(history) is None:
        return FIND.unchecked("the plain run raised nothing")
    if history.errors("AD-IN", "AD-LOAD"):
        return FIND.unchecked("a static finding already explains a failure")
    if case.contract is not None and not case.contract.leaves_open():
        return FIND.unchecked("the package records the properties of its inputs")
    return Reuse(probe="plain_run")


def _raised_message(history: History) -> Evidence | None:
    return next(iter(history.of("AD-RUN-001", "raised")), None)


def _line(history: History) -> str | None:
    raised = _raised_message(history)
    line = raised.facts.get("line") if raised is not None else None
    return line[:_LONGEST] if isinstance(line, str) and line else None


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding, if the message fits one input only."""
    line = _line(history) or ""
    # The inputs that the operator received, if the package names them; else all.
    raised = _raised_message(history)
    names = [raised.facts.get(name) for name in ("custom_op", "shim")] if raised is not None else []
    arguments = [one for name in names if isinstance(name, str) for one in kernel_inputs(case, name)]
    received = {one.name for one in arguments if one.source == "input"}
    inputs = {path: one for path, one in case.tensors.items() if path in received} or case.tensors
    found = [one for reader in (_of_product, _of_batches, _of_dims, _of_dtypes) for one in reader(line, inputs, case)]
    return [
        FIND.error(outcome)(
            one.kind,
            one.subject,
            observed=one.observed,
            expected=f"{one.expected} ({line})" if len(line) < 200 else one.expected,
            facts={"path": one.path, **one.facts},
        )
        for one in found[:1]
    ]


def _only(inputs: dict[str, TensorDesc], fits: list[str]) -> tuple[str, TensorDesc] | None:
    return (fits[0], inputs[fits[0]]) if len(fits) == 1 else None


def _of_size(path: str, tensor: TensorDesc, dim: int, wanted: int) -> _Refused:
    return _Refused(
        kind="shape",
        path=path,
        subject=f"{path}.shape[{dim}]",
        observed=str(tensor.shape[dim]),
        expected=str(wanted),
        facts={"dim": dim, "size": tensor.shape[dim], "expected_size": wanted, "observed_shape": tensor.shape},
    )


def _of_product(line: str, inputs: dict[str, TensorDesc], _case: Case) -> Iterator[_Refused]:
    """A factor of a matrix product: its rows may be several dims."""
    found = _PRODUCT.search(line)
    if found is None:
        return
    rows, columns, others, _ = sizes = tuple(map(int, found.groups()))
    left = [
        path
        for path, one in inputs.items()
        if len(one.shape) > 1 and (prod(one.shape[:-1]), one.shape[-1]) == (rows, columns)
    ]
    right = [path for path, one in inputs.items() if one.shape == sizes[2:]]
    if (only := _only(inputs, left)) is not None and not right:
        yield _of_size(*only, len(only[1].shape) - 1, others)
    elif (only := _only(inputs, right)) is not None and not left:
        yield _of_size(*only, 0, columns)


def _of_batches(line: str, inputs: dict[str, TensorDesc], _case: Case) -> Iterator[_Refused]:
    found = _BATCH.search(line)
    if found is None:
        return
    first, second, *got = map(int, found.groups())
    only = _only(inputs, [path for path, one in inputs.items() if len(one.shape) == 3 and [*one.shape[:2]] == got])
    if only is not None:
        at, wanted = (0, first) if got[0] != first else (1, second)
        yield _of_size(*only, at, wanted)


def _of_dims(line: str, inputs: dict[str, TensorDesc], _case: Case) -> Iterator[_Refused]:
    """A number of dims that the operator does not take."""
    if (found := _EXACT.search(line)) is not None:
        dims, wanted = int(found["got"]), {"matrix": 2, "vector": 1}[found["what"]]
        fits = [path for path, one in inputs.items() if len(one.shape) == dims]
    elif (found := _LEAST.search(line)) is not None:
        wanted = int(found["least"])
        fits = [path for path, one in inputs.items() if len(one.shape) < wanted]
    elif (found := _RANGE.search(line)) is not None:
        dim = int(found["dim"])
        wanted = dim + 1 if dim >= 0 else -dim
        fits = [path for path, one in inputs.items() if max(len(one.shape), 1) == int(found["dims"])]
    else:
        return
    if (only := _only(inputs, fits)) is not None:
        path, tensor = only
        yield _Refused(
            kind="rank",
            path=path,
            subject=path,
            observed=f"{plural(len(tensor.shape), 'dim')} {tensor.shape}",
            expected=str(wanted),
            facts={"expected_rank": wanted, "observed_shape": tensor.shape},
        )


def _of_dtypes(line: str, inputs: dict[str, TensorDesc], case: Case) -> Iterator[_Refused]:
    """One of two dtypes: if the message does not say which is right, that of the constants is."""
    found = next((match for form in _DTYPES if (match := form.search(line)) is not None), None)
    if found is None:
        return
    groups = found.groupdict()
    names = [_NAMES.get((groups.get(name) or "").lower()) for name in ("wanted", "got", "one", "other")]
    wanted, got, one, other = names
    if one is not None and other is not None:
        constants = {item.dtype for item in (case.contract.constants if case.contract is not None else ())}
        known = [name for name in (one, other) if name in constants]
        wanted = known[0] if len(known) == 1 else None
        got = other if wanted == one else one
    only = _only(inputs, [path for path, tensor in inputs.items() if tensor.dtype == got])
    if only is not None and wanted is not None:
        path = only[0]
        facts: dict[str, FactValue] = {"expected_dtype": wanted, "observed_dtype": got}
        yield _Refused(kind="dtype", path=path, subject=path, observed=str(got), expected=wanted, facts=facts)


PROBE = FIND.probe(
    plan, read, "when an operator raised and the package does not record the properties of its inputs (no further run)"
)
