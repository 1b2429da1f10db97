"""A kernel that stores other numbers than it computes, held against the program: which one is named as the first.

    python tests/emulation/diverging.py ROOM [MODEL...]    # a JSON list a line: model, kernel edited, kernel named, kernel behind it

With an empty name for the kernel, the package as it is.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import torch
from cases import kernels_of
from driver import Here, package, wrapper
from models import MODELS, made

from aotidoctor.model.case import Options
from aotidoctor.triage.examine import examine
from aotidoctor.triage.open_case import open_case
from aotidoctor.triage.state import Session

CHOSEN = ("mlp", "embedding_linear", "layernorm", "cat", "attention", "index_put", "user_triton")
_STORE = re.compile(
    r"(tl\.(?:store|atomic_add)\(.*\), )(\w+)((?:, \w+(?: & \w+)*|, None|, mask=mask)(?:, sem='relaxed')?\))$"
)
_USER = re.compile(r"(tl\.store\(\w+ \+ \w+, )(x \* factor)(, mask=mask\))$")


def edits(name):
    """``(kernel, edit)``: the last store of each kernel, of half as much again."""
    yield "", None
    for start, text in kernels_of(wrapper(name)):
        lines = text.split("\n")
        at = max(number for number, line in enumerate(lines) if "tl.store(" in line or "tl.atomic_add(" in line)
        changed, count = (_STORE if _STORE.search(lines[at]) else _USER).subn(r"\1\2 * 1.5\3", lines[at])
        assert count == 1, lines[at]

        def edit(whole, place=start - 1 + at, changed=changed):
            every = whole.split("\n")
            every[place] = changed
            return "\n".join(every), place

        yield re.findall(r"async_compile\.triton\('(\w+)'", text)[0], edit


def named(name, edit, room):
    """The kernel that is told to diverge first, and one before it that may be the cause; None where there is none."""
    path, _ = package(name, room, edit)
    options = Options(emulate="always", reference=str(room / f"{name}.exported.pt2"), localize=True)
    case, _ = open_case(str(path), str(room / "inputs.pt"), options, dict(os.environ))
    session = Session(case=case, runner=Here(room, None))
    examine(session)
    found = [one.facts for one in session.findings if (one.code, one.kind) == ("AD-RUN-016", "diverges")]
    return [found[0]["kernel"], found[0]["behind"]] if found else [None, None]


def main(room, names):
    torch.set_num_threads(1)
    for name in names:
        model, args = made(name)
        torch.save(args, room / "inputs.pt")
        program = torch.export.export(model, args, dynamic_shapes=MODELS[name][2])
        torch.export.save(program, room / f"{name}.exported.pt2")
        for kernel, edit in edits(name):
            print(json.dumps([name, kernel, *named(name, edit, room)]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or CHOSEN)
