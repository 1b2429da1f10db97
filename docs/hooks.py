"""Pages of the site that are made, not written: from the README, the commands, the manual and the playbooks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from aotidoctor.cli import COMMANDS
from aotidoctor.cli.lazy import load
from aotidoctor.commands import explain
from aotidoctor.reports.json.schema import schema

ROOT = Path(__file__).parent.parent
WRITTEN = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
LISTS = {"causes": "playbook", "checks": "check", "probes": "probe", "rules": "rule"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and the picture of the README."""
    for place, source in WRITTEN.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=_relinked(text)))
    picture = (ROOT / ".github" / "report.png").read_bytes()
    files.append(File.generated(config, "report.png", content=picture))
    for place, text in _reference():
        files.append(File.generated(config, f"reference/{place}.md", content=text))
    return files


def _relinked(text: str) -> str:
    """Links of a file at the root of the project, as they are within ``docs/``."""
    text = text.replace("](docs/", "](").replace("](.github/report.png)", "](report.png)")
    text = text.replace("](CONTRIBUTING.md)", "](contributing.md)").replace("](CHANGELOG.md)", "](changelog.md)")
    # What is not part of the site keeps its words.
    return re.sub(r"\[([^\]]+)\]\((?:playbooks|aotidoctor)/[^)]*\)", r"\1", text)


def _reference() -> Iterator[tuple[str, str]]:
    pages = explain.pages()
    for name, kind in LISTS.items():
        found = [page for page in pages if page.kind == kind]
        lines = [f"# {name.capitalize()}", "", f"{len(found)} in all; `aotidoctor explain NAME` prints each.", ""]
        for page in found:
            label = f"{page.name} ({page.code})" if page.code else page.name
            lines.append(f"- [{label}]({name}/{page.code or page.name}.md)")
            yield f"{name}/{page.code or page.name}", explain.markdown(page)
        yield name, "\n".join(lines) + "\n"
    yield "symptoms", _symptoms()
    yield "commands", _commands()
    text = json.dumps(schema(), indent=2)
    yield "schema", f"# Report schema\n\n`aotidoctor schema` prints it.\n\n```json\n{text}\n```\n"


def _symptoms() -> str:
    """Every symptom; each cause is a link to its page."""
    parts = [
        f"# {explain.SYMPTOMS_TITLE}",
        "",
        "`aotidoctor explain` prints this list, and `aotidoctor explain segfault` a part.",
        "",
    ]
    for symptom in explain.SYMPTOMS:
        text = re.sub(r"^- `([a-z-]+)`", r"- [`\1`](causes/\1.md)", explain.symptom_text(symptom), flags=re.MULTILINE)
        parts += [f"## {symptom.title}", "", text.partition(". ")[2]]
    return "\n".join(parts)


def _commands() -> str:
    parts = ["# Commands", ""]
    for name, entry in COMMANDS.items():
        command = load(name, entry)
        with command.make_context(name, [], resilient_parsing=True) as context:
            parts += [f"## {name}", "", "```text", command.get_help(context).rstrip(), "```", ""]
    return "\n".join(parts)
