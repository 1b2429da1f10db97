"""The forms of failures, whole and cut, as programs print them."""

from __future__ import annotations

import textwrap

import pytest

from tests.every import every
from tests.unit.logs.reading import read

FRAMES = """\
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x80 (0x7f0 in /venv/torch/lib/libc10.so)
frame #1: cpp_fused_embedding_mul_0 + 0x1c3 (0x7f1 in /tmp/a/c.wrapper.so)
"""
# Name: the log, and per event (form, kind, first line, last line, start of the message, number of frames).
CASES = {
    "script": (
        """\
        Traceback (most recent call last):
          File "/app/run.py", line 11, in <module>
            output = model(x)
                     ^^^^^^^^
          File "/venv/torch/_inductor/package/package.py", line 743, in __call__
            flat = self.loader.boxed_run(flat)
        RuntimeError: run_func_(...) API call failed at model_container_runner.cpp, line 144
        """,
        [("python", "RuntimeError", 1, 7, "RuntimeError: run_func_(...) API call", 2)],
    ),
    "two lines of a message, and c10's frames": (
        "RuntimeError: index out of bounds: 0 <= tmp2 < 100L\n"
        "Exception raised from cpp_fused_embedding_mul_0 at /tmp/a/c.kernel.cpp:22 (most recent call first):\n" + FRAMES,
        [("python", "RuntimeError", 1, 4, "RuntimeError: index out of bounds", 2)],
    ),
    "c10 alone": (
        "index out of bounds: 0 <= tmp7 < ks1\nException raised from cpp_fused_0 at /tmp/c.cpp:1084 (most recent call first):\n"
        + FRAMES,
        [("c10", "", 1, 4, "index out of bounds: 0 <= tmp7 < ks1", 2)],
    ),
    "chained": (
        """\
        Traceback (most recent call last):
          File "a.py", line 1, in f
        KeyError: 'AOTI_DEVICE_KEY'

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "b.py", line 2, in g
        ValueError: no such device

        The above exception was the direct cause of the following exception:

        Traceback (most recent call last):
          File "c.py", line 3, in h
        RuntimeError: cannot load
        """,
        [
            ("python", "KeyError", 1, 3, "KeyError: 'AOTI_DEVICE_KEY'", 1),
            ("python", "ValueError", 7, 9, "ValueError: no such device", 1),
            ("python", "RuntimeError", 13, 15, "RuntimeError: cannot load", 1),
        ],
    ),
    "cut at the start": (
        """\
            return runner.run(flat)
          File "/venv/torch/export/pt2_archive/_package.py", line 735, in __call__
            flat = self.loader.boxed_run(flat)
        torch.AcceleratorError: CUDA error: device-side assert triggered
        """,
        [("python", "AcceleratorError", 4, 4, "torch.AcceleratorError: CUDA error", 1)],
    ),
    "cut at the end": (
        """\
        starting
        Traceback (most recent call last):
          File "/opt/venv/bin/compile", line 8, in <module>
            sys.exit(main())
        """,
        [("python", "truncated", 2, 4, "Traceback", 1)],
    ),
    "notebook": (
        """\
        ---------------------------------------------------------------------------
        RuntimeError                              Traceback (most recent call last)
        Cell In[2], line 1
        ----> 1 t = torch.rand(1, 9, 1024, 1024).to('cuda')

        File /venv/torch/x.py:604, in rebind(shape_env, n, result)
            603     pass
        --> 604 if u1.node.hint is not None:

        RuntimeError: CUDA error: an illegal memory access was encountered
        CUDA kernel errors might be asynchronously reported at some other API call.
        """,
        [("python", "RuntimeError", 2, 11, "RuntimeError: CUDA error: an illegal", 1)],
    ),
    "exception group": (
        """\
          + Exception Group Traceback (most recent call last):
          |   File "<stdin>", line 1, in <module>
          | ExceptionGroup: two (2 sub-exceptions)
          +-+---------------- 1 ----------------
            | Traceback (most recent call last):
            |   File "a.py", line 3, in f
            | ValueError: first
            +---------------- 2 ----------------
            | KeyError: 'second'
            +------------------------------------
        """,
        [
            ("python", "ExceptionGroup", 1, 4, "ExceptionGroup: two", 1),
            ("python", "ValueError", 5, 7, "ValueError: first", 1),
            ("python", "KeyError", 9, 9, "KeyError: 'second'", 0),
        ],
    ),
    "syntax error": (
        """\
        Traceback (most recent call last):
          File "<stdin>", line 1, in <module>
          File "/app/model.py", line 3
            def f(:
                  ^
        SyntaxError: invalid syntax
        """,
        [("python", "SyntaxError", 1, 6, "SyntaxError: invalid syntax", 2)],
    ),
    "indented": (
        """\
        worker says:
            Traceback (most recent call last):
              File "a.py", line 3, in f
            ValueError: bad
        """,
        [("python", "ValueError", 2, 4, "ValueError: bad", 1)],
    ),
    "faulthandler": (
        """\
        Fatal Python error: Segmentation fault

        Current thread 0x00007f2a (most recent call first):
          File "/venv/torch/_package.py", line 743 in __call__
          File "/app/run.py", line 11 in <module>

        Extension modules: numpy, torch._C (total: 40)
        Segmentation fault (core dumped)
        """,
        [
            ("signal", "SIGSEGV", 1, 7, "Fatal Python error: Segmentation fault", 2),
            ("signal", "SIGSEGV", 8, 8, "Segmentation fault (core dumped)", 0),
        ],
    ),
    "terminate": (
        """\
        Error: CUDA error: invalid argument
        terminate called after throwing an instance of 'std::runtime_error'
          what():  create_func_( &container_handle_) API call failed at model_container_runner.cpp, line 49
        ./run.sh: line 34:  1930 Aborted                 (core dumped) ./aoti_run model.so
        """,
        [
            ("line", "", 1, 1, "Error: CUDA error: invalid argument", 0),
            ("terminate", "std::runtime_error", 2, 3, "terminate called", 0),
            ("signal", "SIGABRT", 4, 4, "./run.sh: line 34:", 0),
        ],
    ),
    "libc++abi": (
        "libc++abi: terminating due to uncaught exception of type std::invalid_argument: invalid encoder line: \n"
        "run.sh: line 32: 46719 Abort trap: 6           ./aoti_run model.so\n",
        [
            ("terminate", "std::invalid_argument", 1, 1, "libc++abi: terminating", 0),
            ("signal", "SIGABRT", 2, 2, "run.sh: line 32", 0),
        ],
    ),
    "gtest": (
        'C++ exception with description "CUDA error: no kernel image is available for execution on the device" thrown\n',
        [("c10", "", 1, 1, "C++ exception with description", 0)],
    ),
    "check failed": (
        "F1120 12:00:00.000000   123 model.cc:45] Check failed: ptr != nullptr (null vs. 0)\n"
        "*** Check failure stack trace: ***\n    @     0x7f1  google::LogMessage::Fail()\n",
        [("glog", "", 1, 1, "Check failed: ptr", 0), ("glog", "", 2, 2, "*** Check failure", 0)],
    ),
    "heap": ("free(): invalid pointer\nAborted\n", [("heap", "SIGABRT", 1, 1, "free()", 0), ("signal", "SIGABRT", 2, 2, "Aborted", 0)]),
    "gcc": (
        """\
        /tmp/torchinductor_me/ct/c3.cpp: In function 'void f()':
        /tmp/torchinductor_me/ct/c3.cpp:470:39: error: 's1' was not declared in this scope; did you mean 'y1'?
          470 |     const int64_t int_array_0[] = {2L*s1, };
              |                                       ^~
              |                                       y1
        ninja: build stopped: subcommand failed.
        """,
        [
            ("compiler", "", 2, 5, "/tmp/torchinductor_me/ct/c3.cpp:470:39: error", 0),
            ("compiler", "", 6, 6, "ninja: build stopped", 0),
        ],
    ),
    "msvc": ("C:\\x\\c3.cpp(12): error C2065: 's1': undeclared identifier\n", [("compiler", "", 1, 1, "C:\\x\\c3.cpp(12)", 0)]),
    "nvcc": ("nvcc fatal   : Unsupported gpu architecture 'compute_120'\n", [("compiler", "", 1, 1, "nvcc fatal", 0)]),
    "ptxas": ("ptxas fatal   : Value 'sm_90a' is not defined for option 'gpu-name'\n", [("compiler", "", 1, 1, "ptxas", 0)]),
    "gnu ld": (
        """\
        /usr/bin/ld: cannot find -lcuda: No such file or directory
        collect2: error: ld returned 1 exit status
        """,
        [("linker", "", 1, 1, "/usr/bin/ld: cannot find", 0), ("linker", "", 2, 2, "collect2", 0)],
    ),
    "undefined reference": (
        "/usr/bin/ld: /tmp/c.o: in function `f':\nc.cpp:(.text+0x3): undefined reference to `aoti_torch_foo'\n",
        [("linker", "", 2, 2, "c.cpp:(.text+0x3): undefined reference", 0)],
    ),
    "lld": (
        "ld.lld: error: undefined symbol: aoti_torch_foo\n>>> referenced by c.cpp:12\n",
        [("linker", "", 1, 2, "ld.lld: error: undefined symbol", 0)],
    ),
    "nm": (
        "/Applications/Xcode.app/usr/bin/nm: error: foo.o: truncated or malformed object (symbol table at offset 2147484040)\n",
        [("linker", "", 1, 1, "/Applications", 0)],
    ),
    "loader": (
        "./server: symbol lookup error: ./libmodel.so: undefined symbol: aoti_torch_x\n",
        [("loader", "", 1, 1, "./server: symbol lookup error", 0)],
    ),
    "shared library": (
        "./server: error while loading shared libraries: libtorch.so: cannot open shared object file: No such file\n",
        [("loader", "", 1, 1, "./server: error while", 0)],
    ),
    "dyld": (
        """\
        dyld[8590]: Library not loaded: /opt/homebrew/opt/libomp/lib/libomp.dylib
          Referenced from: <E04D3A6F> /Users/me/lib/libtorchao.dylib
          Reason: tried: '/opt/homebrew/opt/libomp/lib/libomp.dylib' (no such file)
        """,
        [("loader", "", 1, 3, "dyld[8590]: Library not loaded", 0)],
    ),
    "gdb": (
        """\
        Program received signal SIGSEGV, Segmentation fault.
        0x00007fffe511d3ed in cpp_fused_0 ()
        (gdb) bt
        #0  0x00007fffe511d3ed in cpp_fused_0._omp_fn.0 () at /tmp/a/c.kernel.cpp:48
        #1  0x00007fffe5110000 in torch::aot_inductor::AOTInductorModel::run_impl ()
           from /tmp/a/c.wrapper.so
        #2  0x00007fffe5100000 in main ()
        """,
        [("debugger", "SIGSEGV", 1, 7, "Program received signal SIGSEGV", 3)],
    ),
    "gdb frames alone": (
        "(gdb) bt\n#0  0x00007f4e47775605 in raise () from /lib64/libc.so.6\n#1  0x00007f4e4775e8a2 in abort () from /lib64/libc.so.6\n",
        [("debugger", "", 2, 3, "#0  0x00007f4e47775605 in raise", 2)],
    ),
    "lldb": (
        """\
        Process 50194 stopped
        * thread #1, queue = 'com.apple.main-thread', stop reason = EXC_BAD_ACCESS (code=257, address=0x15236ddfe)
            frame #0: 0x0000000192d85464 libBLAS.dylib`___lldb_unnamed_symbol5089 + 244
        libBLAS.dylib`___lldb_unnamed_symbol5089:
        ->  0x192d85464 <+244>:                                  ; unknown opcode
        """,
        [("debugger", "SIGSEGV", 2, 5, "* thread #1", 1)],
    ),
    "address sanitizer": (
        """\
        =================================================================
        ==4242==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602 at pc 0x4
        READ of size 4 at 0x602 thread T0
            #0 0x4f in my_op(at::Tensor const&) /app/op.cpp:12
            #1 0x5f in main /app/main.cpp:3
        SUMMARY: AddressSanitizer: heap-buffer-overflow /app/op.cpp:12 in my_op
        ==4242==ABORTING
        """,
        [("sanitizer", "AddressSanitizer heap-buffer-overflow", 2, 6, "==4242==ERROR", 2)],
    ),
    "leak sanitizer": (
        """\
        ==52758==ERROR: LeakSanitizer: detected memory leaks

        Direct leak of 526 byte(s) in 7 object(s) allocated from:
            #0 0x775e876120b5 in operator new[](unsigned long)
            #1 0x775e7eee20bc in torch::inductor::AOTIModelPackageLoader::AOTIModelPackageLoader(bool)

        SUMMARY: LeakSanitizer: 526 byte(s) leaked in 7 allocation(s).
        """,
        [("sanitizer", "LeakSanitizer detected", 1, 7, "==52758==ERROR", 2)],
    ),
    "undefined behaviour": (
        "/app/op.cpp:12:3: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type 'int'\n",
        [("sanitizer", "UBSan", 1, 1, "/app/op.cpp:12:3: runtime error", 0)],
    ),
    "compute-sanitizer": (
        """\
        ========= COMPUTE-SANITIZER
        ========= Invalid __global__ read of size 4 bytes
        =========     at triton_poi_fused_add_0+0x1b0
        =========     by thread (0,0,0) in block (8,0,0)
        =========     Address 0x7f000 is out of bounds
        ========= ERROR SUMMARY: 1 error
        """,
        [("sanitizer", "compute-sanitizer", 2, 5, "========= Invalid __global__ read", 1)],
    ),
    "device assertions": (
        "".join(
            f"/tmp/t/ct5.py:32: unknown: block: [0,0,0], thread: [{at},0,0] Assertion `index out of bounds: 0 <= tmp4 < 40` failed.\n"
            for at in range(32)
        ),
        [("assert", "device", 1, 32, "/tmp/t/ct5.py:32: unknown: block", 0)],
    ),
    "glibc's assertion": (
        "server: model.cpp:12: int main(): Assertion `x > 0' failed.\nAborted (core dumped)\n",
        [("assert", "SIGABRT", 1, 1, "server: model.cpp:12", 0), ("signal", "SIGABRT", 2, 2, "Aborted", 0)],
    ),
    "kernel": (
        """\
        [12345.678901] python[4242]: segfault at 10 ip 00007f sp 00007f error 4 in c.wrapper.so[7f0+1000]
        [12346.000000] traps: server[77] trap invalid opcode ip:7f sp:7f error:0 in c.wrapper.so[7f0+1000]
        [12347.000000] Out of memory: Killed process 4242 (python) total-vm:100kB
        [12348.000000] NVRM: Xid (PCI:0000:01:00): 31, pid=42, name=python, MMU Fault
        """,
        [
            ("kernel", "SIGSEGV", 1, 1, "python[4242]: segfault", 0),
            ("kernel", "SIGILL", 2, 2, "traps: server[77] trap invalid opcode", 0),
            ("kernel", "oom", 3, 3, "Out of memory: Killed process", 0),
            ("kernel", "Xid", 4, 4, "NVRM: Xid", 0),
        ],
    ),
    "triton": (
        """\
        E1120 12:00:00.000000 1 model_repository_manager.cc:580] "failed to load 'mlp' version 1: Internal: failed to load model 'mlp': x"
        +-------+---------+------------------------------------------------+
        | Model | Version | Status                                         |
        +-------+---------+------------------------------------------------+
        | mlp   | 1       | UNAVAILABLE: Internal: failed to load model    |
        |       |         | 'mlp': could not open                          |
        +-------+---------+------------------------------------------------+
        """,
        [
            ("triton", "", 1, 1, "Internal: failed to load model 'mlp': x", 0),
            ("triton", "", 5, 6, "UNAVAILABLE: Internal: failed to load model 'mlp': could not open", 0),
        ],
    ),
    "java": (
        "java.lang.RuntimeException: run_func_( container_handle_) API call failed at model_container_runner.cpp, line 144\n"
        "\tat org.bytedeco.pytorch.AOTIModelPackageLoader.run(Native Method)\n",
        [("python", "RuntimeException", 1, 2, "java.lang.RuntimeException: run_func_", 0)],
    ),
    "logger": (
        "2026-01-01 10:00:00,123 - server - ERROR - request 7 failed: bad tensor\n",
        [("line", "", 1, 1, "request 7 failed: bad tensor", 0)],
    ),
}  # fmt: skip


@every("name", CASES)
def test_form(name):
    text, expected = CASES[name]
    reading = read(textwrap.dedent(text), patterns=())
    found = [(e.form, e.kind, e.first, e.last, e.text, len(e.frames)) for e in reading.events]
    assert [event[:4] for event in found] == [event[:4] for event in expected]
    for (*_, text, frames), (*_, start, count) in zip(found, expected, strict=True):
        assert text.startswith(start)
        assert frames == count


HARMLESS = (
    "0 errors, 0 warnings\nall tests passed, no failures\n",
    "INFO error_rate=0.1 errors: 0\n",
    "Process finished with exit code 0\n",
    "INFO loaded error handlers; signal handlers installed\n",
    "2026-01-01 10:00:00 INFO RuntimeErrorHandler registered\n",
    "loading model... done\nEpoch 1: 100%|####| 10/10\n",
    "[12345.6] usb 1-1: new high-speed USB device number 4\n",
    "model.cpp:12:3: warning: unused variable 'x'\nmodel.cpp:12:3: note: declared here\n",
)


@pytest.mark.parametrize("text", HARMLESS)
def test_no_failure(text):
    reading = read(text)
    assert [event for event in reading.events if event.level == "error"] == []
    assert reading.matches == ()


def test_frames_are_innermost_first():
    (event,) = read(CASES["script"][0], patterns=()).events
    assert event.frames[0] == "__call__ (/venv/torch/_inductor/package/package.py:743)"
    (event,) = read(CASES["c10 alone"][0], patterns=()).events
    assert event.frames[1] == "cpp_fused_embedding_mul_0"


def test_a_long_stack_is_one_event():
    calls = "".join(f'  File "/app/m.py", line {at}, in call_{at}\n    call_{at + 1}()\n' for at in range(150))
    reading = read(f"Traceback (most recent call last):\n{calls}RecursionError: too deep\n", patterns=())
    assert [(event.kind, event.last) for event in reading.events] == [("RecursionError", 302)]
