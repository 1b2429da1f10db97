"""What was handled, what belongs to another program, and what only looks like news."""

from __future__ import annotations

import pytest

from tests.unit.logs.reading import causes, read

MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB.\n"
SYMBOL = "/opt/venv/lib/python3.11/site-packages/quantkit/_C.abi3.so: undefined symbol: _ZN3c105ErrorC2Ev"


@pytest.mark.parametrize(
    "probe",
    [
        f"Skipping import of cpp extensions: {SYMBOL}",
        f"optional fast path: {SYMBOL}, falling back to Python",
        "node-1:301:301 [0] NCCL INFO NET/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open shared object file",
    ],
)
def test_an_optional_library_is_not_why_it_failed_later(probe):
    assert causes(read(f"{probe}\nloading the model\n{MEMORY}"))[0] == "out-of-memory"
    alone = read(f"{probe}\n")
    assert alone.matches
    assert [event.level for event in alone.events] in (["warning"], ["mention"])
    assert causes(read(f"{probe}\nstep 1: loss 0.3\ntraining completed\n")) == []


def test_a_library_that_is_needed_still_comes_first():
    assert causes(read(f"ImportError: {SYMBOL}\n\n{MEMORY}"))[0] == "abi-mismatch"


def test_words_of_another_vendors_report_are_no_instruction_of_this_processor():
    report = (
        "CANN error: EZ9999: Inner Error!\n  there is an aivec error, errorStr: Illegal instruction, unaligned UUB\n"
    )
    reading = read(f"{report}Aborted (core dumped)\n")
    assert causes(reading) == []
    assert reading.unknown
    assert causes(read("Illegal instruction (core dumped)\n")) == ["isa-mismatch"]


@pytest.mark.parametrize("rate", ["13.82it/s", "2.10s/it"])
def test_what_the_shell_writes_behind_a_bar_of_progress(rate):
    assert causes(read(f"  6%|\u2588\u2588    | 37/625 [04:47<1:10:53, {rate}]Killed\n")) == ["killed"]


def test_triton_without_code_for_a_gpu():
    said = "computeCapability not supported"
    text = f'python3: lib/Dialect/TritonGPU/AccelerateMatmul.cpp:42: int mlir::f(int): Assertion `false && "{said}"\' failed.\n'
    assert causes(read(text)) == ["gpu-arch-mismatch"]


WARNED = "W0108 19:01:00.635000 77 torch/_higher_order_ops/triton_kernel_wrap.py:983] [0/0] "
LOGGED = [
    "Traceback (most recent call last):",
    '  File "/srv/k.py", line 3, in f',
    "    g(x)",
    "pumps.compiler.CompilationError: no pump",
]


def test_an_exception_logged_as_a_warning_is_why_somebody_pasted_few_lines():
    few = "".join(f"{WARNED}{line}\n" for line in LOGGED)
    assert read(few).unknown
    many = "".join(f"step {number} of the work\n" for number in range(30))
    assert not read(many + few + many).unknown


BROKEN = "2026-07-29 19:13:24,282 - WARN  [Worker:18@762] - Connection broken for id 18, error =\n"
LEFT = "2026-07-29 19:13:24,370 - WARN  [Worker:18@688] - worker leaves its thread\n"
NEWS = "2026-07-29 19:14:24,370 - INFO  [Worker:18@493] - received a request\n"


def test_connections_that_broke_and_nothing_else_are_no_health():
    assert read((LEFT + BROKEN) * 6 + NEWS * 4).unknown
    assert not read(BROKEN + LEFT + NEWS * 4).unknown
    assert not read((LEFT + BROKEN) * 6 + NEWS * 30).unknown
    assert not read((LEFT + BROKEN) * 6 + "2026-07-29 19:15:00,000 - INFO - all workers ready\n").unknown


def test_a_loss_that_is_printed_as_a_word():
    steps = "".join(
        f"0 {step} {{'loss': '{loss}', 'tok/s': '30.2'}}\n" for step, loss in enumerate(("1.5", "nan", "nan"))
    )
    assert read(steps).matches[0].pattern.cause == "nan-produced"
    assert not read(steps.replace("nan", "1.4")).events


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("RuntimeError: index out of range at /pytorch/aten/src/TH/generic/THTensorMath.cpp:19", "index-out-of-range"),
        ("ld said -lcuda: No such file or directory", "toolchain-missing"),
        ("NameError: name 'bare_metal_version' is not defined", "toolchain-missing"),
        ("a.cpp:28:40: error: use of undeclared identifier 'omp_get_max_threads'", "toolchain-missing"),
        ("`AssertionError: Guard failed: x.size()[0] == 4`. The example has 4.", "input-shape"),
        ("RuntimeError: BeginForward(at::Tensor)::<lambda()> failed to dispatch head_dim 80", "custom-op-exception"),
        ('it says "fp8e4nv not supported in this architecture."', "dtype-unsupported"),
        (
            ">>> torch.cuda.is_available()\n/a/torch/cuda/__init__.py:129: UserWarning: CUDA initialization: Error 804: "
            "forward compatibility was attempted on non supported HW\nFalse",
            "driver-mismatch",
        ),
    ],
)
def test_words_that_were_not_known(text, cause):
    assert causes(read(f"{text}\n"))[:1] == [cause]
