"""Words of a failure with a count of none, or denied, report none; the same words with a count, or told, do."""

from __future__ import annotations

from tests.corpus.corpus import told
from tests.every import every

# As counters, checks and summaries print them.
NONE = (
    "max diff: 0.0", "mismatched elements: 0 / 100", "allclose: True", "nan_count=0", "num_nans: 0", "nonfinite: 0",
    "nonfinite values: 0 of 4096", "inf: 0, nan: 0", "contains_nan=False", "isnan: False", "NaN check passed",
    "loss: 0.31 grad_norm: 1.2 nan_steps: 0", "NaN: no, Inf: no", "output finite: True", "NaN/Inf check: OK",
    "0 non-finite values in logits", "no NaN/Inf detected", "NaNs in output? False", "tensor has no nan or inf",
    "logits: 0 NaN in 4096 values", "output of conv1: no NaN, max 3.1", "has NaN: False", "errors: 0, failures: 0",
    "failed: 0, passed: 12", "0 failed, 12 passed", "error rate 0.0%", "leaked objects: 0", "dropped requests: 0",
    "timeouts: 0", "OOM events: 0", "oom_kill 0", "crashes: 0", "num_ooms: 0", "assertions failed: 0",
    "illegal accesses: 0", "ERROR SUMMARY: 0 errors", "deadlocks detected: 0", "hang: none", "segfaults: 0",
    "0 mismatches, 0 wrong", "numerical mismatch: none", "max relative difference: 1.2e-7", "corrupted entries: 0",
    "missing keys: []", "unexpected keys: []", "missing_keys=[], unexpected_keys=[]", "NCCL errors: 0", "ECC errors: 0",
    "Xid errors: none", "dmesg: no errors", "exit status 0", "killed: 0", "exceptions raised: 0", "gpu faults: 0",
    "memory leaked: 0 bytes", "definitely lost: 0 bytes in 0 blocks", "out of memory: no", "crashed: false",
    "status: not failed", "allow_nan=True, ignore_nan: 1", "did not crash", "never hung", "no failure in 10000 calls",
    "no illegal access found by compute-sanitizer", "leak check: clean", "nothing failed", "not a single failure",
    "none of the 12 tests failed", "error-free run", "PSNR inf dB", "violations: 0", "error count 0", "0/12 failed",
    "0 of 12 requests failed", "dead workers: 0", "unhealthy nodes: 0", "stuck jobs: 0", "frozen layers: 12",
    "underflow: 0", "diverged: False", "bad pixels: 0", "packet loss 0%", "overflow: False",
)  # fmt: skip
SOME = (
    "mismatched elements: 10 / 100", "nan_count=7", "inf: 0, nan: 12", "contains_nan=True", "logits: 12 NaN in 4096 values",
    "failed: 1, passed: 12", "leaked objects: 17", "OOM events: 3", "crashes: 2",
    "illegal accesses: 4", "ERROR SUMMARY: 2 errors", "deadlocks detected: 1", "segfaults: 1", "3 mismatches, 3 wrong",
    "missing keys: ['fc.weight']", "killed: 9", "out of memory: yes", "crashed: true", "status: failed",
    "it crashed", "it hung", "no kernel image is available", "no such file or directory",
    "3 of 12 requests failed", "dead workers: 1", "nothing is printed and it hangs", "the layers are frozen and it is stuck",
    "not implemented", "no space left on device", "did not fail on CPU but crashed on the GPU",
)  # fmt: skip

# What was allowed, handled, set or counted, and lines of scripts.
CALM = (
    "max abs error 2.4e-7 (tolerance 1e-5): OK", "max abs error 2.4e-7 (tolerance 1e-5)", "[  FAILED  ] 0 tests",
    "Killed old process 1234 and restarted", "timeout set to 30 s", "deadline not exceeded",
    "torch.compile: 3 graph breaks, 0 errors", "flash-attn is not installed; using sdpa",
    "xformers not available, using math attention", "apex not found, using torch layer norm", "+ trap 'echo failed' ERR",
    'echo "will fail if missing" > note.txt',
)  # fmt: skip
LOUD = (
    "max abs error 2.4e-3 (tolerance 1e-5)", "[  FAILED  ] 2 tests", "Killed", "Killed     python serve.py",
    "run.sh: line 3:  1234 Killed                  python serve.py", "timeout after 30 s", "deadline exceeded",
    "flash-attn is not installed", "flash-attn is not installed; using sdpa, which hangs",
    # What a null stands before, or a word that is no denial.
    "failed: no such file or directory", "invalid: no schema for op", "unexpected: no output", "failed: ok was expected",
    "crash: null dereference", "3 is not a valid exception context", "Error removing load : no such load exists",
    "Assertion `node` failed: No Adapter For Relu", "Failed to read config: No dyno config client",
)  # fmt: skip


@every("before", ["", "torch 2.13.0\nrunning model.pt2 with aoti\n"], ids=["alone", "of torch"])
@every("line", [*NONE, *CALM])
def test_none_denied_or_handled_is_no_failure(line, before):
    assert told(f"{before}{line}\n") is None


# Of those above, what has a cause; the others are failures without one.
CAUSES = {
    **dict.fromkeys(
        ("nan_count=7", "inf: 0, nan: 12", "contains_nan=True", "logits: 12 NaN in 4096 values"), "nan-produced"
    ),
    **dict.fromkeys(("OOM events: 3", "out of memory: yes"), "out-of-memory"),
    "missing keys: ['fc.weight']": "weights-mismatch",
    **dict.fromkeys(
        ("killed: 9", "Killed", "Killed     python serve.py", "run.sh: line 3:  1234 Killed                  python serve.py"),
        "killed",
    ),
    **dict.fromkeys(
        (
            "it hung", "nothing is printed and it hangs", "the layers are frozen and it is stuck",
            "flash-attn is not installed; using sdpa, which hangs",
        ),
        "model-hang",
    ),
    "no kernel image is available": "gpu-arch-mismatch",
    **dict.fromkeys(("no such file or directory", "failed: no such file or directory"), "artifact-missing"),
    "no space left on device": "tmpdir",
    "max abs error 2.4e-3 (tolerance 1e-5)": "numeric-difference",
    "invalid: no schema for op": "custom-op-missing",
    "unexpected: no output": "serving-config",
}  # fmt: skip


@every("line", [*SOME, *LOUD])
def test_the_same_words_of_what_happened_are_one(line):
    assert told(f"torch 2.13.0\nrunning model.pt2 with aoti\n{line}\n") == CAUSES.get(line, "unknown")
