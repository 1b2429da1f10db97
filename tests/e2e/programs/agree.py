"""What the child says of archives: ``agree.py FOLDER ARCHIVE...`` makes those of ``archives`` and ``healthy`` in FOLDER.

Writes ``FOLDER/records.json``: path -> records of rules, and whether torch could rebuild the program.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent.parent.parent))

import torch

from aotidoctor.__main__ import COLLECT_EVERY
from aotidoctor.model.record import to_json
from aotidoctor.worker.verify import verify_program
from aotidoctor.worker.verify.graph_rules import ProgramViolations
from aotidoctor.worker.verify.program_load import load_programs
from programs import archives, healthy
from programs.cases import CASES

# No archive tells what C shims there are, and to find out takes longer than all the rest: the program is decomposed.
verify_program.check_compile = lambda _program, _records, _result: None


def main(folder: Path, given: list[Path]) -> None:
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY)
    archives.write(folder)
    for case in CASES:
        if case.source == "healthy" and case.declared is None:
            torch.export.save(getattr(healthy, case.name)(), folder / f"healthy_{case.name}.pt2")
    found = {}
    for path in [*sorted(folder.glob("*.pt2")), *given]:
        records = ProgramViolations()
        loaded = load_programs(path, records)[0]
        found[str(path)] = {
            "records": verify_program.judge(loaded, records)["records"],
            "rebuilt": loaded.program is not None,
        }
    (folder / "records.json").write_text(json.dumps(to_json(found)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(item) for item in sys.argv[2:]])
