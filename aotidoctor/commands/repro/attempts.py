"""Try a script in child processes, in the ways that can show the failure, and compare its endings.

Endings are equal for the same failure with other numbers, on other paths and in other processes. A script shows the
failure by such an ending, by the package's own input checks, or by an assertion.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from aotidoctor.commands.repro.repro_script import NAME, Recipe, script_text
from aotidoctor.diagnosis.failure_signature import plain_kernel
from aotidoctor.diagnosis.treatment_steps import LEAF_EXPRESSIONS, template_expression
from aotidoctor.diagnosis.treatments import plan_treatment
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.inputs import MAPPINGS, InputSet, Leaf, LeafValue, Tree, child_path
from aotidoctor.model.jobs import Job, SaveInputs, Script
from aotidoctor.model.record import JsonObject, record
from aotidoctor.model.report import Diagnosis, Event, EventKind, OnEvent
from aotidoctor.model.run import Outcome, Request, TimedOut
from aotidoctor.model.torch_names import CHECK_INPUTS
from aotidoctor.probes.payload import device_of, inputs_source
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import succeeded
from aotidoctor.runner.runner import Runner
from aotidoctor.triage.state import LEAST_TIMEOUT_S

# How a call ends.
EARLY = ("start", "import", "setup", "inputs", "load", "after_load")
_LINE = re.compile(r'File "[^"]*/repro\.py", line (\d+)')
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_PATH = re.compile(r"(?:/[\w.+~-]+)+")


@record
class CallEnding:
    """The ending of a call: equal for the same failure with other numbers, on other paths and in other processes.

    ``kind`` as in the finding of the plain run; ``detail`` is the signal, the exit code, or type and message of the
    exception; ``phase`` is ``load`` or ``run``.
    """

    kind: str
    detail: str = ""
    symptom: str = ""
    kernel: str = ""
    phase: str = "run"

    @property
    def text(self) -> str:
        """The ending as a phrase."""
        where = {"load": "while loading", "run": "in the call"}[self.phase]
        return f"{self.kind} {self.detail}".strip() + f" {where}" + (f", in {self.kernel}" if self.kernel else "")


def ending_of_finding(item: Evidence) -> CallEnding:
    """The ending by a finding of the plain run, or of the run with input checks."""
    facts = item.facts
    kernel = facts.get("kernel")
    if item.kind == "raised":
        detail = _PATH.sub("PATH", _NUMBER.sub("N", str(facts.get("line") or facts.get("type") or "")))[:200]
    else:
        detail = str(facts.get("signal") or facts.get("exit_code") or facts.get("code") or "")
    return CallEnding(
        kind=item.kind,
        detail=detail,
        symptom=str(facts.get("symptom") or ""),
        kernel=plain_kernel(kernel) if isinstance(kernel, str) and "::" not in kernel else "",
        phase="load" if facts.get("stage") in EARLY else "run",
    )


def ending_of_script(case: Case, outcome: Outcome, load_line: int) -> CallEnding | None:
    """The ending of a run of the script; None if it succeeded. ``load_line`` is the line that loads the package."""
    if succeeded(outcome):
        return None
    item = read_ending("AD-RUN-001", case, outcome)
    ended = ending_of_finding(item)
    text = outcome.error.traceback if outcome.error is not None else outcome.stderr_tail
    lines = [int(found) for found in _LINE.findall(text)]
    # A traceback names the script's frame first, the dump of a crash last; each has exactly one.
    phase = "load" if lines and lines[-1] <= load_line else "run"
    return CallEnding(kind=ended.kind, detail=ended.detail, symptom=ended.symptom, kernel=ended.kernel, phase=phase)


# The treated call, without the fault, as Python expressions.
def treated_call(inputs: InputSet, steps: Sequence[JsonObject]) -> str | None:
    """The arguments of the treated call as code, without parentheses; None for steps that have no expression."""
    leaves = {path: path for path, _ in inputs.leaves()}
    template: JsonObject | None = None
    for step in steps:
        name, path = str(step.get("op")), step.get("path")
        if name == "tree" and template is None:
            template = step
        elif name in LEAF_EXPRESSIONS and path in leaves:
            leaves[str(path)] = LEAF_EXPRESSIONS[name](leaves[str(path)], step)
        else:
            return None
    if template is None:
        return _parentheses(_rebuilt(inputs.args, "args", leaves), _rebuilt(inputs.kwargs, "kwargs", leaves))
    args, kwargs = (template_expression(template.get(name), leaves) for name in ("args", "kwargs"))
    return None if args is None or kwargs is None else _parentheses(args, kwargs)


def _parentheses(args: str, kwargs: str) -> str:
    """Arguments without the parentheses of their tuple, and without empty keyword arguments."""
    inner = args[1:-1].rstrip(",") if args.startswith("(") else f"*{args}"
    return ", ".join(part for part in (inner, "" if kwargs == "{}" else f"**{kwargs}") if part)


def _rebuilt(tree: Tree[LeafValue], path: str, leaves: Mapping[str, str]) -> str:
    """The tree with its changed leaves; an unchanged part is only its name."""
    if isinstance(tree, Leaf):
        return leaves[path]
    parts = [_rebuilt(child, child_path(path, tree, at), leaves) for at, child in enumerate(tree.children)]
    if all(part == child_path(path, tree, at) for at, part in enumerate(parts)):
        return path
    if tree.type in MAPPINGS:
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(tree.keys, parts, strict=True)) + "}"
    opening, closing = ("[", "]") if tree.type == "list" else ("(", ",)")
    return opening + ", ".join(parts) + closing


# The ways to show a failure.
CHECKS = (CHECK_INPUTS, "1")
PLAIN, CHECKED, VALUES_CODE, AGAIN = "AD-RUN-001", "AD-RUN-003", "AD-RUN-005", "AD-RUN-002"
_OF_CAUSE = {"input-mutation": "unchanged", "output-alias": "separate"}
_NUMERIC = ("numeric-difference", "codegen-bug", "train-mode", "weights-differ", "custom-op-fake-kernel")


@record
class Mode:
    """A way to show the failure.

    ``wanted`` is the ending that it must have, None for an assertion of the script (or where nothing was run before).
    """

    name: str
    recipe: Recipe
    wanted: CallEnding | None = None

    def matches(self, ending: CallEnding | None) -> bool:
        """Whether a script with this ending shows the failure."""
        if ending is None:
            return False
        if self.recipe.verdict:
            return ending.kind == "raised" and ending.detail.startswith("AssertionError")
        return self.wanted is None or ending == self.wanted


def modes(case: Case, diagnoses: Sequence[Diagnosis], findings: Sequence[Evidence], base: Recipe) -> Iterator[Mode]:
    """The ways to try, the most direct first."""
    plain = _error(findings, PLAIN)
    if plain is not None:
        wanted = ending_of_finding(plain)
        yield Mode(name="as it is", recipe=base, wanted=wanted)
        return
    if not any(item.code == PLAIN for item in findings):
        yield Mode(name="load only", recipe=replace(base, args=None))
        if base.args is not None:
            yield Mode(name="the call", recipe=base)
        return
    cause = diagnoses[0].cause if diagnoses else ""
    if _error(findings, VALUES_CODE) is not None:
        yield Mode(name="NaN or Inf", recipe=replace(base, verdict="finite"))
    if any(item.code == AGAIN and item.kind == "differs" for item in findings):
        yield Mode(name="two calls", recipe=replace(base, verdict="again"))
    if cause in _OF_CAUSE:
        yield Mode(name=_OF_CAUSE[cause], recipe=replace(base, verdict=_OF_CAUSE[cause]))
    # The call against the repaired call, if the repair is known to help.
    healed = {item.facts.get("cause") for item in findings if item.code == "AD-TREAT-001" and item.kind == "healed"}
    treatment = plan_treatment(cause, case, findings) if cause in healed else None
    call = treated_call(case.inputs, treatment.steps) if treatment is not None and case.inputs is not None else None
    if call is not None:
        yield Mode(name="the repaired call", recipe=replace(base, verdict="treated", treated=call))
    checked = _error(findings, CHECKED)
    if checked is not None:
        recipe = replace(base, environment=(*base.environment, CHECKS))
        yield Mode(name="input checks", recipe=recipe, wanted=ending_of_finding(checked))
    if case.reference is not None and cause in _NUMERIC:
        yield Mode(name="the exported program", recipe=replace(base, verdict="reference"))


def _error(findings: Sequence[Evidence], code: str) -> Evidence | None:
    return next((item for item in findings if item.code == code and item.severity is Severity.ERROR), None)


# The folder and the children of the attempts.
PROBE = "repro"
# Factor on the time limit: a new interpreter imports torch and examines the CPU.
FRESH = 3.0
VALUES_FILE = "values.pt"


class BudgetSpentError(Exception):
    """No time is left for another attempt."""


@dataclass(slots=True, kw_only=True)
class Bench:
    """A place to try scripts. ``folder`` holds the package and other files of the script; ``tried`` lists the attempts.

    ``wanted`` is the ending that the script must have, None until that is known. ``deadline`` is in seconds of the
    monotonic clock, None without ``--budget``; an attempt that it ends shows nothing, and raises BudgetSpentError.
    """

    case: Case
    runner: Runner
    folder: Path
    timeout: float
    on_event: OnEvent = lambda _event: None
    wanted: CallEnding | None = None
    deadline: float | None = None
    tried: list[str] = field(default_factory=list)

    def left(self) -> float | None:
        """The seconds that are left for an attempt; None without a limit. Raises BudgetSpentError."""
        left = None if self.deadline is None else self.deadline - time.monotonic()
        if left is not None and left < LEAST_TIMEOUT_S:
            raise BudgetSpentError
        return left

    def ending(self, recipe: Recipe, what: str, *, fresh: bool = False) -> CallEnding | None:
        """Run the script of ``recipe``; its ending, None if it succeeds. ``what`` names the attempt."""
        text, load_line = script_text(recipe)
        path = self.folder / NAME
        path.write_text(text, encoding="utf-8")
        outcome = self._run(what, "script", Script(path=str(path.absolute()), torch=not fresh), fresh=fresh)
        ended = ending_of_script(self.case, outcome, load_line)
        self.tried.append(f"{what}: {ended.text if ended is not None else 'no failure'}")
        return ended

    def fails_alike(self, recipe: Recipe, what: str, *, fresh: bool = False) -> bool:
        """Whether the script has the wanted ending."""
        return self.wanted is not None and self.ending(recipe, what, fresh=fresh) == self.wanted

    def save_values(self, paths: list[str] | None) -> bool:
        """Write tensors of the user's inputs beside the script; False if that fails."""
        target = self.folder / VALUES_FILE
        inputs = inputs_source(self.case)
        if inputs is None:
            return False
        wanted = None if paths is None else tuple(paths)
        payload = SaveInputs(inputs=inputs, target=str(target.absolute()), paths=wanted)
        outcome = self._run("save inputs", "save_inputs", payload)
        return outcome.error is None and target.exists()

    def save_call(self, recipe: Recipe, target: Path) -> bool:
        """Write the arguments of the script's call as an inputs file; False if that fails."""
        text, load_line = script_text(recipe)
        head = "\n".join(text.splitlines()[: load_line - 1])
        path = self.folder / ".call.py"
        saved = f'torch.save({{"args": args, "kwargs": kwargs}}, {str(target.absolute())!r})'
        path.write_text(f"{head}\n{saved}\n", encoding="utf-8")
        outcome = self._run("save call", "script", Script(path=str(path.absolute()), torch=True))
        path.unlink()
        return outcome.error is None and target.exists()

    def _run(self, what: str, job: str, payload: Job, *, fresh: bool = False) -> Outcome:
        left = self.left()
        self.on_event(Event(kind=EventKind.PROBE_START, name=PROBE))
        begun = time.monotonic()
        limit = self.timeout * (FRESH if fresh else 1.0)
        timeout = limit if left is None else min(limit, left)
        # A driver must not be forked.
        fresh = fresh or device_of(self.case) != "cpu"
        outcome = self.runner.run(
            Request(probe=PROBE, job=job, payload=payload, fresh=fresh, timeout=timeout, purpose=what)
        )
        seconds = time.monotonic() - begun
        self.on_event(Event(kind=EventKind.PROBE_END, name=PROBE, seconds=seconds, verdict=what))
        if timeout < limit and isinstance(outcome.ending, TimedOut):
            raise BudgetSpentError
        return outcome
