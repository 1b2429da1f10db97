"""The note beside the script: how to run it, what is in the folder, what was certified."""

from __future__ import annotations

from aotidoctor.commands.repro.result import Repro
from aotidoctor.commands.repro.script import NAME
from aotidoctor.version import __version__

README = "README.md"
MARK = "<!-- aotidoctor repro -->"
_FILES = {
    "model.pt2": "the package; its generated sources may name files of the machine that compiled it",
    "values.pt": "your tensors that the failure needs",
    "exported.pt2": "the exported program",
    "setup_ops.py": "your setup file, unchanged: review it before you share it",
}


def readme(made: Repro, cause: str) -> str:
    """The text."""
    lines = [MARK, f"# A script that shows {cause}", "", f"    python {NAME}", ""]
    lines += [f"It ends with (N is any number): {made.ending}.", ""]
    lines += [f"- `{name}`: {_FILES.get(name, 'an operator library')}" for name in made.files if name not in _OWN]
    lines += [f"- Inputs: {made.inputs}.", f"- Weights: {made.weights}."]
    lines += [f"- Environment set by the script: `{made.environment}`."] if made.environment else []
    lines += ["", f"Certified: {made.certified}. The script was run unchanged in a fresh interpreter, without the"]
    lines += ["caller's variables, and its package and inputs were diagnosed once more.", ""]
    lines += [f"Made by aotidoctor {__version__}; about the cause: `aotidoctor explain {cause}`."]
    return "\n".join(lines) + "\n"


_OWN = (NAME, README)
