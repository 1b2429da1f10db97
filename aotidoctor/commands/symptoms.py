"""Symptoms: what a user sees before any cause is known, and where to begin. Each playbook names those of its cause."""

from __future__ import annotations

import re

from aotidoctor.diagnosis.playbooks import NAME, load_playbooks
from aotidoctor.model.record import record
from aotidoctor.model.report import Playbook

TITLE = "Start from your symptom"


@record
class SymptomEntry:
    """``words`` are what people call it, ``commands`` what to type first, and ``hint`` what helps if that does not."""

    name: str
    title: str
    words: tuple[str, ...]
    commands: tuple[str, ...]
    hint: str


_RUN = "aotidoctor run model.pt2 --inputs sample.pt"
SYMPTOMS = (
    SymptomEntry(
        name="crash",
        title="It crashes",
        words=(
            "segfault",
            "sigsegv",
            "segmentation-fault",
            "core-dump",
            "sigabrt",
            "abort",
            "sigill",
            "sigfpe",
            "signal",
        ),
        commands=(_RUN,),
        hint="Only a log: `aotidoctor classify crash.log`. A whole program: `aotidoctor watch -- PROGRAM`.",
    ),
    SymptomEntry(
        name="hang",
        title="It hangs",
        words=("hangs", "stuck", "deadlock", "timeout", "freeze", "never-returns"),
        commands=(f"{_RUN} --timeout 60s",),
        hint="A whole program: `aotidoctor watch --timeout 60s -- PROGRAM`.",
    ),
    SymptomEntry(
        name="wrong-numbers",
        title="Wrong numbers, no error",
        words=("nan", "inf", "wrong", "numbers", "garbage", "accuracy", "different-results", "nondeterminism"),
        commands=("aotidoctor compare model.pt2 --inputs sample.pt --reference exported.pt2",),
        hint=f"Without the exported program: `{_RUN}`. The step that goes wrong: `aotidoctor localize`.",
    ),
    SymptomEntry(
        name="error",
        title="The call raises an error",
        words=("exception", "raises", "runtimeerror", "traceback", "shape", "dtype"),
        commands=("aotidoctor check model.pt2 --inputs sample.pt", _RUN),
        hint="Only a log: `aotidoctor classify crash.log`.",
    ),
    SymptomEntry(
        name="load",
        title="It will not load",
        words=("will-not-load", "does-not-load", "loading", "dlopen", "import", "undefined-symbol"),
        commands=("aotidoctor check model.pt2",),
        hint=f"What loading it says: `{_RUN}`. In Triton Inference Server: `aotidoctor triton models/`.",
    ),
    SymptomEntry(
        name="compile",
        title="It will not compile",
        words=("will-not-compile", "compiling", "export", "lowering", "linker", "inductorerror"),
        commands=("aotidoctor verify exported.pt2", "aotidoctor classify crash.log"),
        hint="The smallest program with the same failure: `aotidoctor minimize`.",
    ),
    SymptomEntry(
        name="slow",
        title="It is slow",
        words=("performance", "latency", "slow-load"),
        commands=("aotidoctor localize model.pt2 --inputs sample.pt",),
        hint="This is about failures: of what is only slow, few causes are known here.",
    ),
    SymptomEntry(
        name="memory",
        title="It needs too much memory",
        words=("oom", "leak", "killed-for-memory", "bad-alloc"),
        commands=(f"{_RUN} --memory-limit 8G",),
        hint="Only a log: `aotidoctor classify crash.log`.",
    ),
    SymptomEntry(
        name="elsewhere",
        title="It works here, not there",
        words=("works-here-not-there", "works-there-fails-here", "works-on-my-machine", "deploy", "production"),
        commands=("aotidoctor env --save host.json", "aotidoctor compat model.pt2 --host host.json"),
        hint="`env --save` on the machine where it fails. Two reports: `aotidoctor diff works.json fails.json`.",
    ),
)


def find_symptom(topic: str) -> SymptomEntry | None:
    """The symptom with this name, or one of its words."""
    word = re.sub(r"[\s_,]+", "-", topic.strip().lower())
    return next((each for each in SYMPTOMS if word == each.name or word in each.words), None)


def symptom_text(symptom: SymptomEntry) -> str:
    """The page of a symptom as Markdown, without its title: first commands, causes with what each looks like."""
    lines = [
        f"{symptom.title}. Also called: {', '.join(word.replace('-', ' ') for word in symptom.words)}.",
        "",
        *(f"    {command}" for command in symptom.commands),
        "",
        symptom.hint,
        "",
        "Causes, and what each looks like:",
        "",
        *(f"- `{book.cause}`: {_plain(book.looked_like)}" for book in _causes(symptom)),
    ]
    return "\n".join(lines) + "\n"


def symptoms_text() -> str:
    """All symptoms with the names of their causes, as Markdown without its title."""
    parts = [
        f"## {symptom.title}: `aotidoctor explain {symptom.name}`\n\n"
        f"{', '.join(book.cause for book in _causes(symptom))}\n"
        for symptom in SYMPTOMS
    ]
    return (
        "`aotidoctor explain NAME` has the page of a symptom, with what to type first, and that of a cause.\n\n"
        + "\n".join(parts)
    )


def _causes(symptom: SymptomEntry) -> list[Playbook]:
    return [book for book in load_playbooks() if symptom.name in book.symptoms]


def _plain(template: str) -> str:
    """A text of a playbook with the words for a case without facts."""
    return NAME.sub(lambda found: found[2] or "…", template)
