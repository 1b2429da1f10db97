"""Ask about every rebuilt report and judge the answers: ``python -m tests.reports.trial [NAME...]``, or ``make trial-reports``.

With ``--remedies`` the remedy of each report is put into its script, which must then succeed.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from aotidoctor.triage.finish import OF_THE_MODEL
from tests.e2e.foundry.place import cache_dir
from tests.e2e.warm_python import AS_A_SCRIPT, python
from tests.reports.cases import HERE, REPORTS, Question, Report

SECONDS = 900
# The wrapper is most of what is compiled, and runs for milliseconds.
QUICK = """
from torch._inductor.config import aot_inductor

if hasattr(aot_inductor, "compile_wrapper_opt_level"):
    aot_inductor.compile_wrapper_opt_level = "O0"
"""
Ask = Callable[[list[str], Path], tuple[str, str]]


def made(report: Report) -> Path:
    """The folder of a report, compiled once per machine and torch."""
    content = report.script.read_bytes() if report.script.exists() else report.log.read_bytes()
    key = sha256(content + repr((report.arguments, importlib.metadata.version("torch"))).encode()).hexdigest()[:12]
    folder = cache_dir() / f"report-{report.name}-{key}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            work = Path(temporary) / "work"
            work.mkdir()
            if report.log.exists():
                shutil.copy(report.log, work / "report.log")
            if report.script.exists():
                _run_script(report, work)
            # Another one may have been quicker.
            with suppress(OSError):
                work.rename(folder)
    return folder


def _run_script(report: Report, work: Path) -> None:
    for script in report.script.parent.glob(f"{report.name}*.py"):
        shutil.copy(script, work)
    done = python(QUICK + AS_A_SCRIPT, work / report.script.name, *report.arguments, cwd=work)
    log = work / "report.log"
    log.write_text((log.read_text() if log.exists() else "") or done.stdout + done.stderr)


def judge(question: Question, status: str, output: str) -> list[str]:
    """What is wrong with the JSON of an answer; empty for a right one."""
    try:
        answer = json.loads(output)
    except ValueError:
        return [f"no answer ({status}): {output[-300:]}"]
    diagnoses = answer.get("diagnoses") or []
    first = diagnoses[0] if diagnoses else {}
    cause = first.get("cause")
    if not question.causes:
        wrong = (
            [] if status == "0" and cause is None else [f"{cause} {first.get('subject')} (exit {status}), not healthy"]
        )
    elif cause not in question.causes:
        wrong = [f"{cause} {first.get('subject')} (exit {status}), not {' or '.join(question.causes)}"]
    else:
        named = f"{first.get('subject')} {first.get('title')}"
        wrong = [] if question.subject in named else [f"subject {named!r} lacks {question.subject!r}"]
        wrong += [f"does not say {text!r}" for text in question.says if text not in json.dumps(first)]
        wrong += [] if status == "1" or first.get("severity") == "warn" else [f"exit {status}, not 1"]
    # Advice about the model says whether it was tried.
    unmarked = [item["cause"] for item in diagnoses if item["cause"] in OF_THE_MODEL and not is_marked(item["remedy"])]
    wrong += [f"remedy not marked: {cause}" for cause in unmarked]
    # What a log is quoted with is not what is said of it.
    findings = [item for item in answer.get("findings") or () if not item["code"].startswith("AD-LOG")]
    advice = [{key: value for key, value in item.items() if key != "looked_like"} for item in diagnoses]
    report = json.dumps([advice, answer.get("headline"), findings])
    if not question.causes:
        wrong += [f"does not say {text!r}" for text in question.says if text not in json.dumps(findings)]
    return wrong + [f"says {text!r}" for text in question.never if text in report]


def is_marked(remedy: dict[str, object]) -> bool:
    """Whether a remedy says that it was tried, or that it was not."""
    return bool(remedy["verified"] or remedy["tried"])


def answers(report: Report, ask: Ask) -> Iterator[tuple[Question, list[str]]]:
    """Each question about a report, and what is wrong with its answer."""
    folder = made(report)
    for question in report.asked:
        words = [sys.executable if word == "PYTHON" else word for word in shlex.split(question.words)]
        # The output of watch is the program's own.
        words[1:1] = ["--report", "json:answer.json"] if words[0] == "watch" else ["--json"]
        with tempfile.TemporaryDirectory() as temporary:
            work = Path(temporary) / "work"
            shutil.copytree(folder, work)
            status, output = ask(words, work)
            report_file = work / "answer.json"
            yield question, judge(question, status, report_file.read_text() if report_file.exists() else output)


def by_shell(words: list[str], folder: Path) -> tuple[str, str]:
    """Status and output of a command."""
    root = str(HERE.parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "aotidoctor", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": root},
    )
    return str(done.returncode), done.stdout or done.stderr


def proves(report: Report) -> bool:
    """Whether the script succeeds with the remedy in it."""
    with tempfile.TemporaryDirectory() as temporary:
        text = report.script.read_text()
        for old, new in report.remedy:
            assert old in text, f"{report.name}: {old}"
            text = text.replace(old, new)
        path = Path(temporary) / report.script.name
        path.write_text(text)
        done = subprocess.run([sys.executable, path], cwd=temporary, capture_output=True, timeout=SECONDS, check=False)
        return done.returncode == 0


def main(arguments: list[str]) -> int:
    names = [word for word in arguments if not word.startswith("-")]
    asked = right = 0
    for report in REPORTS:
        if names and report.name not in names:
            continue
        if "--remedies" in arguments:
            if report.remedy:
                asked, right = asked + 1, right + (done := proves(report))
                print("right" if done else "WRONG", report.name, report.remedy, flush=True)
            continue
        for question, wrong in answers(report, by_shell):
            asked, right = asked + 1, right + (not wrong)
            print("WRONG" if wrong else "right", report.name, question.words, *wrong, sep=" | ", flush=True)
    print(f"{right} of {asked} right")
    return int(right < asked)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
