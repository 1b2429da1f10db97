"""Runs on the simulated machine: ``observe.py PACKAGE INPUTS OUT SCENARIO`` writes host, runs and causes of a run."""

import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from recorded import ROOT, dump
from scenarios import SCENARIOS

from aotidoctor.commands.diagnose_package import diagnose
from aotidoctor.model.case import Host, Options

# What a compile for the GPU needs of the host's files.
TOOLKIT = ("g++", "ptxas", "cuda.h")
# What a package's instruction set is compared with.
WORDS = re.compile(r"avx|fma|f16c|sse")


def main(package: str, inputs: str, out: str, name: str) -> None:
    it = SCENARIOS[name]
    report = diagnose(package, inputs, Options(**it.options), environ=os.environ)
    places = {
        f"{Path(inputs).parent}/": "<inputs>/",
        f"{Path(package).parent}/": "<packages>/",
        f"{ROOT}/": "<root>/",
        f"{Path.home()}/": "<home>/",
    }
    document = {
        "simulated": True,
        "host": dump(common(report.case.host, (*it.tools, *(TOOLKIT if it.toolkit else ()))), places),
        "runs": [dump(one, places) for one in report.runs],
        "causes": [one.cause for one in report.diagnoses],
    }
    Path(out).write_text(json.dumps(document, indent=1) + "\n")


def common(host: Host, tools: tuple[str, ...]) -> Host:
    """The host without what is this machine's own; the simulated tools have a place of their own."""
    flags = frozenset(flag for flag in host.cpu_flags if WORDS.search(flag))
    return replace(
        host,
        cpu_flags=flags, cpu_model=None, memory_available=None, memory_total=None, tmpdir=None,
        libraries={}, tools={name: f"<tools>/{name}" for name in tools}, environment={}, missing_symbols=(), openmp_runtimes=(),
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
