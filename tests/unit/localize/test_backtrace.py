"""Recorded texts of gdb, py-spy and /proc, read to frames and verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from aotidoctor.localize.culprit import called_operator, culprit, kernel_of, package_files, with_sources
from aotidoctor.localize.debugger_output import Backtrace, fault_target, operator_frame, read_backtrace, read_regions
from aotidoctor.model.artifact import ExternNode, ModelEntry
from aotidoctor.model.localization import Frame

DATA = Path(__file__).parents[2] / "data" / "stacks"
OPERATOR = "misbehave(at::Tensor const&)"
LIBRARY = "libzoo-14bc3e2aab4b.so"


def recorded(name: str) -> Backtrace:
    return read_backtrace((DATA / f"{name}.txt").read_text())


def first_frame(text: str) -> Frame:
    trace = read_backtrace(
        f"=== stop\nThread 1 received signal SIGSEGV.\n=== stack\n#0  0x0000000000000010 in {text}\n"
    )
    assert trace.stop is not None
    return trace.stop.frames[0]


@pytest.mark.parametrize(
    ("name", "signal", "function", "proved"),
    [
        ("operator_segv", "SIGSEGV", OPERATOR, True),
        ("operator_heap", "SIGABRT", OPERATOR, True),
        ("operator_terminate", "SIGABRT", OPERATOR, True),
        ("operator_fpe", "SIGFPE", OPERATOR, True),
        # The outer end of an overflown stack is too far to be seen.
        ("operator_stack", "SIGSEGV", "dive(char volatile*, int)", False),
    ],
)
def test_a_signal_in_an_operators_library(name: str, signal: str, function: str, proved: bool) -> None:
    stop = recorded(name).stop
    assert stop is not None
    found = culprit(stop.frames)
    assert (stop.signal, found.where, found.library, found.proved) == (signal, "operator", LIBRARY, proved)
    assert found.frame is not None
    assert found.frame.function == function


@pytest.mark.parametrize(
    ("name", "kernel", "target"),
    [
        ("kernel_segv", "cpp_fused_add_mul_1", "the null page: a null pointer"),
        # Inlined frames of vector headers are on top of the kernel's own.
        ("kernel_overread", "cpp_fused_mul_sum_0", "unmapped, right beyond the end of the heap"),
        ("kernel_threads", "cpp_fused_mul_sum_0", "unmapped, with nothing near"),
    ],
)
def test_a_signal_in_a_kernel(name: str, kernel: str, target: str) -> None:
    stop = recorded(name).stop
    assert stop is not None
    found = culprit(stop.frames)
    assert (found.where, found.kernel) == ("kernel", kernel)
    assert found.frame is not None
    assert (found.frame.file or "").endswith(".kernel.cpp")
    assert stop.target == target


def test_an_operator_in_python_is_not_the_library_that_it_died_in() -> None:
    stop = recorded("python_segv").stop
    assert stop is not None
    found = culprit(stop.frames)
    assert (found.where, found.library, found.proved) == ("operator", None, True)
    named = operator_frame((DATA / "python_segv.stderr.txt").read_text())
    assert named is not None
    assert (named.file, named.line, named.function) == ("/home/me/setup_py.py", 13, "real")


def test_compiled_code_is_no_operator_in_python() -> None:
    text = (DATA / "python_sleep.stderr.txt").read_text()
    without = "\n".join(line for line in text.splitlines() if "setup_py.py" not in line) + "\n"
    assert operator_frame(text) is not None
    assert operator_frame(without) is None
    assert operator_frame("") is None


def test_what_was_asked_at_the_stop() -> None:
    stop = recorded("operator_segv").stop
    assert stop is not None
    assert (stop.address, stop.target) == (0, "the null page: a null pointer")
    assert stop.instruction is not None
    assert "movl   $0x1,0x0" in stop.instruction
    assert [frame.index for frame in stop.frames] == list(range(len(stop.frames)))


def test_an_abort_has_no_address() -> None:
    stop = recorded("operator_heap").stop
    assert stop is not None
    assert (stop.address, stop.target) == (None, None)


def test_the_stack_has_overflowed() -> None:
    stop = recorded("operator_stack").stop
    assert stop is not None
    assert stop.target == "below the end of the stack: it has overflowed"


def test_frames_of_stripped_libraries_are_passed_and_guesses_are_left_out() -> None:
    stop = recorded("operator_terminate").stop
    assert stop is not None
    functions = [frame.function for frame in stop.frames]
    assert "??" in functions[: functions.index(OPERATOR)]
    assert functions[-1] == "??"
    assert functions.index("torch::aot_inductor::AOTInductorModel::run_impl") < len(functions) - 1
    assert stop.frames[-1].library is not None
    assert stop.frames[-1].library.endswith("libtorch_python.so")


@pytest.mark.parametrize(
    ("text", "function", "file", "line", "library"),
    [
        ("f () from /a/lib b.so", "f", None, None, "/a/lib b.so"),
        ("f(int, std::vector<int, std::allocator<int> >) () from /a.so", "f(int, std::vector<int, std::allocator<int> >)",
         None, None, "/a.so"),
        ("cpp_fused_a_0._omp_fn.0(void) () at /t/k.cpp:48", "cpp_fused_a_0._omp_fn.0(void)", "/t/k.cpp", 48, None),
        ("a::b<c (*)(d const&)>::operator()(e) const () from /a.so", "a::b<c (*)(d const&)>::operator()(e) const", None,
         None, "/a.so"),
        ("a::operator() (...) at x.h:3", "a::operator()", "x.h", 3, None),
        ("g (n=3, s=\"x (y)\") at /d e/f.cpp:12", "g", "/d e/f.cpp", 12, None),
        ("(anonymous namespace)::h(int) () from /a.so", "(anonymous namespace)::h(int)", None, None, "/a.so"),
        ("f(x) const [clone .isra.0] () from /a.so", "f(x) const [clone .isra.0]", None, None, "/a.so"),
        ("<signal handler called>", "<signal handler called>", None, None, None),
        ("?? ()", "??", None, None, None),
        ("?? () from /a.so", "??", None, None, "/a.so"),
    ],
)  # fmt: skip
def test_the_faces_of_a_frame(
    text: str, function: str, file: str | None, line: int | None, library: str | None
) -> None:
    frame = first_frame(text)
    assert (frame.function, frame.file, frame.line, frame.library) == (function, file, line, library)


@pytest.mark.parametrize(
    ("function", "kernel"),
    [
        ("cpp_fused_add_mul_0", "cpp_fused_add_mul_0"),
        ("cpp_fused_add_mul_0._omp_fn.0", "cpp_fused_add_mul_0"),
        ("cpp_fused_add_mul_0._omp_fn.0(void)", "cpp_fused_add_mul_0"),
        ("cpp_fused_add_mul_0.cold", "cpp_fused_add_mul_0"),
        ("cpp_fused__softmax_1(float const*, float*)", "cpp_fused__softmax_1"),
        ("my_cpp_fused_add", None),
        ("at::native::cpp_fused_add(int)", None),
        (None, None),
    ],
)
def test_kernels_by_name(function: str | None, kernel: str | None) -> None:
    assert kernel_of(Frame(index=0, function=function)) == kernel


@pytest.mark.parametrize(
    "text", ["", "\x00\xff", "=== stop\n", "=== stack\n#0  \n#1 x\n", "=== tasks\ntid=a\n=== maps\nzz-yy"]
)
def test_text_that_is_none_of_ours(text: str) -> None:
    trace = read_backtrace(text)
    assert trace.stop is None
    assert trace.threads == ()
    assert trace.tasks == ()


def test_an_end_without_a_stop() -> None:
    read = read_backtrace("=== end\nContinuing.\n[Inferior 1 (process 7) exited normally]\n")
    assert (read.ended, read.stop, read.threads) == (True, None, ())


MAPS = """\
1000000-1002000 r-xp 00000000 fe:00 1 /opt/lib/libfoo.so
1002000-1003000 r--p 00000000 fe:00 1 /opt/lib/libfoo.so
2000000-2010000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000010000 rw-p 00000000 00:00 0
7ff000000000-7ff000001000 ---p 00000000 00:00 0
7ff000001000-7ff000801000 rw-p 00000000 00:00 0 [stack]
"""


@pytest.mark.parametrize(
    ("address", "code", "sp", "target"),
    [
        (0, 1, None, "the null page: a null pointer"),
        (24, 1, None, "the null page: a null pointer plus 24 bytes"),
        (0, 128, None, "no possible address: a pointer that was overwritten or never set"),
        (0x1001000, 2, None, "inside libfoo.so, which allows r-x"),
        (0x2010000, 1, None, "unmapped, right beyond the end of the heap"),
        (0x2010040, 1, None, "unmapped, 64 bytes beyond the end of the heap"),
        (0x7F0000010010, 1, None, "unmapped, 16 bytes beyond the end of an anonymous mapping"),
        (0x1FFFFF0, 1, None, "unmapped, 16 bytes before the start of the heap"),
        (0x7FF000000FF0, 2, 0x7FF000000FF0, "below the end of the stack: it has overflowed"),
        # The stack pointer is where it should be.
        (0x7FF000000FF0, 2, 0x7FF000700000, "inside an anonymous mapping, which allows ---"),
        (0x500000000000, 1, None, "unmapped, with nothing near"),
    ],
)
def test_what_an_address_points_to(address: int, code: int, sp: int | None, target: str) -> None:
    assert fault_target(address, code, sp, read_regions(MAPS)) == target


def frames(*rows: tuple[str, str | None]) -> tuple[Frame, ...]:
    return tuple(Frame(index=index, function=name, library=library) for index, (name, library) in enumerate(rows))


CPU = "/venv/torch/lib/libtorch_cpu.so"
MODEL = ("torch::aot_inductor::AOTInductorModel::run_impl", "/tmp/x.wrapper.so")
CALL = ("torch::aot_inductor::OSSProxyExecutor::call_function(int)", CPU)


@pytest.mark.parametrize(
    ("rows", "where", "function", "proved"),
    [
        # PyTorch called by an operator is the operator's doing; PyTorch called by the model is not.
        ([("at::full", CPU), ("op", "/me/libop.so"), CALL, MODEL], "operator", "op", True),
        ([("at::addmm", CPU), ("aoti_torch_cpu_addmm_out", CPU), MODEL], "libtorch", "at::addmm", False),
        # The library that PyTorch called is the operator's, whatever that one calls.
        ([("inflate", "/usr/lib/libz.so.1"), ("op", "/me/libop.so"), CALL, MODEL], "operator", "op", True),
        ([("memcpy", "/lib/libc.so.6"), MODEL], "runtime", MODEL[0], False),
        ([MODEL], "runtime", MODEL[0], False),
        (
            [("memcpy", "/lib/libc.so.6"), ("cpp_fused_a_0", "/tmp/x.wrapper.so"), MODEL],
            "kernel",
            "cpp_fused_a_0",
            True,
        ),
        # A kernel that an operator's library happens to hold under such a name is the operator's.
        ([("helper", "/me/libop.so"), ("cpp_fused_a_0", "/me/libop.so"), CALL, MODEL], "operator", "helper", True),
        ([("??", None)], "unknown", "??", False),
        ([("raise", "/lib/libc.so.6"), ("abort", "/lib/libc.so.6")], "unknown", "raise", False),
        # Without the model's frame Python is whoever started everything.
        ([("_PyEval_EvalFrameDefault", "/usr/lib/libpython3.11.so.1.0")], "unknown", "_PyEval_EvalFrameDefault", False),
        ([("worker", "/me/libop.so"), ("start_thread", "/lib/libc.so.6")], "operator", "worker", False),
        ([("dgemm", "/venv/lib/libmkl_avx512.so.2"), ("at::addmm", CPU), MODEL], "libtorch", "at::addmm", False),
        ([], "unknown", None, False),
    ],
)
def test_whose_code_it_is(rows, where: str, function: str | None, proved: bool) -> None:
    found = culprit(frames(*rows))
    assert (found.where, found.proved) == (where, proved)
    assert (found.frame.function if found.frame else None) == function


def test_the_packages_own_library_by_its_name() -> None:
    rows = frames(("something", "/tmp/abc.so"), MODEL)
    assert culprit(rows, {"abc.so"}).where == "runtime"
    assert culprit(rows).where == "operator"


WRAPPER = "\n".join(
    ["void run_impl() {"]
    + ["    ;"] * 9
    + [
        "    cpp_fused_add_0(buf0);",
        "    check(aoti_torch_proxy_executor_call_function(proxy_executor, 1, 0,",
        "        nullptr, 2, args));",
        '    check(aoti_torch_call_dispatcher("mine::third", "", stack));',
    ]
)
ENTRY = ModelEntry(
    name="model",
    layout="pt2",
    members=(),
    wrapper_member="data/aotinductor/model/cabc.wrapper.cpp",
    wrapper_cpp=WRAPPER,
    kernel_sources={"data/aotinductor/model/cdef.kernel.cpp": "a\nb\nc\nd\ne\nf\ng\nh\n"},
    extern_nodes=(ExternNode(name="a", target="mine::first"), ExternNode(name="b", target="mine::second")),
)


def at(name: str, line: int | None) -> Frame:
    return Frame(index=0, function="f", file=f"/tmp/torchinductor_me/c/{name}", line=line)


def test_lines_of_the_package() -> None:
    kernel, wrapper, header, beyond = with_sources(
        [at("cdef.kernel.cpp", 5), at("cabc.wrapper.cpp", 1), at("model_base.h", 5), at("cdef.kernel.cpp", 99)], ENTRY
    )
    assert kernel.member == "data/aotinductor/model/cdef.kernel.cpp"
    assert [(line.number, line.text) for line in kernel.lines if line.marked] == [(5, "e")]
    assert [line.number for line in kernel.lines] == [2, 3, 4, 5, 6, 7, 8]
    assert wrapper.lines[0].text == "void run_impl() {"
    assert (header.member, header.lines) == (None, ())
    assert (beyond.member, beyond.lines) == ("data/aotinductor/model/cdef.kernel.cpp", ())
    assert with_sources([at("cdef.kernel.cpp", 5)], None)[0].member is None


@pytest.mark.parametrize(
    ("line", "operator"),
    [(12, "mine::second"), (13, "mine::second"), (14, "mine::third"), (11, None), (2, None), (999, None), (None, None)],
)
def test_the_operator_that_the_wrapper_called(line: int | None, operator: str | None) -> None:
    assert called_operator([at("other.h", 12), at("cabc.wrapper.cpp", line)], ENTRY) == operator


def test_an_index_that_the_package_does_not_have() -> None:
    one = ModelEntry(name="m", layout="pt2", members=(), wrapper_member="cabc.wrapper.cpp", wrapper_cpp=WRAPPER)
    assert called_operator([at("cabc.wrapper.cpp", 12)], one) is None
    assert package_files(ENTRY) == {"cabc.wrapper.cpp", "cdef.kernel.cpp"}
