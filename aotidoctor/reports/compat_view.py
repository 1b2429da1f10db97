"""What ``aotidoctor compat`` answers, as rows of words: the layout is in the formats."""

from __future__ import annotations

from collections.abc import Iterator

from aotidoctor.model.compat import Answer, Compatibility, HostAnswer, PackageNeeds
from aotidoctor.model.phrases import plural
from aotidoctor.reports.text import one_line
from aotidoctor.reports.tones import Headline

HEADINGS = ("Package", "Host", "Answer", "Because")
MATRIX = "Packages and hosts"
WORDS = {Answer.RUNS: "runs", Answer.REFUSED: "will not run", Answer.UNKNOWN: "undetermined"}
TONES = {Answer.RUNS: "good", Answer.REFUSED: "bad", Answer.UNKNOWN: "unsure"}
_LONGEST = 400


def names(found: Compatibility) -> dict[str, str]:
    """Package to the shortest end of its path that no other one has."""
    paths = list(dict.fromkeys(item.package for item in found.needs))
    shown: dict[str, str] = {}
    for path in paths:
        parts = path.split("/")
        ends = ("/".join(parts[-count:]) for count in range(1, len(parts) + 1))
        alone = (end for end in ends if sum(f"/{other}".endswith(f"/{end}") for other in paths) == 1)
        shown[path] = one_line(next(alone, path), 80)
    return shown


def answer_rows(found: Compatibility) -> tuple[tuple[str, ...], ...]:
    """One row per package and host."""
    shown = names(found)
    return tuple(
        (shown[item.package], one_line(item.host, 80), WORDS[item.answer], because(item)) for item in found.answers
    )


def because(item: HostAnswer) -> str:
    """Why, in one line."""
    reasons = {Answer.REFUSED: item.because, Answer.UNKNOWN: item.unknown, Answer.RUNS: item.provided}
    return one_line("; ".join(reasons[item.answer]), _LONGEST)


def matrix(found: Compatibility) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]] | None:
    """Headings and rows with a package per row and a host per column; None where one of both is a single one."""
    shown, hosts = names(found), tuple(dict.fromkeys(item.host for item in found.answers))
    if len(shown) < 2 or len(hosts) < 2:
        return None
    cells = {(item.package, item.host): WORDS[item.answer] for item in found.answers}
    rows = tuple((name, *(cells[path, host] for host in hosts)) for path, name in shown.items())
    return ("", *(one_line(host, 40) for host in hosts)), rows


def needs_tables(found: Compatibility) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Per package a title, and labels with what it needs."""
    shown = names(found)
    return tuple((f"What {shown[item.package]} needs", tuple(_needs(item))) for item in found.needs)


def _needs(item: PackageNeeds) -> Iterator[tuple[str, str]]:
    if item.problem is not None:
        yield "problem", one_line(item.problem, _LONGEST)
        return
    built = _built(item)
    if built:
        yield "built by", built
    if item.torch_least is not None:
        yield "torch", f"{item.torch_least} or later: {item.torch_least_because}"
    rest = (
        ("device", item.device or "not told"),
        ("machine", item.machine or ""),
        ("C/C++ libs", ", ".join(item.abi_versions)),
        ("CPU", _cpu(item)),
        ("GPU code", ", ".join(item.gpu_targets)),
        ("CUDA driver", f"{item.oldest_driver} or later" if item.oldest_driver else ""),
        ("libraries", ", ".join(item.libraries)),
        ("operators", ", ".join(item.custom_ops)),
        ("threads", f"at most {item.threads}" if item.threads is not None else ""),
        ("stack", {True: "executable", False: "not executable", None: ""}[item.executable_stack]),
    )
    yield from ((label, one_line(text, _LONGEST)) for label, text in rest if text)


def _built(item: PackageNeeds) -> str:
    bounds = []
    if item.built_least is not None:
        bounds.append(f"torch {item.built_least} or later: {item.built_least_because}")
    if item.built_before is not None:
        bounds.append(f"before torch {item.built_before}: {item.built_before_because}")
    return "; ".join(bounds)


def _cpu(item: PackageNeeds) -> str:
    native = " (compiled with -march=native: the build host's CPU decides)" if item.march_native else ""
    return f"{', '.join(item.isa)}{native}" if item.isa else native.strip()


def headline(found: Compatibility) -> Headline:
    """The first line: the worst answer, with its reason where it is the only one."""
    answers = found.answers
    counts = {kind: sum(item.answer is kind for item in answers) for kind in Answer}
    worst = next((kind for kind in (Answer.REFUSED, Answer.UNKNOWN) if counts[kind]), Answer.RUNS)
    word = {Answer.RUNS: "RUNS", Answer.REFUSED: "WILL NOT RUN", Answer.UNKNOWN: "UNDETERMINED"}[worst]
    if len(answers) == 1:
        reason = because(answers[0])
        text = f"on {answers[0].host}" + (f": {one_line(reason, 160)}" if reason else "")
        return Headline(word, text, TONES[worst])
    told = [f"{WORDS[kind]}: {count}" for kind, count in counts.items() if count]
    return Headline(word, f"{plural(len(answers), 'combination')} of package and host: {', '.join(told)}", TONES[worst])
