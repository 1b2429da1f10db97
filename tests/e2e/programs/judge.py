"""Make every program, judge it as the child does, and ask torch's own verifier: ``judge.py FOLDER`` -> results.json."""

from __future__ import annotations

import gc
import json
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent.parent.parent))

import torch._export.utils

from aotidoctor.__main__ import COLLECT_EVERY
from aotidoctor.model.record import to_json
from aotidoctor.worker.verify.graph_rules import ProgramViolations
from aotidoctor.worker.verify.program_load import LoadedProgram, load_programs
from aotidoctor.worker.verify.verify_program import judge
from programs import archives, broken, healthy
from programs.cases import CASES, Case

# Each of a hundred programs would ask the dispatcher for the same operators, once per namespace.
torch._export.utils._materialize_cpp_cia_ops = cache(torch._export.utils._materialize_cpp_cia_ops)


def load(case: Case, folder: Path, records: ProgramViolations) -> LoadedProgram:
    if case.source == "archive":
        return load_programs(folder / f"{case.name}.pt2", records)[0]
    program = getattr(healthy if case.source == "healthy" else broken, case.name)()
    return LoadedProgram(name="model", program=program, verifiers=[kind() for kind in program.verifiers])


def passes(loaded: LoadedProgram) -> bool | None:
    """What torch says, asked here once more; None where it cannot be asked."""
    if loaded.program is None or not loaded.dialect_known:
        return None
    try:
        loaded.program.validate()
    except Exception:
        return False
    return True


def main(folder: Path) -> None:
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY)
    archives.write(folder)
    results = []
    for case in CASES:
        records = ProgramViolations()
        loaded = load(case, folder, records)
        results.append({**judge(loaded, records, case.declared), "passes": passes(loaded)})
    (folder / "results.json").write_text(json.dumps(to_json(results)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
