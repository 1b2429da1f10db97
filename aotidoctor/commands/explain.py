"""Find pages of the manual: playbooks by cause or symptom; docstrings of checks, probes and rules by code or name.

Docstrings of modules are read from the source files, so that no module is imported for its page. Rules share modules:
those about programs contain their pages, those about Triton have them as docstrings of their functions.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from aotidoctor.diagnosis.playbooks import NAME, load_playbooks
from aotidoctor.model import load_toml
from aotidoctor.model.record import record
from aotidoctor.model.report import Playbook, playbook_file, playbook_files

_PACKAGE = Path(__file__).resolve().parent.parent
# Kinds of pages by folder.
_FOLDERS = {"checks": "check", "probes": "probe"}
_CODE = re.compile(r"[A-Z]+(?:-[A-Z0-9]+)+")
_HEAD = re.compile(r"\A\+\+\+\n.*?^\+\+\+\n", re.MULTILINE | re.DOTALL)
_OWN_TESTS = re.compile(r"^```toml (?:matches|does-not-match|log)\n.*?^```\n?", re.MULTILINE | re.DOTALL)
_PART = re.compile(r"^(Versions|Consequence|How it was seen|Remedy):\s+(\S)", re.MULTILINE)
_HEADING = re.compile(r"(What it does|Why it matters|Example|When it is wrong):?")


@record
class SymptomEntry:
    """What a user sees before any cause is known; ``symptoms.toml`` has them all."""

    name: str
    title: str
    words: tuple[str, ...]
    commands: tuple[str, ...]
    hint: str


SYMPTOMS = tuple(
    SymptomEntry(**{**table, "words": tuple(table["words"]), "commands": tuple(table["commands"])})
    for table in load_toml(Path(__file__).with_name("symptoms.toml").read_text(encoding="utf-8"))["symptom"]
)
SYMPTOMS_TITLE = "Start from your symptom"


@record
class ManualPage:
    """A page. ``kind`` is ``playbook``, ``check``, ``probe``, ``rule``, ``symptom`` or ``symptoms`` (all of them).

    ``code`` is None except for a check, a probe and a rule.
    """

    kind: str
    name: str
    code: str | None
    text: str


def find(topic: str) -> ManualPage | None:
    """The page of a cause (``input-stride``), code (``AD-IN-014``), check or probe (``input_stride``), or symptom."""
    path = playbook_file(topic.lower())
    if path is not None:
        return _playbook(path)
    name = topic.upper() if _CODE.fullmatch(topic.upper()) else topic

    def first(candidates: Iterable[ManualPage]) -> ManualPage | None:
        return next((page for page in candidates if name in (page.code, page.name)), None)

    # A report names the probe `core_dump`, which is also what people call a symptom.
    page = first(_pages(name))
    if page is None and (symptom := find_symptom(topic)) is not None:
        return symptom_page(symptom)
    # All pages come last, for one whose code stands in another module.
    return page or first(itertools.chain(_rules(), _pages()))


def pages() -> tuple[ManualPage, ...]:
    """All pages, ordered by kind."""
    return (*map(_playbook, playbook_files()), *_pages(), *_rules())


@lru_cache(maxsize=256)
def name_and_text(topic: str) -> tuple[str, str] | None:
    """Name and text of the page of ``topic``, for formats with help texts."""
    page = find(topic)
    return (page.name, page.text) if page is not None else None


def near(topic: str) -> tuple[str, ...]:
    """Up to three topics with a similar spelling."""
    known = topics()
    return tuple(
        difflib.get_close_matches(topic.lower(), known, n=3) or difflib.get_close_matches(topic.upper(), known, n=3)
    )


def topics() -> tuple[str, ...]:
    """Everything that has a page: causes, symptoms and their words, names and codes of checks, probes and rules."""
    pages = (*_pages(), *_rules())
    names = {path.stem for path in playbook_files()} | {page.name for page in pages}
    symptoms = {word for symptom in SYMPTOMS for word in (symptom.name, *symptom.words)}
    return tuple(sorted(names | symptoms | {page.code for page in pages if page.code is not None}))


def symptom_page(symptom: SymptomEntry | None = None) -> ManualPage:
    """The page of a symptom, or the list of all."""
    if symptom is None:
        parts = [
            f"\n## {one.title}: `aotidoctor explain {one.name}`\n\n{', '.join(book.cause for book in _causes(one))}\n"
            for one in SYMPTOMS
        ]
        head = "`aotidoctor explain NAME` has the page of a symptom, with what to type first, and that of a cause.\n"
        return ManualPage(kind="symptoms", name=SYMPTOMS_TITLE, code=None, text="".join([head, *parts]))
    return ManualPage(kind="symptom", name=symptom.name, code=None, text=symptom_text(symptom))


def markdown(page: ManualPage) -> str:
    """``page`` as Markdown, with a title."""
    title = f"# {page.name}" + (f" ({page.code})" if page.code else "")
    body = page.text
    if page.code is not None:
        # Heading lines of a docstring become Markdown headings, indented text becomes running text.
        lines = ((_HEADING.fullmatch(line), line) for line in page.text.splitlines())
        body = "\n".join(f"\n## {heading[1]}\n" if heading else line.strip() for heading, line in lines)
    return f"{title}\n\n{body.strip()}\n"


def _playbook(path: Path) -> ManualPage:
    """A playbook without its machine-readable head and its own tests."""
    prose = _OWN_TESTS.sub("", _HEAD.sub("", path.read_text(encoding="utf-8"))).strip()
    return ManualPage(kind="playbook", name=path.stem, code=None, text=f"{prose}\n")


def _pages(name: str | None = None) -> Iterator[ManualPage]:
    """Pages of checks and probes; with ``name`` only files that mention it are parsed."""
    for folder, kind in _FOLDERS.items():
        for path in sorted((_PACKAGE / folder).glob("[!_]*.py")):
            source = path.read_text(encoding="utf-8")
            if name is None or name in source or name == path.stem:
                page = _page(kind, path.stem, source)
                if page is not None:
                    yield replace(page, name=name) if name == path.stem else page


def _rules() -> Iterator[ManualPage]:
    """Pages of the rules about programs and about Triton, and of the findings of a rehearsal."""
    from aotidoctor.program.rules import BY_CODE
    from aotidoctor.triton import rehearsal_findings
    from aotidoctor.triton.rules import RULES

    for stated in sorted(BY_CODE.values(), key=lambda rule: rule.name):
        yield ManualPage(kind="rule", name=stated.name, code=stated.code, text=inspect.cleandoc(stated.page))
    for rule in RULES:
        text = _PART.sub(lambda found: f"\n## {found[1]}\n\n{found[2].upper()}", inspect.getdoc(rule.check) or "")
        yield ManualPage(kind="rule", name=rule.check.__name__, code=rule.code, text=text + "\n")
    yield ManualPage(
        kind="rule", name="rehearsal", code=rehearsal_findings.REHEARSAL_CODE, text=rehearsal_findings.__doc__ or ""
    )


def _page(kind: str, name: str, source: str) -> ManualPage | None:
    """The page of a module that defines ``CHECK`` or ``PROBE``; None for other modules."""
    tree = ast.parse(source)
    assigned = [node for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign))]
    targets = [one for node in assigned for one in (node.targets if isinstance(node, ast.Assign) else [node.target])]
    if not any(isinstance(target, ast.Name) and target.id in ("CHECK", "PROBE") for target in targets):
        return None
    # Modules that the code may be imported from.
    sources = [
        node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        and node.module is not None
        and any(alias.name == "CODE" and alias.asname is None for alias in node.names)
    ]
    texts = (item.value for node in assigned for item in ast.walk(node) if isinstance(item, ast.Constant))
    codes = (text for text in texts if isinstance(text, str) and re.fullmatch(r"AD-[A-Z]+-\d+", text))
    code = None
    for module in sources[:1]:
        text = (_PACKAGE.parent / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        found = re.search(r"^CODE(?:, \w+)* = \"([A-Z0-9-]+)\"", text, re.MULTILINE)
        code = found[1] if found else None
    # The first code is its own; it may name the codes of others as well.
    code = code or next(codes, None)
    # A report calls a probe by its NAME, or else by the name of its module.
    stated = re.search(r"^(?:CODE, )?NAME = (?:\"[A-Z0-9-]+\", )?\"(\w+)\"", source, re.MULTILINE)
    return ManualPage(kind=kind, name=stated[1] if stated else name, code=code, text=ast.get_docstring(tree) or "")


# Pages of symptoms.
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


def _causes(symptom: SymptomEntry) -> list[Playbook]:
    return [book for book in load_playbooks() if symptom.name in book.symptoms]


def _plain(template: str) -> str:
    """A text of a playbook with the words for a case without facts."""
    return NAME.sub(lambda found: found[2] or "…", template)
