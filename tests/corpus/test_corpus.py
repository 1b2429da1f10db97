"""The patterns of the playbooks against what people really paste.

A cause is *established* where the thread ends with it (confidence high or medium), and not where it was guessed.
"""

from __future__ import annotations

import json

import pytest

from aotidoctor.commands.classify import classify_text
from aotidoctor.logs.diagnose_log import judge_log
from aotidoctor.logs.patterns import LEAST_CONFIDENCE, Pattern, check, load_patterns
from aotidoctor.model.evidence import Severity
from tests.corpus.corpus import HERE, Text, first_cause, matches, texts
from tests.every import every

REPORTS, MEASURED, FURTHER = texts("reports.jsonl"), texts("measured.jsonl"), texts("further.jsonl")
VARIANTS = texts("variants.jsonl")
PATTERNS = load_patterns()
ESTABLISHED = tuple(text for text in REPORTS if text.cause and text.confidence in ("high", "medium"))
# Outcomes that say what they are outcomes of.
RECORDED = {
    path.stem: recorded
    for path in sorted((HERE.parent / "data" / "cuda_sim").glob("*.json"))
    if (recorded := json.loads(path.read_text(encoding="utf-8")))["causes"]
}
# How the same lines look after they went through a launcher, a container, a journal, a terminal, a mail.
COATS = {
    "rank": "[rank3]: {}",
    "compose": "web-1  | {}",
    "docker": "2026-03-01T10:00:00.123456789Z {}",
    "kubernetes": "2026-03-01T10:00:00.000000000Z stderr F {}",
    "journald": "Mar 01 10:00:00 host7 server[3121]: {}",
    "colours": "\x1b[31m{}\x1b[0m",
    "windows": "{}\r",
    "quoted": "> {}",
    "engine": "(EngineCore_0 pid=9492) ERROR 09-06 23:28:45 [core.py:714] {}",
}
# They say how it showed and nothing of why: no answer is the right one.
SILENT = {
    "sliced-channels-ima-153992": "an illegal access that came out at an innocent call",
    "repeat-output-segv-122051": "only that it was a segmentation fault",
    "multithread-ima-138462": "the stack of an exception without its message",
}
# What stands first is not what it turned out to be.
WRONG = {"torch-check-failed-cpu-143498": "the kernel's bounds check was wrong, not the index: the words are the same"}


def name(item: Text | Pattern) -> str:
    return item.id if isinstance(item, Text) else f"{item.record.cause}-{PATTERNS.index(item)}"


def test_established_causes_stand_first():
    right = [text for text in ESTABLISHED if first_cause(text.symptom) == text.cause]
    assert len(ESTABLISHED) == 35
    assert {text.id for text in ESTABLISHED} - {text.id for text in right} == set(SILENT)
    assert len(right) >= 0.9 * len(ESTABLISHED)


@every("text", REPORTS, ids=name)
def test_reports_get_their_cause_or_none(text):
    found = first_cause(text.symptom)
    if text.id in WRONG:
        assert found not in (None, text.cause)
    else:
        assert found in (None, text.cause, *text.shared)


@every("text", MEASURED, ids=name)
def test_what_torch_prints_gets_its_cause(text):
    found = first_cause(text.symptom)
    allowed = {text.cause, *text.shared, *([None] if text.shared else [])}
    assert found in allowed


@every("text", VARIANTS, ids=name)
def test_other_words_of_the_same_kinds(text):
    assert first_cause(text.symptom) == text.cause


@every("text", FURTHER, ids=name)
def test_further_reports_get_their_cause_or_none(text):
    assert first_cause(text.symptom) in (None, text.cause, *text.shared)


@pytest.mark.parametrize(("half", "share"), [("tune", 0.95), ("check", 0.95), ("fresh", 0.85), ("blind", 0.9)])
def test_most_further_reports_get_an_answer(half, share):
    own = [text for text in FURTHER if text.half == half and text.cause]
    assert sum(first_cause(text.symptom) in (text.cause, *text.shared) for text in own) >= share * len(own)


@every("path", sorted((HERE / "healthy").iterdir()), ids=lambda path: path.stem)
def test_where_nothing_failed_there_is_no_cause(path):
    findings, diagnoses, reading = classify_text(path.read_bytes(), path.name)
    assert diagnoses == ()
    assert reading.unknown == ()
    assert [item for item in findings if item.severity is Severity.ERROR] == []


def test_diagnoses_are_what_stands_first():
    told = [text for text in MEASURED if text.cause and not text.shared]
    assert [classify_text(text.symptom.encode(), "log")[1][0].cause for text in told] == [text.cause for text in told]


@every("recorded", RECORDED.values(), ids=RECORDED)
def test_recorded_runs_get_one_of_their_causes_or_none(recorded):
    said = "\n".join(strings(recorded["runs"]))
    # Races and tensors of the CPU end in the same words.
    shared = ["cuda-illegal-access"] if "an illegal memory access was encountered" in said else []
    assert first_cause(said) in (None, *recorded["causes"], *shared)


def strings(value: object) -> list[str]:
    """All texts of more than a line or a few words in a recorded outcome."""
    if isinstance(value, str):
        return [value] if len(value) > 20 else []
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in strings(item)]


@pytest.mark.parametrize("coat", COATS.values(), ids=COATS)
def test_prefixes_do_not_matter(coat):
    told = [text for text in MEASURED if not text.shared]
    wrong = [
        (text.id, found)
        for text in told
        if (found := first_cause("\n".join(coat.format(line) for line in text.symptom.split("\n")))) != text.cause
    ]
    assert wrong == []


class TestPatterns:
    @every("pattern", PATTERNS, ids=name)
    def test_its_example_is_told_by_it(self, pattern):
        found = matches(pattern.record.example)
        if pattern.record.confidence < LEAST_CONFIDENCE:
            assert pattern.record.cause in {match.pattern.cause for match in found}
            assert first_cause(pattern.record.example) is None
        else:
            assert first_cause(pattern.record.example) == pattern.record.cause

    @every("pattern", PATTERNS, ids=name)
    def test_form(self, pattern):
        record = pattern.record
        check(pattern, name(pattern))
        assert record.source, "the file that prints the message"
        assert record.example
        assert 0.3 <= record.confidence <= 0.95
        assert pattern.literals, "each alternative has a word of four letters outside of groups: speed"

    @pytest.mark.parametrize("words", ["an illegal memory access was encountered", "unspecified launch failure"])
    @pytest.mark.parametrize("place", ["", "\nException raised from run at AOTIModelPackageLoader::run"])
    def test_the_plain_messages_of_cuda_are_errors_with_a_cause(self, words, place):
        findings, diagnoses, _ = classify_text(f"RuntimeError: CUDA error: {words}{place}\n".encode(), "log")
        assert (diagnoses[0].cause, diagnoses[0].severity) == ("cuda-illegal-access", Severity.ERROR)
        assert diagnoses[0].confidence >= 0.7
        assert findings[0].severity is Severity.ERROR

    def test_generic_words_are_leads_only(self):
        for text in (
            "Segmentation fault (core dumped)",
            "RuntimeError: CUDA error: invalid argument",
            "RuntimeError: run_func_( container_handle_, input_handles.data(), input_handles.size()) API call failed at model_container_runner.cpp, line 144",
            "AssertionError: Tensor-likes are not close!",
            "Aborted (core dumped)",
            "terminate called after throwing an instance of 'std::runtime_error'\n  what():  something",
            "Process finished with exit code 139",
            "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        ):
            assert first_cause(text) is None, text


# A report that quotes the message that it is about.
QUOTING = {"triton-cuda-h-prose"}


def test_where_nothing_failed_in_a_text_of_a_tracker_no_cause_is_named():
    named = set()
    for path in sorted(HERE.glob("*.jsonl")):
        for text in texts(path.name):
            if text.half == "healthy":
                _, diagnoses, reading = classify_text(text.symptom.encode(), "log")
                named |= {text.id} if judge_log(reading, diagnoses)[0] == "problem" else set()
    assert named == QUOTING
