"""Find the smallest part of a program that still fails in the same way (``aotidoctor minimize``).

The search is a generator: it yields the operators to keep, receives whether that part still fails in the same way, and
returns the fewest that did. It removes operators from the end, then from the beginning (both by halving, as if a longer
part failed wherever a shorter one does), then groups from the middle, until no single operator can be left out. Each
part is cut out, compiled and called in children of its own. The folder holds all answers, so that an interrupted search
can continue.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from aotidoctor.commands.diagnose_package import REFERENCE_MODULES
from aotidoctor.files import is_draft, open_regular, write_file
from aotidoctor.interruption import interruptible
from aotidoctor.localize.comparison import FINE, read_comparison
from aotidoctor.localize.stages import DECOMPOSED, EXPORTED, read_stage
from aotidoctor.model.answers import PartCut, parse_answer
from aotidoctor.model.case import Case, Options
from aotidoctor.model.errors import CannotExamineError, UsageError, examining
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.jobs import Cut
from aotidoctor.model.record import JsonObject, JsonValue, as_list, record
from aotidoctor.model.run import NotStarted, Outcome, Request
from aotidoctor.probes import recompiled
from aotidoctor.probes.payload import inputs_source, run_request, user_code
from aotidoctor.probes.probe import succeeded
from aotidoctor.probes.shrink import signature_of
from aotidoctor.probes.stages import stage_request
from aotidoctor.runner.portable import make_runner
from aotidoctor.triage import open_case
from aotidoctor.triage.compile_cache import CompileCache, open_cache
from aotidoctor.triage.state import Session

# What to try next.
Names = tuple[str, ...]
Search = Generator[Names, bool, Names]


def fewest_operators(operators: Sequence[str], suspects: Sequence[str] = ()) -> Search:
    """Search for the fewest operators that fail; ``operators`` are all of them in order, which are known to fail.

    ``suspects`` are tried alone first.
    """
    names = tuple(operators)
    if 0 < len(suspects) < len(names) and (yield tuple(suspects)):
        names = tuple(suspects)
    else:
        names = yield from _halve(names)
    # From the middle, by delta debugging: leave out one of n groups; if none can be, make twice as many groups.
    groups = 2
    while len(names) > 1:
        size = -(-len(names) // groups)
        for start in range(0, len(names), size):
            rest = (*names[:start], *names[start + size :])
            if rest and (yield rest):
                names, groups = rest, max(groups - 1, 2)
                break
        else:
            if size == 1:
                break
            groups = min(groups * 2, len(names))
    return names


def _halve(names: Names) -> Search:
    low, high = 0, len(names)
    # From the end.
    while high - low > 1:
        middle = (low + high) // 2
        failed = yield names[:middle]
        low, high = (low, middle) if failed else (middle, high)
    names = names[:high]
    low, high = 0, len(names)
    # From the beginning.
    while high - low > 1:
        middle = (low + high) // 2
        failed = yield names[middle:]
        low, high = (middle, high) if failed else (low, middle)
    return names[low:]


# The folder of a search: its answers, and the smallest part that fails.
STATE_FILE = "minimize.json"
RESULT_FILES = ("exported.pt2", "sample.pt", "model.pt2")
MINIMIZE_SCHEMA = "aotidoctor.minimize/1"
_CHUNK = 1 << 20
_ATTEMPT = ".attempt-"


@dataclass(slots=True)
class SearchFolder:
    """The state of a search. ``answers`` maps a hash of the operators of a part to whether it failed in the same way.

    ``operators`` are all of the program, ``targets`` the functions that they call; empty until the program failed.
    """

    place: Path
    key: str
    answers: dict[str, bool] = field(default_factory=dict)
    best: tuple[str, ...] | None = None
    operators: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    def answer_for(self, names: Sequence[str]) -> bool | None:
        """The answer for these operators; None if they were not tried."""
        return self.answers.get(_hash(names))

    def answer(self, names: Sequence[str], *, failed: bool, room: Path) -> None:
        """Store an answer, and the files of ``room`` if they are the smallest part that failed.

        Raises CannotExamineError where they cannot be written.
        """
        self.answers[_hash(names)] = failed
        if failed and (self.best is None or len(names) <= len(self.best)):
            self.best = tuple(names)
            with examining(self.place):
                for name in RESULT_FILES:
                    (room / name).replace(self.place / name)
        best: list[JsonValue] = [*(self.best or ())]
        state: JsonObject = {
            "schema": MINIMIZE_SCHEMA,
            "key": self.key,
            "best": best,
            "operators": [*self.operators],
            "targets": [*self.targets],
            "answers": dict(self.answers.items()),
        }
        with examining(self.place / STATE_FILE):
            write_file(self.place / STATE_FILE, json.dumps(state, indent=1))


def open_folder(place: Path, key: str) -> SearchFolder:
    """Open the folder of a new search, or of one to continue.

    Raises:
        UsageError: it has other contents, or the search of another case.
        CannotExamineError: it cannot be written.
    """
    state: JsonObject | None = None
    with suppress(OSError, ValueError, RecursionError):
        with open_regular(place / STATE_FILE) as stream:
            value: JsonValue = json.load(stream)
        if isinstance(value, dict) and value.get("schema") == MINIMIZE_SCHEMA:
            state = value
    inside = [*place.iterdir()] if place.is_dir() else []
    # Left by a search that was killed.
    attempts = [path for path in inside if path.name.startswith(_ATTEMPT) and not path.is_symlink()]
    drafts = [path for path in inside if is_draft(path.name)]
    # Killed between the files of its first result and its state, it has left some of them beside the attempt.
    results = [path for path in inside if attempts and path.name in RESULT_FILES]
    if state is None and len(inside) > len(attempts) + len(drafts) + len(results):
        raise UsageError(f"{place} is not empty and is not the folder of a search; nothing was overwritten")
    if state is not None and state.get("key") != key:
        raise UsageError(f"{place} contains the search of a different package, program or call; give -o another folder")
    with examining(place):
        place.mkdir(parents=True, exist_ok=True)
    for path in attempts:
        shutil.rmtree(path, ignore_errors=True)
    for path in drafts:
        path.unlink(missing_ok=True)
    found = SearchFolder(place=place, key=key)
    if state is not None:
        answers, best = state.get("answers"), state.get("best")
        if isinstance(answers, dict):
            found.answers = {name: failed for name, failed in answers.items() if isinstance(failed, bool)}
        if isinstance(best, list) and best and all((place / name).is_file() for name in RESULT_FILES):
            found.best = tuple(map(str, best))
            found.operators = tuple(map(str, as_list(state.get("operators"))))
            found.targets = tuple(map(str, as_list(state.get("targets"))))
    return found


def _hash(names: Sequence[str]) -> str:
    return hashlib.sha256(",".join(names).encode()).hexdigest()[:16]


def key_of(*paths: str | None) -> str:
    """Hash the contents of files. Raises CannotExamineError."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(b"\0")
        if path is None:
            continue
        with examining(path), Path(path).open("rb") as stream:
            while data := stream.read(_CHUNK):
                digest.update(data)
    return digest.hexdigest()


# One part: cut out, compiled and called; how it fails.
CUT_TIMEOUT_S = 300.0
# Names of generated kernels contain the fused operators, which differ between parts.
_KERNEL = re.compile(r"\b(?:cpp|triton)_\w+")
# Indices into ``shrink.signature_of``: kind, signal, type, symptom, kernel, operator, variable, words.
_COMPARED = (0, 1, 2, 3, 5)
_WORDS = 7
Manner = tuple[FactValue, ...]


@record
class PartResult:
    """A part of the program. ``manner`` describes its failure (None: none), ``problem`` why it was not called.

    ``operators`` are its operators, ``targets`` the functions that they call.
    """

    manner: Manner | None = None
    problem: str | None = None
    operators: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    inputs: int = 0
    package: Path | None = None


class OutOfTimeError(Exception):
    """The budget is spent."""


def manner_of(case: Case, outcome: Outcome) -> Manner | None:
    """The failure of a run, without details that differ between parts of a program; None if it did not fail."""
    found = signature_of(case, outcome)
    if found is not None:
        return (*(found[at] for at in _COMPARED), _KERNEL.sub("kernel", str(found[_WORDS])))
    if not succeeded(outcome):
        return None
    wrong = [item for item in read_comparison(outcome) if item.verdict not in FINE]
    kinds = {"nan" if item.nan_differs else "numbers" for item in wrong}
    return ("wrong", min(kinds, key=("nan", "numbers").index)) if kinds else None


@record
class AttemptContext:
    """The context of all attempts. ``session`` is of the original case, with the runner and the deadline."""

    session: Session
    cache: CompileCache
    environ: Mapping[str, str]

    def whole(self) -> Manner | None:
        """The failure of the package itself on its inputs."""
        case = self.session.case
        outcome = self._run(
            run_request(case, "minimize", "the unchanged package", **_call_request(case.options.reference))
        )
        if isinstance(outcome.ending, NotStarted):
            raise OutOfTimeError(outcome.ending.reason)
        return manner_of(case, outcome)

    def suspects(self, whole: PartResult) -> Names:
        """The operators whose decomposition gives other values than they do; nothing is compiled for that."""
        request = stage_request(self.session.case, DECOMPOSED, EXPORTED)
        wrong = read_stage(DECOMPOSED, self._run(request)).operator
        pairs = zip(whole.operators, whole.targets, strict=False)
        return tuple(name for name, target in pairs if target == wrong)

    def attempt(self, names: Sequence[str] | None, room: Path) -> PartResult:
        """Make and call the part with these operators (None: all) in ``room``. Raises OutOfTimeError."""
        case = self.session.case
        payload = Cut(
            code=user_code(case),
            reference=case.options.reference or "",
            inputs=inputs_source(case),
            nodes=None if names is None else tuple(names),
            folder=str(room),
        )
        what = "the program" if names is None else f"{len(names)} operators"
        cut = self._run(
            Request(probe="minimize", job="cut", payload=payload, timeout=CUT_TIMEOUT_S, purpose=f"cut out {what}")
        )
        part = parse_answer(PartCut, cut.result)
        tried = PartResult(operators=part.operators, targets=part.targets)
        if not succeeded(cut) or part.problem:
            return replace(tried, problem=part.problem or _why(cut))
        target = room / "model.pt2"
        program, cache = str(room / "exported.pt2"), str(self.cache.compiler)
        compiled = self._run(
            recompiled.compile_request(
                case, "minimize", f"compile {what}", reference=program, target=str(target), cache=cache
            )
        )
        if not succeeded(compiled):
            return replace(tried, problem=_why(compiled))
        tried = replace(tried, package=target, inputs=part.inputs)
        # Without options that are about the original package.
        options = replace(case.options, reference=program, model_name=None, weights=None, trust_pickle=False)
        small, _ = open_case.open_case(str(target), str(room / "sample.pt"), options, self.environ)
        outcome = self._run(run_request(small, "minimize", "call it", **_call_request(program)))
        return replace(tried, manner=manner_of(small, outcome))

    def _run(self, request: Request) -> Outcome:
        outcome = self.session.run(request)
        if outcome is None:
            raise OutOfTimeError(self.session.refusal())
        if outcome.request.timeout < request.timeout and not succeeded(outcome) and outcome.error is None:
            # A run that the budget ended shows nothing about the part.
            raise OutOfTimeError("the time budget is spent")
        return outcome


def _call_request(reference: str | None) -> dict[str, object]:
    return {"calls": 1, "observe": ("outputs",), "reference": reference}


def _why(outcome: Outcome) -> str:
    words = f"{outcome.error.type}: {outcome.error.message}" if outcome.error is not None else "it did not finish"
    return f"{outcome.stage}: {' '.join(words.split())[:300]}"


# From a failing call to the smallest part, and a script of it.
OnStep = Callable[[str], None]
REPRO, INTERRUPTED = "repro", "interrupted"


@record
class Minimized:
    """The result of a search.

    ``ending`` is ``smallest`` (no operator can be left out), ``unfinished`` (the budget ended the search),
    ``healthy`` (the call does not fail) or ``package-only`` (the program, compiled here, fails in another way).
    ``operators`` are those of the part that fails, ``targets`` the functions that they call; ``manner`` describes the
    failure. ``asked`` counts the parts that were compiled in this call. ``repro`` is the outcome of the script.
    """

    package: str
    directory: str
    ending: str
    of: int = 0
    operators: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    manner: tuple[str, ...] = ()
    asked: int = 0
    reason: str | None = None
    repro: str | None = None
    seconds: float = 0.0


def minimize(
    package: str,
    inputs: str,
    options: Options,
    directory: Path,
    *,
    environ: Mapping[str, str],
    on_step: OnStep = lambda _text: None,
    with_repro: bool = True,
) -> Minimized:
    """Search until nothing can be left out, or ``options.budget`` (seconds) is spent; continue an earlier search.

    Raises:
        UsageError: the folder has other contents.
        CannotExamineError: package, inputs or program cannot be read or run here.
    """
    began = time.monotonic()
    with interruptible():
        case = _case(package, inputs, options, environ)
        # The children, whose folder is another one, write there.
        folder = open_folder(directory.absolute(), key_of(package, inputs, options.reference, options.setup))
    with make_runner(environ=environ, preload=REFERENCE_MODULES) as runner:
        deadline = None if options.budget is None else began + options.budget
        session = Session(case=case, runner=runner, deadline=deadline)
        context = AttemptContext(session=session, cache=open_cache(), environ=environ)
        found = _search(context, folder, on_step)
    found = replace(found, package=package, directory=str(directory))
    if with_repro and folder.best is not None and found.ending in ("smallest", "unfinished"):
        found = replace(
            found, repro=INTERRUPTED if found.reason == INTERRUPTED else _repro(folder, options, environ, on_step)
        )
    return replace(found, seconds=time.monotonic() - began)


def _case(package: str, inputs: str, options: Options, environ: Mapping[str, str]) -> Case:
    open_case.check_reference(options.reference)
    case, _ = open_case.open_case(package, inputs, options, environ)
    open_case.refuse_damaged(case.artifact)
    if case.model is None:
        raise CannotExamineError(f"{package}: {case.artifact.problem or 'it is not a package that is executed'}")
    if case.inputs is None:
        raise CannotExamineError(str(case.inputs_error or f"{inputs}: no inputs"))
    if case.reference is None:
        raise CannotExamineError(f"{options.reference}: not a readable torch.export archive")
    return case


def _search(context: AttemptContext, folder: SearchFolder, on_step: OnStep) -> Minimized:
    empty = Minimized(package="", directory="", ending="unfinished")
    try:
        on_step("the unchanged package")
        with interruptible():
            wanted = context.whole()
            if wanted is None:
                return replace(empty, ending="healthy", reason="the call does not fail, and agrees with the program")
            whole = _whole(context, folder, wanted)
        if whole.problem is not None:
            raise CannotExamineError(f"the program could not be compiled and called here: {whole.problem}")
        if whole.manner != wanted:
            reason = f"compiled here it ends differently: {_text(whole.manner)}, not {_text(wanted)}"
            return replace(empty, ending="package-only", reason=reason, manner=_texts(wanted), asked=1)
    except OutOfTimeError as error:
        return replace(empty, reason=str(error))
    except KeyboardInterrupt:
        return replace(empty, reason=INTERRUPTED)
    return _cut_down(context, folder, whole, wanted, on_step)


def _cut_down(
    context: AttemptContext, folder: SearchFolder, whole: PartResult, wanted: Manner, on_step: OnStep
) -> Minimized:
    """Run the search, and store each answer at once."""
    ending, reason = "smallest", None
    compiled = int(whole.package is not None)
    try:
        on_step("the program after its decompositions")
        with interruptible():
            search = fewest_operators(whole.operators, context.suspects(whole))
        names = next(search)
        while True:
            failed = folder.answer_for(names)
            if failed is None:
                on_step(f"{len(names)} of {len(whole.operators)} operators")
                with _room(folder) as room:
                    with interruptible():
                        failed = context.attempt(names, Path(room)).manner == wanted
                    folder.answer(names, failed=failed, room=Path(room))
                compiled += 1
            names = search.send(failed)
    except StopIteration:
        pass
    except OutOfTimeError as error:
        ending, reason = "unfinished", str(error)
    except KeyboardInterrupt:
        ending, reason = "unfinished", INTERRUPTED
    best = folder.best or whole.operators
    targets = dict(zip(whole.operators, whole.targets, strict=False))
    return Minimized(
        package="",
        directory="",
        ending=ending,
        of=len(whole.operators),
        operators=best,
        targets=tuple(targets.get(name, "") for name in best),
        manner=_texts(wanted),
        asked=compiled,
        reason=reason,
    )


def _whole(context: AttemptContext, folder: SearchFolder, wanted: Manner) -> PartResult:
    """Compile and call the whole program, which is the smallest part that fails until there is another."""
    if folder.operators and folder.answer_for(folder.operators):
        return PartResult(manner=wanted, operators=folder.operators, targets=folder.targets)
    with _room(folder) as room:
        tried = context.attempt(None, Path(room))
        if tried.manner == wanted:
            folder.operators, folder.targets = tried.operators, tried.targets
            folder.answer(tried.operators, failed=True, room=Path(room))
        return tried


def _room(folder: SearchFolder) -> tempfile.TemporaryDirectory[str]:
    """A folder for one attempt, on the disk of the result."""
    return tempfile.TemporaryDirectory(prefix=_ATTEMPT, dir=folder.place, ignore_cleanup_errors=True)


def _repro(folder: SearchFolder, options: Options, environ: Mapping[str, str], on_step: OnStep) -> str:
    """Write a script of the smallest part."""
    from aotidoctor.commands.repro import reproduce

    on_step("a script of it")
    part_options = Options(
        reference=str(folder.place / "exported.pt2"),
        setup=options.setup,
        custom_op_libraries=options.custom_op_libraries,
        timeout=options.timeout,
    )
    package, sample = str(folder.place / "model.pt2"), str(folder.place / "sample.pt")
    try:
        with interruptible():
            report = reproduce.repro(package, sample, part_options, folder.place / REPRO, environ=environ)
    except KeyboardInterrupt:
        return INTERRUPTED
    return report.extra.get("repro", "not made")


def _texts(manner: Manner) -> tuple[str, ...]:
    return tuple(str(part) for part in manner if part not in (None, ""))


def _text(manner: Manner | None) -> str:
    return " ".join(_texts(manner)) if manner is not None else "it does not fail"
