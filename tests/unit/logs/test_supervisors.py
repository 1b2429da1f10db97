"""What is said of other processes, and what stands where a failure is told, is not its cause."""

from __future__ import annotations

import pytest

from tests.unit.logs.reading import causes, read

FRAMES = 'Traceback (most recent call last):\n  File "/srv/engine/worker.py", line 31, in load\n    self.model = build(config)\n'
FIRST = (
    FRAMES
    + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 8 GiB\n"
)
OTHER = FRAMES + "RuntimeError: the head count does not fit\n"


@pytest.mark.parametrize(
    "said",
    [
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        "engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
        "ERROR 03-04 10:11:12 launcher.py:77] Worker MyWorkerProcess pid 41 died, exit code: -9",
        "CRITICAL 03-04 10:11:12 launcher.py:77] Got fatal signal from worker processes, shutting down.\nKilled",
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        "There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory "
        "usage. (2) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors.",
        "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "RuntimeError: [/build/gloo/transport/tcp/pair.cc:500] Connection closed by peer [10.0.0.3]:2200",
        "ValueError: Queue <multiprocessing.queues.Queue object at 0x7f00> is closed",
        "Killed",
    ],
)
def test_who_watches_a_process_does_not_know_why_it_failed(said):
    assert causes(read(f"{FIRST}\n{said}\n"))[:1] == ["out-of-memory"]
    reading = read(f"{OTHER}\n{said}\n")
    assert "killed" not in causes(reading)
    assert reading.unknown


def test_a_compiler_that_was_killed_is_the_cause_of_what_its_caller_says():
    text = (
        "#9 41.20       /bin/sh: line 1:    77 Killed                  cicc --arch compute_90 -o k.ptx k.ii\n"
        "#9 41.90       ninja: build stopped: subcommand failed.\n"
        "#9 42.01       Traceback (most recent call last):\n"
        '#9 42.01         File "/opt/torch/utils/cpp_extension.py", line 20, in _run_ninja_build\n'
        "#9 42.01       subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.\n"
    )
    assert causes(read(text)) == ["killed"]


def test_half_a_traceback_is_no_damaged_file():
    reading = read(FRAMES + "\nwaiting for model.pt\ncorrupted double-linked list is another matter\n")
    assert not [match for match in reading.matches if match.pattern.cause == "artifact-corrupt" and match.line == 1]


@pytest.mark.parametrize(
    "stamp",
    [
        "(EngineWorker pid=77) ERROR 03-04 10:11:12 ray_utils.py:50] ",
        "(EngineWorker rank=1 pid=77) ERROR 03-04 10:11:12 [worker.py:50] ",
        "ERROR 03-04 10:11:12 core.py:210] ",
        "[2025-03-04 10:11:12 TP1] ",
        "[2025-03-04 10:11:12 DP0 TP1 EP1] ",
        "[2025-03-04 10:11:12,345 E 77 78] (raylet) manager.cc:31: ",
        "2025-03-04 10:11:12,345\tERROR worker.py:17 -- ",
        "#12 304.55 ",
    ],
)
def test_a_traceback_behind_the_stamps_of_servers(stamp):
    text = "".join(f"{stamp}{line}\n" for line in FIRST.splitlines())
    reading = read(text)
    assert [(event.form, event.kind) for event in reading.events] == [("python", "OutOfMemoryError")]
    assert causes(reading) == ["out-of-memory"]


def test_a_logged_traceback_without_its_head():
    lines = [f"ERROR 03-04 10:11:12 core.py:210] {line}" for line in FIRST.splitlines()[1:]]
    assert [(event.form, event.kind) for event in read("\n".join(lines)).events] == [("python", "OutOfMemoryError")]


def test_another_process_writes_behind_a_bar_of_progress():
    lines = [f"[rank0]: {line}" for line in FIRST.splitlines()]
    reading = read("Prompts:   0%|      | 0/5 [00:00<?, ?it/s]" + "\n".join(lines) + "\n")
    assert [(event.form, event.kind) for event in reading.events] == [("python", "OutOfMemoryError")]


def test_what_was_being_done_is_not_what_failed():
    reading = read(FRAMES + "Exception: Capture cuda graph failed: [/b/pair.cc:5] Connection closed by peer\n")
    assert causes(reading) == []
    reading = read(FRAMES + "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2 GiB\n")
    assert causes(reading) == ["out-of-memory"]


@pytest.mark.parametrize(
    "said",
    [
        "2026-03-04 10:11:12,345 INFO [main] org.acme.jobs.JobMaster: Using the default committer.",
        "2026-03-04 10:11:12,345 INFO [Reader #1 for port 500] org.acme.jobs.JobMaster: Starting",
        "Accuracy: 0.41\nInvalid: 0.002\nLatency: 3.1 s",
        "print_timings: prompt eval time = 0.00 ms / 0 tokens ( nan ms per token, nan tokens per second)",
        "[conda] Could not collect\ncuDNN version: Could not collect\nHIP runtime version: N/A",
        "Successful requests:                40\nFailed requests:                     0",
        "load: special_id is not in special_ids - the tokenizer config may be incorrect",
        "| op | share | self |\n|---|---|---|\n| add | nan | 0.0 |",
        " Error Allocator::assign(Node* node, Block* target) noexcept {",
    ],
)
def test_words_that_are_no_failure(said):
    assert not read(said).unknown


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("ValueError: Free memory on device (1.5/15.9 GiB) on startup is less than desired utilization", "out-of-memory"),
        ("vk::Device::allocateMemory: ErrorOutOfDeviceMemory: torch, failed", "out-of-memory"),
        ("nvcc error   : 'cudafe++' died due to signal 9 (Kill signal)", "killed"),
        ("lld-link: error: undefined symbol: public: __cdecl c10::Error::Error(void)", "undefined-symbol-link"),
        ("RuntimeError: NPU out of memory. Tried to allocate 1.20 GiB (NPU 0; 61.28 GiB total)", "out-of-memory"),
        ("RuntimeError: status != cudaStreamCaptureStatus::cudaStreamCaptureStatusInvalidated", "cuda-graph-capture"),
        ("| ranker | 4 | UNAVAILABLE: Internal: output 'S' does not follow naming convention i.e. <name>__<index>. |",
         "serving-config"),
    ],
)  # fmt: skip
def test_further_words_of_causes(said, cause):
    assert causes(read(said)) == [cause]


@pytest.mark.parametrize(
    ("said", "event", "causes"),
    [
        (
            "| step | loss | grad_norm |\n|---|---|---|\n| 40 | 2.7 | 1.1 |\n| 80 | nan | inf |",
            "| 80 | nan | inf |",
            ["overflow"],
        ),
        ("E   assert None is not None", "assert None is not None", []),
        ("With torch.compile the answers are completely different.",) * 2 + (["numeric-difference"],),
        ("After the update the server prints gibberish",) * 2 + ([],),
    ],
)
def test_a_failure_in_few_words_is_seen(said, event, causes):
    reading = read(said)
    assert [one.text for one in reading.unknown] == [event]
    assert [match.pattern.cause for match in reading.matches] == causes


def test_results_that_differ_from_eager_are_a_low_suspicion():
    reading = read("With torch.compile the outputs are wrong, eager is fine.")
    assert [(match.pattern.cause, match.pattern.is_suspect) for match in reading.matches] == [
        ("numeric-difference", True)
    ]
    assert reading.matches[0].confidence < 0.5


SOURCE = (
    "```python\nimport torch\n\ndef run(x):\n    if x.any():\n        raise ValueError('CUDA out of memory')\n"
    "    print('device-side assert triggered')\n```\n"
)


def test_quoted_source_says_nothing():
    assert not read(SOURCE).matches
    assert causes(read(SOURCE + "\n" + FIRST)) == ["out-of-memory"]


def test_output_in_a_block_of_a_language_is_read():
    assert causes(read(f"```python\nimport torch\n{FIRST}```\n")) == ["out-of-memory"]
    assert read("```py\nx = f()\nValueError: strange\n```\n").unknown


@pytest.mark.parametrize("said", ["ModuleNotFoundError: No module named 'acme'", "KeyboardInterrupt"])
def test_where_a_foreign_module_is_missing_or_somebody_stopped_it_says_nothing(said):
    frames = 'Traceback (most recent call last):\n  File "/opt/torch/_inductor/codecache.py", line 7, in get\n    x()\n'
    assert not read(f"{frames}{said}\n").matches


REPORT = (
    "Collecting environment information...\nPyTorch version: 2.7.0\nIs debug build: False\nROCM used to build PyTorch: N/A\n\n"
    "Clang version: Could not collect\nVulnerability Mmio stale data: Vulnerable: attempted, no microcode\n"
    "[pip3] numpy==2.0\n[conda] Could not collect\nGPU0     X      0-51\n  X    = Self\nLD_LIBRARY_PATH=/usr/lib\n"
)


def test_a_report_on_the_machine_is_no_failure_and_hides_none():
    assert not read(REPORT).unknown
    assert read(f"The compiled model gives other numbers than eager\n\n{REPORT}").unknown
    assert read(f"{REPORT}\nIt crashes at the second call\n").unknown


def test_progress_is_no_failure_of_what_it_counts():
    reading = read("After `Capturing CUDA graph shapes: 100%` the process hangs, vllm 0.9")
    assert [match.pattern.cause for match in reading.matches] == ["model-hang"]


def test_a_process_that_a_launcher_saw_killed():
    assert causes(read("[launch.py:325:main] exits with return code = -9")) == ["killed"]


@pytest.mark.parametrize(
    "said",
    [
        "With torch.compile the host memory keeps growing until the process is killed",
        "There is a memory leak when a package of torch is loaded many times, it crashes in the end",
    ],
)
def test_memory_that_grows_is_a_low_suspicion(said):
    reading = read(said)
    assert [match.pattern.cause for match in reading.matches] == ["memory-leak"]
    assert reading.matches[0].confidence < 0.5
