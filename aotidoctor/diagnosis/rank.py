"""Rank diagnoses from findings, and give each a remedy for the case at hand. Pure.

Rules, in this order:

1. A playbook makes a diagnosis when its conditions hold and the worst of its evidence is at least as severe as the
   playbook asks (``warn`` or ``error``). Notes never make one.
2. A warning becomes an error when a run failed in a way that its playbook explains: a batch beyond the compiled
   range is a warning until a run fails because of it. Not so for inputs that the compiled code does not read.
3. Explanations beat symptoms: a cause that another one accounts for is not listed, its evidence is.
4. What was refuted (the treatment did not help) explains nothing and comes last.
5. Errors come before warnings, and those that are errors by themselves before promoted ones; then by weight: artifact,
   host, load, inputs, run, output; then by confidence.
6. While the package leaves dtype, rank or a size of an input open, consequences of such inputs are only a guess.
   They are no cause at all where only the outcome suggests it: outputs that change from call to call without a
   random operator, an operator of PyTorch itself that refused its arguments. The cause is then unknown.

Confidence is a judgement on a fixed scale, not a frequency:

====  =======================================================================
0.99  confirmed: the failure went away with the treatment and came back without,
      or the file itself is the proof (it is not there, cut off, or of another kind)
0.95  the package itself contradicts what it was given, read without running;
      or confirmed as above in the emulation of a GPU, and not on hardware
0.85  the runtime named it explicitly, or two independent signs agree
0.70  inferred: one strong sign, other causes looked at and not found
0.50  by elimination
0.35  a guess worth one experiment
====  =======================================================================

A playbook's remedy fits every case of its cause. Where more is known of the case (which dimension, its size and the
right one, the place of a superfluous dimension), the text, the command, or both are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from aotidoctor.diagnosis.playbook_match import (
    Match,
    accounts_for,
    explained_by,
    is_failure,
    looked_like,
    match,
    supporting,
)
from aotidoctor.diagnosis.playbooks import fill_text, known_fault, subject_of, title_of, with_facts
from aotidoctor.diagnosis.treat_values import path_of, spec_at, suspects, tensor_at
from aotidoctor.model.case import Case
from aotidoctor.model.contract import LeafSpec, describe_spec
from aotidoctor.model.evidence import Evidence, Severity, list_names
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.record import record
from aotidoctor.model.report import Diagnosis, Playbook, Remedy, Status, compile_again
from aotidoctor.model.torch_names import foreign

# Remedies for the case at hand.
LONGEST = 240  # of a command that is a whole call


@record
class CaseRemedy:
    """Texts that replace the playbook's; None keeps them, and an empty command removes it."""

    text: str | None = None
    command: str | None = None


RemedyMaker = Callable[[str, Evidence, Case, Sequence[Evidence]], CaseRemedy]


def remedy_in(cause: str, remedy: Remedy, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> Remedy:
    """Adapt the playbook's ``remedy`` to the case; ``lead`` is the evidence that names the case."""
    path = path_of(lead)
    if cause in BY_VALUE:
        own = _values(cause, lead, case, findings)
    elif path is None:
        return remedy
    elif cause == "input-nontensor" and lead.kind == "none":
        own = CaseRemedy(text=f"Pass {_expected_input(case, path)} for {path}; None was given.", command="")
    elif cause == "input-device" and lead.kind == "meta":
        device = lead.facts.get("expected_device") or "a device"
        own = CaseRemedy(text=f"Make {path} on {device}: a meta tensor has no values to move.", command="")
    elif cause in CASE_REMEDIES:
        own = CASE_REMEDIES[cause](path, lead, case, findings)
    else:
        return remedy
    return replace(
        remedy,
        text=remedy.text if own.text is None else own.text,
        command=remedy.command if own.command is None else own.command,
    )


def _tree(path: str, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> CaseRemedy:
    keys = lead.facts.get("keys_expected")
    call = _call("input-tree", case, findings)
    if call is not None:
        return CaseRemedy(text="Call it in the form of the export.", command=call)
    if lead.kind == "key-order" and isinstance(keys, tuple):
        return CaseRemedy(text=f"Give {path} its keys in the order of the export: {', '.join(map(str, keys))}.",
                    command=f"{path} = {{key: {path}[key] for key in {keys!r}}}")  # fmt: skip
    spec = spec_at(case, path)
    if lead.kind == "nesting" and spec is not None and spec.dtype is not None and _numbers(case, path):
        made = f"{path} = torch.as_tensor({path}, dtype=torch.{spec.dtype})"
        return CaseRemedy(text=f"Pass one tensor for {path}: {describe_spec(spec)} was exported.", command=made)
    given = case.inputs.args if case.inputs is not None else None
    if lead.kind == "nesting" and spec is not None and given is not None and len(given.children) == 1:
        # The arguments, all in one list.
        return CaseRemedy(text=f"Pass the elements of {path} as separate arguments.", command=f"model(*{path})")
    return CaseRemedy(text=f"Build {path} as at export: {lead.expected}.", command="")


def _numbers(case: Case, path: str) -> bool:
    """Whether the container at ``path`` holds plain values only, which can become one tensor."""
    leaves = case.inputs.leaves() if case.inputs is not None else ()
    inside = [value for name, value in leaves if name.startswith(f"{path}[")]
    return bool(inside) and not any(isinstance(value, TensorDesc) for value in inside)


def _kwargs(path: str, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> CaseRemedy:
    call = _call("input-kwargs", case, findings)
    match lead.kind:
        case "missing":
            # A call with a made-up tensor in its place is no remedy.
            return CaseRemedy(text=f"Pass {path} as well: {_expected_input(case, path)}.", command="")
        case "extra":
            return CaseRemedy(text=f"Leave out {path}.", command=call)
        case "renamed":
            return CaseRemedy(text=f"Give {path} as {lead.expected}.", command=call)
        case _:
            return CaseRemedy(text=f"Give {path} {lead.expected}.", command=call)


def _count(path: str, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> CaseRemedy:
    if path == "args":
        return CaseRemedy()
    if lead.kind == "few":
        return CaseRemedy(text=f"Pass {path} as well: {_expected_input(case, path)}.", command="")
    if lead.facts.get("tensor_for_constant"):
        return CaseRemedy(text=f"Leave out the tensor at {path}: it was a plain value at export.")
    return CaseRemedy(text=f"Leave out {path}.", command=_call("input-count", case, findings))


def _order_remedy(path: str, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> CaseRemedy:
    other = lead.facts.get("swap_with")
    if not isinstance(other, str):
        return CaseRemedy()
    return CaseRemedy(command=_call("input-order", case, findings) or f"{path}, {other} = {other}, {path}")


def _rank(path: str, _lead: Evidence, case: Case, _findings: Sequence[Evidence]) -> CaseRemedy:
    spec, tensor = spec_at(case, path), tensor_at(case, path)
    if spec is None or tensor is None or spec.rank is None:
        return CaseRemedy()
    more, both = len(tensor.shape) - spec.rank, f"{describe_spec(spec)} was exported, {list(tensor.shape)} is given"
    ones = [at for at, size in enumerate(tensor.shape) if size == 1]
    if more == 1 and ones:
        text = f"Take the dimension of size 1 out of {path}"
        return CaseRemedy(text=f"{text}: {both}.", command=f"{path} = {path}.squeeze({ones[0]})")
    if more == -1:
        at, text = _absent(spec, tensor.shape), f"Add the dimension that {path} lacks: {both}."
        return CaseRemedy(text=text, command=f"{path} = {path}.unsqueeze({at})   # if this is one element of it")
    return CaseRemedy(text=f"Give {path} {spec.rank} dimensions: {both}.", command="")


def _absent(spec: LeafSpec, shape: Sequence[int]) -> int:
    """Which dimension of the spec ``shape`` lacks: one that is dynamic rather than static, the first of several."""
    dims = spec.dims or ()
    for at in sorted(range(len(dims)), key=lambda at: dims[at].static is not None):
        rest = (*dims[:at], *dims[at + 1 :])
        if all(dim.static in (None, size) for dim, size in zip(rest, shape, strict=False)):
            return at
    return 0


def _shape(path: str, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> CaseRemedy:
    dim, size, wanted = (lead.facts.get(name) for name in ("dim", "size", "expected_size"))
    if not isinstance(dim, int) or wanted is None:
        return CaseRemedy()
    order = _dims_remedy("input-shape", path, case, findings)
    if order is not None:
        return order
    text = f"Give {path} the size {wanted} in dim {dim} (it has {size}), or export that dim as dynamic."
    return CaseRemedy(
        text=text, command=f"torch.export.Dim({_symbol(path, dim)!r})   # for dim {dim} of {path}, at export"
    )


def _range(path: str, lead: Evidence, _case: Case, findings: Sequence[Evidence]) -> CaseRemedy:
    dim, size = lead.facts.get("dim"), lead.facts.get("size")
    low, high = lead.facts.get("low"), lead.facts.get("high")
    if not isinstance(dim, int) or not isinstance(size, int):
        return CaseRemedy()
    bounds = {"min": low if isinstance(low, int) else None, "max": high if isinstance(high, int) else None}
    inside = " and ".join(
        f"at {'least' if name == 'min' else 'most'} {value}" for name, value in bounds.items() if value is not None
    )
    refused = next((item for item in findings if (item.code, item.kind) == ("AD-RUN-011", "raises")), None)
    if refused is not None:
        text = (
            f"Keep dim {dim} of {path} {inside} (it is {size}): a wider range would not help, the reference refuses it"
        )
        return CaseRemedy(text=f"{text}, too ({refused.facts.get('error')}).", command="")
    wider = {"min": min(bounds["min"] or 0, size), "max": None if bounds["max"] is None else max(bounds["max"], size)}
    given = ", ".join(f"{name}={value}" for name, value in wider.items() if value is not None)
    text = f"Keep dim {dim} of {path} {inside} (it is {size}), or export with a wider range."
    return CaseRemedy(
        text=text, command=f"torch.export.Dim({_symbol(path, dim)!r}, {given})   # for dim {dim} of {path}, at export"
    )


def _divisibility(path: str, lead: Evidence, case: Case, _findings: Sequence[Evidence]) -> CaseRemedy:
    dim, size, step = (lead.facts.get(name) for name in ("dim", "size", "step"))
    tensor = tensor_at(case, path)
    if not (isinstance(dim, int) and isinstance(size, int) and isinstance(step, int)) or tensor is None:
        return CaseRemedy()
    up, down = -(-size // step) * step, size // step * step
    pad = (0,) * (2 * (len(tensor.shape) - dim) - 1) + (up - size,)
    text = f"Pad dim {dim} of {path} from {size} to {up}, or cut it to {down}: it must be a multiple of {step}."
    return CaseRemedy(text=text, command=f"{path} = torch.nn.functional.pad({path}, {pad})")


def _alignment(path: str, lead: Evidence, _case: Case, _findings: Sequence[Evidence]) -> CaseRemedy:
    """A view that begins inside a tensor may be contiguous already: only a copy begins elsewhere."""
    if lead.kind != "alignment":
        return CaseRemedy()
    text = f"Clone {path} before the call: a view that begins inside a tensor is rarely aligned."
    return CaseRemedy(text=text, command=f"{path} = {path}.clone()")


def _weights(_path: str, lead: Evidence, case: Case, _findings: Sequence[Evidence]) -> CaseRemedy:
    """With the reference, the remedy is to compile it again."""
    reference = case.options.reference if case.reference is not None else None
    if reference is None or lead.facts.get("remedy") is not None:
        return CaseRemedy()
    return CaseRemedy(command=compile_again(reference))


def _dims_remedy(cause: str, path: str, case: Case, findings: Sequence[Evidence]) -> CaseRemedy | None:
    """Another order of the dims, with the orders that fit as well; None where the treatment is something else."""
    from aotidoctor.diagnosis.treatments import plan_treatment

    plan = plan_treatment(cause, case, findings)
    if plan is None or plan.name != "permute" or not 0 < len(plan.command) <= LONGEST:
        return None
    text = f"Put the dims of {path} in the order of the export."
    if plan.others:
        fit = f"{list_names(plan.others, 3)} {'fits' if len(plan.others) == 1 else 'fit'} as well"
        text += f" Sizes do not show which order that is: {fit}; compare the result with one that you know."
    return CaseRemedy(text=text, command=plan.command)


def _disagree(path: str, _lead: Evidence, case: Case, findings: Sequence[Evidence]) -> CaseRemedy:
    """A user would put the dims in order, or cut the one that is too long, but not cut all others to it."""
    order = _dims_remedy("input-shape-disagree", path, case, findings)
    if order is not None:
        return order
    lines = _treatment_lines("input-shape-disagree", case, findings)
    return CaseRemedy(
        command=lines if lines is not None and lines.startswith(f"{path} = ") and "\n" not in lines else ""
    )


def _values(cause: str, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> CaseRemedy:
    paths = suspects(cause, case, findings)
    if not paths:
        return CaseRemedy()
    if cause == "integer-division":
        return CaseRemedy(command="\n".join(f"print(int(({path} == 0).sum()))   # zeros" for path in paths[:3]))
    if paths[0].endswith("]") and ".shape[" in paths[0]:
        # An index that is a position: the size is what to change.
        place = paths[0]
        path, _, dim = place.rstrip("]").rpartition(".shape[")
        most, origin = lead.facts.get("most"), lead.facts.get("origin") or "the table"
        text = f"Keep dim {dim} of {path} at most {most}, or make {origin} larger."
        return CaseRemedy(text=text, command=_treatment_lines("index-out-of-range", case, findings) or "")
    bounds = (item.facts.get("bound") for item in (lead, *findings))
    texts = (str(bound) for bound in bounds if isinstance(bound, int | str))
    bound = next((text for text in texts if re.fullmatch(r"\d{1,18}L?", text)), None)
    allowed = f"   # must be in 0..{int(bound.rstrip('L')) - 1}" if bound is not None else ""
    return CaseRemedy(command="\n".join(f"print(int({path}.min()), int({path}.max())){allowed}" for path in paths[:3]))


def _treatment_lines(cause: str, case: Case, findings: Sequence[Evidence]) -> str | None:
    """The lines of the treatment, where it is what the user would do as well."""
    from aotidoctor.diagnosis.treatments import plan_treatment

    plan = plan_treatment(cause, case, findings)
    return plan.command if plan is not None and 0 < len(plan.command) <= LONGEST else None


def _call(cause: str, case: Case, findings: Sequence[Evidence]) -> str | None:
    """The whole call in the form of the export; None where it is long, or some of it would have to be made up."""
    planned = _treatment_lines(cause, case, findings)
    return planned if planned is not None and planned.startswith("model(") else None


def _expected_input(case: Case, path: str) -> str:
    spec = spec_at(case, path)
    return "a tensor" if spec is None else describe_spec(spec)


def _symbol(path: str, dim: int) -> str:
    """A name for the dimension, from the input's own: ``input_ids_1`` of ``kwargs['input_ids']``."""
    words = re.findall(r"\w+", path)
    return "_".join([*(words[1:] if words[:1] == ["kwargs"] else words), str(dim)])


CASE_REMEDIES: dict[str, RemedyMaker] = {
    "input-tree": _tree,
    "input-kwargs": _kwargs,
    "input-count": _count,
    "input-order": _order_remedy,
    "input-stride": _alignment,
    "input-rank": _rank,
    "input-shape": _shape,
    "input-range": _range,
    "input-divisibility": _divisibility,
    "input-shape-disagree": _disagree,
    "weights-differ": _weights,
}
# Causes in values: the inputs come from all findings together, not from the leading evidence.
BY_VALUE = ("index-out-of-range", "cuda-device-assert", "integer-division")


# Ranks.
CONFIRMED = 0.99
IN_EMULATION = 0.95
_PROOF = (Status.CONFIRMED, Status.EMULATED, Status.SUSPECTED)
PLAIN_PATH = re.compile(r"[\w./+-]+")
PROMOTED = 0.75
SEEN = "the file itself shows it"
REFUTED = 0.3
# Consequences of inputs of another dtype or shape, and their confidence while the right ones are unknown.
BY_INPUTS = (
    "index-out-of-range", "nondeterministic", "custom-op-exception", "operator-refused", "kernel-crash", "nan-produced",
    "uninitialized-read", "overflow", "threading", "integer-division", "custom-op-crash",
)  # fmt: skip
UNREAD = 0.35
# Findings in the outputs alone, or that depend on the layout of memory; and facts of the code that would explain them.
_OUTCOMES = (("AD-RUN-002", "differs"), ("AD-RUN-006", "differs"), ("AD-RUN-006", "heals"), ("AD-RUN-009", "depends"))
_REASONS = ("random_ops", "uninitialized_ops")


def diagnose(
    findings: Sequence[Evidence],
    playbooks: Sequence[Playbook],
    *,
    refuted: Collection[str] = (),
    case: Case | None = None,
) -> tuple[Diagnosis, ...]:
    """Diagnose the findings, best first; empty when no playbook explains them.

    ``refuted`` are causes whose treatment was tried and changed nothing. With ``case`` a cause that lies in the values
    of inputs names those inputs, and commands name the files in question.
    """
    matches = [_promote(found, findings) for p in playbooks if (found := match(p, findings)) is not None]
    strong = [found for found in matches if found.severity.rank >= max(found.playbook.severity.rank, 1)]
    causes, symptoms = _without_symptoms(strong, refuted)
    # Refuted ones last; errors first, and those by themselves before promoted ones.
    causes.sort(
        key=lambda found: (
            found.playbook.cause in refuted,
            -found.severity.rank,
            found.promoted,
            found.playbook.weight,
            -found.confidence,
        )
    )
    made = tuple(
        _diagnosis(found, rank, supporting(found, symptoms.get(id(found), ()), findings), findings, refuted)
        for rank, found in enumerate(causes, start=1)
    )
    if case is None:
        return made
    pairs = [(item, found) for item, found in zip(made, causes, strict=True) if not _is_symptom(item, found, case)]
    return tuple(
        replace(_in_case(item, found, case, findings), rank=rank) for rank, (item, found) in enumerate(pairs, start=1)
    )


def _in_case(diagnosis: Diagnosis, found: Match, case: Case, findings: Sequence[Evidence]) -> Diagnosis:
    lead = with_facts(found.lead, found.evidence)
    diagnosis = replace(diagnosis, remedy=remedy_in(diagnosis.cause, diagnosis.remedy, lead, case, findings))
    paths = suspects(diagnosis.cause, case, findings)
    located = with_paths((replace(diagnosis, subject=", ".join(paths)) if paths else diagnosis), case)
    doubtful = is_guess(diagnosis.cause, case) and not _explains_change(found)
    return replace(located, confidence=min(located.confidence, UNREAD)) if doubtful else located


def is_guess(cause: str, case: Case) -> bool:
    """Whether inputs whose dtype or shape the package leaves open may as well be the reason (rule 6)."""
    return cause in BY_INPUTS and case.inputs is not None and case.contract is not None and case.contract.leaves_open()


def _is_symptom(diagnosis: Diagnosis, found: Match, case: Case) -> bool:
    """Whether it is such a guess, and only the outputs or an operator of PyTorch suggest it (rule 6)."""
    if diagnosis.status is not Status.SUSPECTED or not is_guess(diagnosis.cause, case):
        return False
    if diagnosis.cause == "operator-refused":
        return True
    if diagnosis.cause == "custom-op-exception":
        return bool(diagnosis.subject) and not foreign([diagnosis.subject or ""])
    return all((item.code, item.kind) in _OUTCOMES for item in found.loud()) and not _explains_change(found)


def _explains_change(found: Match) -> bool:
    """Whether the code itself holds a reason why its outputs change."""
    return any(item.facts.get(name) for item in found.loud() for name in _REASONS)


def with_paths(diagnosis: Diagnosis, case: Case) -> Diagnosis:
    """Put the user's files in the place of ``model.pt2`` and ``sample.pt`` in the remedy's command.

    A path that a shell or Python would not take as it stands is left out: the command then stays an example.
    """
    command = diagnosis.remedy.command
    reference = case.options.reference if case.reference is not None else None
    files = (("model.pt2", case.artifact.path), ("sample.pt", case.inputs_path), ("exported.pt2", reference))
    for stand_in, path in files:
        if path is not None and PLAIN_PATH.fullmatch(path):
            # Such a path holds nothing that a replacement text would interpret.
            command = re.sub(rf"(?<![\w./-]){re.escape(stand_in)}\b", path, command)
    return replace(diagnosis, remedy=replace(diagnosis.remedy, command=command))


def confirm(diagnosis: Diagnosis, how: str, *, remedied: bool = True, emulated: bool = False) -> Diagnosis:
    """Mark a diagnosis as confirmed by treatment; ``how`` describes the runs.

    ``remedied``: the treatment is also the remedy, and not only a proof. ``emulated``: in emulation only.
    """
    confirmed = replace(diagnosis, confirmation=how, would_confirm="")
    if emulated:
        return replace(confirmed, status=Status.EMULATED, confidence=IN_EMULATION)
    remedy = replace(diagnosis.remedy, verified=remedied)
    return replace(confirmed, status=Status.CONFIRMED, confidence=CONFIRMED, remedy=remedy)


def rerank(diagnoses: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """Sort confirmed ones first, otherwise as given, and number the ranks anew: proof beats every rule above."""
    ordered = sorted(diagnoses, key=lambda item: _PROOF.index(item.status))
    return tuple(replace(item, rank=rank) for rank, item in enumerate(ordered, start=1))


def _promote(found: Match, findings: Sequence[Evidence]) -> Match:
    """Apply rule 2: add the failed run to the evidence, which raises its severity."""
    # Inputs that the compiled code does not read, or that are known to be harmless, end no run.
    if found.severity is not Severity.WARN or all(
        (item.facts.get("unused") is True or item.facts.get("harmless") is True) for item in found.loud()
    ):
        return found
    failures = tuple(item for item in findings if is_failure(item) and accounts_for(found, item))
    if not failures:
        return found
    share = round(found.confidence * PROMOTED, 2)
    return replace(found, evidence=found.evidence + failures, confidence=share, promoted=True)


def _without_symptoms(matches: Sequence[Match], refuted: Collection[str]) -> tuple[list[Match], dict[int, list[Match]]]:
    """Split matches into causes, and symptoms by the id of their cause."""
    gone: dict[int, Match] = {}
    causes = sorted(matches, key=lambda found: (not found.grounded, found.playbook.weight))
    for cause in causes:
        if id(cause) in gone or cause.playbook.cause in refuted or cause.promoted:
            continue
        for symptom in matches:
            if id(symptom) not in gone and explained_by(symptom, cause):
                gone[id(symptom)] = cause
    symptoms: dict[int, list[Match]] = {}
    for found in matches:
        if id(found) in gone:
            symptoms.setdefault(id(gone[id(found)]), []).append(found)
    return [found for found in matches if id(found) not in gone], symptoms


def _diagnosis(
    found: Match, rank: int, evidence: Sequence[Evidence], findings: Sequence[Evidence], refuted: Collection[str]
) -> Diagnosis:
    playbook, lead = found.playbook, with_facts(found.lead, found.evidence)
    doubted = playbook.cause in refuted
    proven = found.certain and not doubted
    remedy = fill_text(playbook.remedy, lead)
    if (issue := known_fault(playbook, lead, findings)) is not None:
        instead = f" Workaround: {issue.workaround}." if issue.workaround else ""
        remedy += f" A fault of this operator, dtype and symptom is {issue.sentence} ({issue.url}).{instead}"
    return Diagnosis(
        cause=playbook.cause,
        rank=rank,
        status=Status.CONFIRMED if proven else Status.SUSPECTED,
        confidence=CONFIRMED if proven else round(found.confidence * REFUTED, 2) if doubted else found.confidence,
        title=title_of(playbook.title, lead, found.evidence),
        looked_like=looked_like(playbook, lead, evidence, findings),
        subject=subject_of(lead),
        evidence=tuple(dict.fromkeys(item.id for item in evidence if item.id)),
        remedy=Remedy(text=remedy, command=fill_text(playbook.command, lead)),
        playbook=playbook.cause,
        severity=found.severity,
        confirmation="its treatment was tried and the failure remained" if doubted else SEEN if proven else "",
        would_confirm="" if doubted or proven else fill_text(playbook.would_confirm, lead),
        stage=playbook.stage,
    )
