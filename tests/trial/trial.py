"""Real architectures, made sick and left well, through every command: ``make trial [MODELS="bert vision"] [FAULTS=12]``.

Nothing is downloaded but packages: weights are random. Compiled packages are kept by content of what makes them, and
each result is a line of ``results.jsonl``, so that a run goes on where the last one stopped; ``--again misses`` repeats
what was wrong, ``--again all`` everything. What is right comes from plain PyTorch (``plain.py``) and from how the fault
was made (``faults.py``), never from aotidoctor.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.trial import table

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CACHE = Path(os.environ.get("AOTIDOCTOR_TRIAL", Path.home() / ".cache" / "aotidoctor-trial"))
SECONDS = 300
CLOSE = 2e-2
MAKERS = ("model.py", "build.py")


def names() -> dict[str, tuple[str, tuple[str, ...], bool]]:
    """Family, traits and weight of each model, read from the text of the families: their libraries take a while."""
    found = {}
    for path in sorted((HERE / "families").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "Model":
                given = {word.arg: word.value for word in node.keywords}
                traits = tuple(
                    item.value if isinstance(item, ast.Constant) else item.id for item in given["traits"].elts
                )
                found[given["name"].value] = (path.name, traits, "heavy" in given)
    return found


def _key(family: str) -> str:
    digest = hashlib.sha256()
    for name in (*MAKERS, f"families/{family}"):
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()[:10]


def built(name: str, family: str) -> Path | None:
    """The folder with the model's files; None where they are not made yet."""
    folder = CACHE / f"{name}-{_key(family)}"
    if (folder / "facts.json").exists():
        return folder
    kept = [path.parent for path in CACHE.glob(f"{name}-*/facts.json") if path.parent.name.rpartition("-")[0] == name]
    wanted = os.environ.get("AOTIDOCTOR_TRIAL_KEPT") and kept
    return max(kept, key=lambda path: path.stat().st_mtime) if wanted else None


def _stage(stage: str, jobs: list[dict], out: Path) -> None:
    """``tests.trial.many`` with ``jobs``; what it says is shown as it says it."""
    if not jobs:
        return
    listed = out / f"{stage}-{os.getpid()}.json"
    listed.write_text(json.dumps(jobs))
    subprocess.run([sys.executable, "-m", "tests.trial.many", stage, str(listed)], cwd=ROOT, check=False)
    listed.unlink()


def build(wanted: list[str], known: dict, out: Path) -> dict[str, Path]:
    """The folder of each model that can be built, in the order of ``wanted``."""
    jobs = []
    for name in sorted(wanted, key=lambda name: known[name][0]):
        family = known[name][0]
        if built(name, family) is None:
            folder = CACHE / f"{name}-{_key(family)}"
            folder.mkdir(parents=True, exist_ok=True)
            jobs.append({"name": name, "family": family.removesuffix(".py"), "folder": str(folder)})
    _stage("build", jobs, out)
    found = {name: built(name, known[name][0]) for name in wanted}
    return {name: folder for name, folder in found.items() if folder is not None}


def commit() -> str:
    """The commit whose aotidoctor is asked, with a plus where the checkout differs from it."""
    git = ["git", "-C", str(ROOT)]
    try:
        found = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run(
            [*git, "status", "--porcelain", "aotidoctor", "playbooks"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip() + ("+" if changed.stdout.strip() else "")


class Trial:
    """One model's cases, what plain PyTorch does with them, and what each command says."""

    def __init__(self, name: str, folder: Path, out: Path, options: argparse.Namespace, turn: int):
        self.name, self.folder, self.options, self.turn = name, folder, options, turn
        self.facts = json.loads((folder / "facts.json").read_text())
        self.place = out / "cases" / name
        self.place.mkdir(parents=True, exist_ok=True)
        self.results = out / "results.jsonl"
        self.reports = out / "reports"
        self.reports.mkdir(exist_ok=True)
        self.setup = folder / "setup.py" if (folder / "setup.py").exists() else None
        self.model, self.program = folder / "model.pt2", folder / "program.pt2"

    def listed(self) -> Path:
        return self.place / f"cases-{self.options.faults}.json"

    def job(self) -> dict:
        """What ``tests.trial.many cases`` needs to make the cases of this model."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "place": str(self.place),
            "faults": self.options.faults,
            "turn": self.turn,
        }

    def questions(self):
        """Which command is given which case: (command, case, further arguments, the causes that are right)."""
        cases = json.loads(self.listed().read_text())
        if refused(cases):
            for case in refused_too(cases):
                yield "check", case, [], case["causes"]
            yield from (("run", case, [], case["causes"]) for case in refused_too(cases)[: self.options.runs])
            return
        healthy = [case for case in cases if not case["causes"]]
        faulty = [case for case in cases if case["causes"]]
        yield "inspect", healthy[0], [], []
        for case in cases:
            yield "check", case, [], case["causes"]
        yield from (
            ("run", case, ["--reference", str(self.program)] if number == 0 else [], [])
            for number, case in enumerate(healthy[: self.options.healthy])
        )
        for command in ("localize", "compare"):
            yield command, healthy[-1], ["--reference", str(self.program)], []
        yield "verify", healthy[0], ["--against", str(self.model)], []
        yield (
            "run",
            {**healthy[0], "name": "other-weights"},
            ["--reference", str(self.folder / "other.pt2")],
            ["weights-differ", "reference-mismatch"],
        )
        yield (
            "localize",
            {**healthy[0], "name": "other-weights"},
            ["--reference", str(self.folder / "other.pt2")],
            ["weights-differ"],
        )
        changed = self._changed()
        if changed is not None:
            case = {**healthy[0], "name": "changed-operator"}
            yield "localize", case, ["--reference", str(changed), "--timeout", "200"], ["numeric-difference"]
            yield "verify", {**case, "asked": str(changed)}, ["--against", str(self.model)], ["other-program"]
        yield "run", {**healthy[0], "name": "wrong-kind", "model": str(self.program)}, [], ["artifact-wrong-kind"]
        last = [case for case in faulty if case.get("no_setup")]
        for case in [*last, *faulty[: self.options.runs]]:
            yield "run", case, [], case["causes"]

    def _changed(self) -> Path | None:
        """The program with another activation than the package has, made once; None where it has none."""
        target, none = self.place / "changed.pt2", self.place / "unchanged"
        if not target.exists() and not none.exists():
            setup = [] if self.setup is None else [str(self.setup)]
            command = [sys.executable, "-m", "tests.trial.changed", str(self.program), str(target)]
            command += [str(self.folder / "sample0.pt"), *setup]
            subprocess.run(command, cwd=ROOT, check=False, timeout=SECONDS, capture_output=True)
            if not target.exists():
                none.touch()
        return target if target.exists() else None

    def ask(self, done: set[tuple[str, str, str]]) -> None:
        for command, case, further, causes in self.questions():
            if self.options.commands and command not in self.options.commands:
                continue
            if (self.name, command, case["name"]) in done or not re.search(self.options.only, case["name"]):
                continue
            if time.monotonic() > self.options.until:
                return
            line = self._one(command, case, further, causes)
            with self.results.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
            if line["judged"] not in ("right", "healthy"):
                print(
                    f"  {self.name} {command} {case['name']}: {line['judged']}: {line['said']} (right: {causes}) {line['seconds']} s",
                    flush=True,
                )

    def _one(self, command: str, case: dict, further: list[str], causes: list[str]) -> dict:
        model = Path(case.get("model", self.model))
        words = [case.get("asked", str(self.program)), *further] if command == "verify" else [str(model)]
        if command not in ("verify", "inspect"):
            words += (
                ["--inputs", case["inputs"], "--trust-pickle"] if case.get("trust") else ["--inputs", case["inputs"]]
            )
            words += further
            if self.setup and not case.get("no_setup") and command != "check":
                words += ["--setup", str(self.setup)]
        if command == "verify" and self.setup:
            words += ["--setup", str(self.setup)]
        began = time.monotonic()
        try:
            done = subprocess.run([sys.executable, "-m", "aotidoctor", command, *words, "--json"], cwd=self.place, check=False,
                                  capture_output=True, text=True, timeout=SECONDS * 2, env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
            status, text = done.returncode, done.stdout
        except subprocess.TimeoutExpired:
            status, text = "timeout", ""
        seconds = round(time.monotonic() - began, 1)
        try:
            report = json.loads(text)
        except ValueError:
            report = {}
        kept = self.reports / f"{self.name}.{command}.{case['name'].replace('/', '_')}.json"
        kept.write_text(text or (done.stderr if status != "timeout" else "timeout"), encoding="utf-8")
        line = {
            "model": self.name, "command": command, "case": case["name"], "exit": status, "seconds": seconds,
            "verdict": report.get("verdict"), "causes": causes, "plain": plain_class(case), "said": said(report),
            "command_line": [command, *words], "commit": self.options.commit, "traits": self.facts["traits"],
        }  # fmt: skip
        line["judged"] = judge(line, case, report, self.facts)
        return line


def said(report: dict) -> list[dict]:
    """The first diagnoses; of ``verify`` whether the package comes from the program."""
    origin = [item for item in report.get("findings", []) if item.get("code") == "VERIFY-P00"]
    if origin:
        return [{"cause": origin[0]["kind"], "status": None, "confidence": None, "subject": None}]
    keys = ("cause", "status", "confidence", "subject")
    return [{key: item.get(key) for key in keys} for item in report.get("diagnoses", [])[:3]]


def plain_class(case: dict) -> str:
    """``same``, ``different``, ``error`` or the signal of plain PyTorch's call of the package; eager's refusal beside it."""
    plain = case.get("plain", {})
    ending = plain.get("package", {}).get("ending", "unknown")
    if ending != "ok":
        return f"{ending} at {plain['package'].get('stage')}" if ending != "unknown" else ending
    compared = plain.get("compared")
    if compared is None:
        return f"returns, eager {plain.get('eager', {}).get('ending')}"
    return "same" if compared["same_form"] and compared["worst"] <= CLOSE else "different"


# What Python says where the package returns other outputs than its own out spec has.
OUT_SPEC = "but the spec refers to a pytree that holds"


def refused(cases: list[dict]) -> bool:
    """Whether plain PyTorch refuses what the package returns for a good sample: the package is the fault."""
    return OUT_SPEC in cases[0].get("plain", {}).get("package", {}).get("text", "")


def refused_too(cases: list[dict]) -> list[dict]:
    """The cases of such a package: that it is refused is right whatever else is wrong, and no input is its subject."""
    return [{**case, "causes": ["output-spec", *case["causes"]], "subjects": []} for case in cases]


# Cases whose inputs are good: the other file is not what the package was made from.
CHANGED = ("other-weights", "changed-operator", "wrong-kind")
# What only values or the process that loads tell is no question for a command that looks at the outside of files: of
# classes and operators that a program has to register it says what is needed.
BY_VALUE = {"index-out-of-range", "input-nan", "weights-differ", "pytree-class-missing", "custom-op-missing"}


def judge(line: dict, case: dict, report: dict, facts: dict) -> str:
    """``healthy``, ``right``, ``harmless``, ``false alarm``, ``missed``, ``wrong``, ``wrong subject``, ``ended badly``."""
    if line["command"] == "inspect":
        return table.contract_verdict(report, facts)
    if line["command"] == "verify" and not line["causes"]:
        return "healthy" if line["exit"] == 0 else "false alarm"
    if line["exit"] not in (0, 1, 3, 4):
        return "ended badly"
    if not line["causes"]:
        if line["plain"] != "same":
            return "sample is not healthy in plain PyTorch"
        return "healthy" if line["exit"] == 0 and line["verdict"] == "healthy" else "false alarm"
    first = line["said"][0] if line["said"] else None
    if first is None:
        if line["plain"] == "same" and line["case"] not in CHANGED:
            return "harmless"
        only_values = line["command"] == "check" and set(line["causes"]) & BY_VALUE
        return "not for check" if only_values else "missed" if line["exit"] == 0 else "unknown"
    if first["cause"] in line["causes"]:
        subjects = case["subjects"]
        named = [_leaf(part) for part in (first["subject"] or "").split(", ") if part]
        return "right" if not subjects or not named or set(named) <= set(subjects) else "wrong subject"
    return "wrong"


def _leaf(subject: str) -> str:
    return re.sub(r"\.(?:shape(?:\[\d+\])?|stride|dtype|device)$", "", subject)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="names or traits; all but the heavy ones by default")
    parser.add_argument("--out", type=Path, default=CACHE / "results")
    parser.add_argument("--faults", type=int, default=12, help="faults per model")
    parser.add_argument("--runs", type=int, default=4, help="how many of them `run` is given; `check` is given all")
    parser.add_argument("--healthy", type=int, default=4, help="how many healthy samples `run` is given")
    parser.add_argument("--commands", nargs="*", default=[])
    parser.add_argument("--only", default="", help="only cases whose name has this regular expression")
    parser.add_argument(
        "--again",
        choices=("misses", "all", "commit"),
        help="ask again what was wrong, all, or what another commit was asked",
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no question after that")
    parser.add_argument("--kept", action="store_true", help="only models that are built")
    parser.add_argument("--build-only", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    options.until, options.commit = time.monotonic() + options.minutes * 60, commit()
    return options


def main() -> None:
    options, known = _options(), names()
    wanted = [name for name, (_, traits, heavy) in known.items()
              if (not heavy if not options.models else name in options.models or set(traits) & set(options.models))]  # fmt: skip
    if options.kept:
        wanted = [name for name in wanted if built(name, known[name][0]) is not None]
    folders = build(wanted, known, options.out)
    for name in wanted:
        if name not in folders:
            print(f"{name}: not built: see {CACHE / f'{name}-{_key(known[name][0])}'}/build.log", flush=True)
    if options.build_only:
        return
    done = table.done(options.out / "results.jsonl", again=options.again, commit=options.commit)
    trials = [Trial(name, folder, options.out, options, list(known).index(name)) for name, folder in folders.items()]
    _stage("cases", [trial.job() for trial in trials if not trial.listed().exists()], options.out)
    for trial in trials:
        if trial.listed().exists():
            trial.ask(done)
    print(table.render(options.out / "results.jsonl"))


if __name__ == "__main__":
    main()
