"""``aotidoctor minimize``: find the smallest part of a program that still fails in the same way.

The search is pure: it yields the operators to keep, is sent whether that part still fails alike, and returns the fewest
that did. It takes operators from the end, then from the beginning (both by halving, as if a longer part failed wherever
a shorter one does), then groups out of the middle, until no single operator can be left out. Each part is cut out,
compiled and called in children of its own. The folder holds all answers, so that an interrupted search can go on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from aotidoctor.commands.diagnose_package import REFERENCE_MODULES
from aotidoctor.localize.comparison import FINE, read_comparison
from aotidoctor.model.answers import PartCut, parse_answer
from aotidoctor.model.artifact import ArtifactKind
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
from aotidoctor.runner.runner import Runner
from aotidoctor.triage import open_case
from aotidoctor.triage.compile_cache import CompileCache, open_cache
from aotidoctor.triage.static_checks import Session

# What to try next.

Names = tuple[str, ...]
Search = Generator[Names, bool, Names]


def fewest_operators(operators: Sequence[str]) -> Search:
    """The search; ``operators`` are all of them in order, which are known to fail."""
    best = tuple(operators)
    best = yield from _from_the_end(best)
    best = yield from _from_the_beginning(best)
    return (yield from _from_the_middle(best))


def _from_the_end(names: Names) -> Search:
    low, high = 0, len(names)
    while high - low > 1:
        middle = (low + high) // 2
        failed = yield names[:middle]
        low, high = (low, middle) if failed else (middle, high)
    return names[:high]


def _from_the_beginning(names: Names) -> Search:
    low, high = 0, len(names)
    while high - low > 1:
        middle = (low + high) // 2
        failed = yield names[middle:]
        low, high = (middle, high) if failed else (low, middle)
    return names[low:]


def _from_the_middle(names: Names) -> Search:
    """Delta debugging: leave out one of n groups; where none can be, twice as many groups."""
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


# The folder of a search: its answers, and the smallest part that fails.

STATE_FILE = "minimize.json"
RESULT_FILES = ("exported.pt2", "sample.pt", "model.pt2")
MINIMIZE_SCHEMA = "aotidoctor.minimize/1"
_CHUNK = 1 << 20


@dataclass(slots=True)
class SearchFolder:
    """``answers`` maps a hash of the operators that were kept to whether that failed alike.

    ``operators`` are all of the program, ``targets`` what they call; empty until the whole program failed alike.
    """

    place: Path
    key: str
    answers: dict[str, bool] = field(default_factory=dict)
    best: tuple[str, ...] | None = None
    operators: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    def known(self, names: Sequence[str]) -> bool | None:
        """The answer for these operators; None where it was not asked."""
        return self.answers.get(_hash(names))

    def answer(self, names: Sequence[str], *, failed: bool, room: Path) -> None:
        """Keep an answer; where it failed alike, the files of ``room`` are the best ones now. Raises OSError."""
        self.answers[_hash(names)] = failed
        if failed and (self.best is None or len(names) <= len(self.best)):
            self.best = tuple(names)
            for name in RESULT_FILES:
                os.replace(room / name, self.place / name)  # noqa: PTH105 - over what is there
        self._write()

    def _write(self) -> None:
        best: list[JsonValue] = [*(self.best or ())]
        state: JsonObject = {
            "schema": MINIMIZE_SCHEMA,
            "key": self.key,
            "best": best,
            "operators": [*self.operators],
            "targets": [*self.targets],
            "answers": dict(self.answers.items()),
        }
        draft = self.place / f"{STATE_FILE}.part"
        draft.write_text(json.dumps(state, indent=1), encoding="utf-8")
        os.replace(draft, self.place / STATE_FILE)  # noqa: PTH105 - likewise


def open_folder(place: Path, key: str) -> SearchFolder:
    """The folder of a new search, or of one that goes on.

    Raises:
        UsageError: it holds something else, or the search of another case.
        CannotExamineError: it cannot be written.
    """
    state = _read_state(place / STATE_FILE)
    if state is None and place.is_dir() and any(place.iterdir()):
        raise UsageError(f"{place} is not empty and is not the folder of a search; nothing was overwritten")
    if state is not None and state.get("key") != key:
        raise UsageError(f"{place} contains the search of a different package, program or call; give -o another folder")
    with examining(place):
        place.mkdir(parents=True, exist_ok=True)
    found = SearchFolder(place=place, key=key)
    if state is not None:
        answers, best = state.get("answers"), state.get("best")
        if isinstance(answers, dict):
            found.answers = {name: value for name, value in answers.items() if isinstance(value, bool)}
        if isinstance(best, list) and best and all((place / name).is_file() for name in RESULT_FILES):
            found.best = tuple(map(str, best))
            found.operators = tuple(map(str, as_list(state.get("operators"))))
            found.targets = tuple(map(str, as_list(state.get("targets"))))
    return found


def _hash(names: Sequence[str]) -> str:
    return hashlib.sha256(",".join(names).encode()).hexdigest()[:16]


def _read_state(path: Path) -> JsonObject | None:
    with suppress(OSError, ValueError, RecursionError):
        value: JsonValue = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(value, dict) and value.get("schema") == MINIMIZE_SCHEMA:
            return value
    return None


def key_of(*paths: str | None) -> str:
    """Of the files' contents. Raises CannotExamineError."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(b"\0")
        if path is None:
            continue
        with examining(path), open(path, "rb") as stream:  # noqa: PTH123 - paths are texts here
            while data := stream.read(_CHUNK):
                digest.update(data)
    return digest.hexdigest()


# One part: cut out, compiled and called; how it fails.

CUT_TIMEOUT_S = 300.0
# Names of generated kernels hold the operators that were fused: another part has others.
_KERNEL = re.compile(r"\b(?:cpp|triton)_\w+")
# Of ``shrink.signature_of``: kind, signal, type, symptom, kernel, operator, variable, words.
_COMPARED = (0, 1, 2, 3, 5)
_WORDS = 7
Manner = tuple[FactValue, ...]


@record
class PartResult:
    """``manner`` is how it failed (None: it did not), ``problem`` why there was nothing to call."""

    manner: Manner | None = None
    problem: str | None = None
    operators: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    inputs: int = 0
    package: Path | None = None


class OutOfTimeError(Exception):
    """The budget is spent."""


def manner_of(case: Case, outcome: Outcome) -> Manner | None:
    """How a run failed, as far as a part of the program can fail alike; None where it did not."""
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
    """What all attempts share. ``session`` is of the original case, and holds the runner and the deadline."""

    session: Session
    cache: CompileCache
    environ: Mapping[str, str]

    def whole(self) -> Manner | None:
        """How the package itself fails on its inputs."""
        case = self.session.case
        outcome = self._run(
            run_request(case, "minimize", "the unchanged package", **_call_request(case.options.reference))
        )
        if isinstance(outcome.ending, NotStarted):
            raise OutOfTimeError(outcome.ending.reason)
        return manner_of(case, outcome)

    def attempt(self, names: Sequence[str] | None, room: Path) -> PartResult:
        """The part of these operators (None: all), made in ``room``. Raises OutOfTimeError."""
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
        return replace(tried, manner=self.called(target, room / "sample.pt", room / "exported.pt2"))

    def called(self, package: Path, sample: Path, program: Path) -> Manner | None:
        """How a part fails."""
        options = replace(_plain(self.session.case.options), reference=str(program))
        case, _ = open_case.open_case(str(package), str(sample), options, self.environ)
        return manner_of(case, self._run(run_request(case, "minimize", "call it", **_call_request(str(program)))))

    def _run(self, request: Request) -> Outcome:
        outcome = self.session.run(request)
        if outcome is None:
            raise OutOfTimeError(self.session.refusal())
        if outcome.request.timeout < request.timeout and not succeeded(outcome) and outcome.error is None:
            # What the budget ended says nothing of the part.
            raise OutOfTimeError("the time budget is spent")
        return outcome


def _plain(options: Options) -> Options:
    """Without what is about the original package."""
    return replace(options, model_name=None, weights=None, trust_pickle=False)


def _call_request(reference: str | None) -> dict[str, object]:
    return {"calls": 1, "observe": ("outputs",), "reference": reference}


def _why(outcome: Outcome) -> str:
    words = f"{outcome.error.type}: {outcome.error.message}" if outcome.error is not None else "it did not finish"
    return f"{outcome.stage}: {' '.join(words.split())[:300]}"


# From a failing call to the smallest part, and a script of it.

OnStep = Callable[[str], None]
REPRO = "repro"


@record
class Minimized:
    """What came of it.

    ``ending`` is ``smallest`` (no operator can be left out), ``unfinished`` (the budget ended the search),
    ``healthy`` (the call does not fail) or ``package-only`` (the program, compiled here, does not fail alike).
    ``operators`` are those of the part that fails, ``targets`` what they call; ``manner`` is how it fails. ``asked``
    counts the parts that were compiled in this call. ``repro`` says what became of the script.
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
    """Search until nothing can be left out, or ``options.budget`` (seconds) is spent; go on where it ended before.

    Raises:
        UsageError: the folder holds something else.
        CannotExamineError: package, inputs or program cannot be read or run here.
    """
    began = time.monotonic()
    case = _case(package, inputs, options, environ)
    folder = open_folder(directory, key_of(package, inputs, options.reference, options.setup))
    with Runner(environ=environ, preload=REFERENCE_MODULES) as runner:
        deadline = None if options.budget is None else began + options.budget
        session = Session(case=case, runner=runner, deadline=deadline)
        shop = AttemptContext(session=session, cache=open_cache(), environ=environ)
        found = _search(shop, folder, on_step)
    found = replace(found, package=package, directory=str(directory))
    if with_repro and folder.best is not None and found.ending in ("smallest", "unfinished"):
        found = replace(found, repro=_repro(folder, options, environ, on_step))
    return replace(found, seconds=time.monotonic() - began)


def _case(package: str, inputs: str, options: Options, environ: Mapping[str, str]) -> Case:
    open_case.check_reference(options.reference)
    case, _ = open_case.open_case(package, inputs, options, environ)
    if case.artifact.kind is ArtifactKind.MISSING:
        raise CannotExamineError(f"no such file: {package}")
    if case.artifact.names_unsafe or case.artifact.bad_crc or case.model is None:
        raise CannotExamineError(f"{package}: {case.artifact.problem or 'it is not a package that is executed'}")
    if case.inputs is None:
        raise CannotExamineError(str(case.inputs_error or f"{inputs}: no inputs"))
    if case.reference is None:
        raise CannotExamineError(f"{options.reference}: not a readable torch.export archive")
    return case


def _search(shop: AttemptContext, folder: SearchFolder, on_step: OnStep) -> Minimized:
    empty = Minimized(package="", directory="", ending="unfinished")
    try:
        on_step("the unchanged package")
        wanted = shop.whole()
        if wanted is None:
            return replace(empty, ending="healthy", reason="the call does not fail, and agrees with the program")
        whole = _whole(shop, folder, wanted)
        if whole.manner != wanted:
            said = whole.problem or f"compiled here it ends differently: {_text(whole.manner)}, not {_text(wanted)}"
            return replace(empty, ending="package-only", reason=said, manner=_texts(wanted), asked=1)
    except OutOfTimeError as error:
        return replace(empty, reason=str(error))
    return _cut_down(shop, folder, whole, wanted, on_step)


def _cut_down(
    shop: AttemptContext, folder: SearchFolder, whole: PartResult, wanted: Manner, on_step: OnStep
) -> Minimized:
    """The search itself: each answer is kept as soon as it is there."""
    search, ending, reason = fewest_operators(whole.operators), "smallest", None
    asked = int(whole.package is not None)
    try:
        names = next(search)
        while True:
            failed = folder.known(names)
            if failed is None:
                on_step(f"{len(names)} of {len(whole.operators)} operators")
                failed, asked = _try_part(shop, folder, names, wanted), asked + 1
            names = search.send(failed)
    except StopIteration:
        pass
    except OutOfTimeError as error:
        ending, reason = "unfinished", str(error)
    except KeyboardInterrupt:
        ending, reason = "unfinished", "interrupted"
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
        asked=asked,
        reason=reason,
    )


def _whole(shop: AttemptContext, folder: SearchFolder, wanted: Manner) -> PartResult:
    """The whole program, compiled here: the smallest part that fails as long as there is no other."""
    if folder.operators and folder.known(folder.operators):
        return PartResult(manner=wanted, operators=folder.operators, targets=folder.targets)
    with _room(folder) as room:
        tried = shop.attempt(None, Path(room))
        if tried.manner == wanted:
            folder.operators, folder.targets = tried.operators, tried.targets
            folder.answer(tried.operators, failed=True, room=Path(room))
        return tried


def _try_part(shop: AttemptContext, folder: SearchFolder, names: tuple[str, ...], wanted: Manner) -> bool:
    with _room(folder) as room:
        failed = shop.attempt(names, Path(room)).manner == wanted
        folder.answer(names, failed=failed, room=Path(room))
        return failed


def _room(folder: SearchFolder) -> tempfile.TemporaryDirectory[str]:
    """A folder for one attempt, on the disk of the result."""
    return tempfile.TemporaryDirectory(prefix=".attempt-", dir=folder.place, ignore_cleanup_errors=True)


def _repro(folder: SearchFolder, options: Options, environ: Mapping[str, str], on_step: OnStep) -> str:
    """A script of the smallest part."""
    from aotidoctor.commands.repro import reproduce

    on_step("a script of it")
    wanted = Options(
        reference=str(folder.place / "exported.pt2"),
        setup=options.setup,
        custom_op_libraries=options.custom_op_libraries,
        timeout=options.timeout,
    )
    package, sample = str(folder.place / "model.pt2"), str(folder.place / "sample.pt")
    report = reproduce.repro(package, sample, wanted, folder.place / REPRO, environ=environ)
    return report.extra.get("repro", "not made")


def _texts(manner: Manner) -> tuple[str, ...]:
    return tuple(str(part) for part in manner if part not in (None, ""))


def _text(manner: Manner | None) -> str:
    return " ".join(_texts(manner)) if manner is not None else "it does not fail"
