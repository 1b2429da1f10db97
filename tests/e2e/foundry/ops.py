"""The operator libraries.

One in C++, whose ``zoo::misbehave`` has a switch that is read from ZOO_MODE at each call (``zoo::behave`` has none); one
in Python, ``zoopy``, whose operator is given as text; and ``zoofine``, in Python, whose operators look odd and are not.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

CPP = r"""
#include <torch/library.h>
#include <ATen/ATen.h>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

static std::vector<void*> kept;

__attribute__((noinline)) static int dive(volatile char* above, int n) {
  volatile char frame[4096];
  frame[0] = above[0];
  return dive(frame, n + 1) + frame[0];
}

at::Tensor misbehave(const at::Tensor& x) {
  const char* env = std::getenv("ZOO_MODE");
  std::string mode = env ? env : "";
  if (mode == "abort") std::abort();
  if (mode == "segv") { volatile int* p = nullptr; *p = 1; }
  if (mode == "fpe") { std::raise(SIGFPE); }
  if (mode == "ill") { __builtin_trap(); }
  if (mode == "bus") { std::raise(SIGBUS); }
  if (mode == "stack") { volatile char c = 0; return at::full_like(x, dive(&c, 0)); }
  if (mode == "heap") { for (int i = 0; i < 64; ++i) { char* volatile p = (char*)std::malloc(2000); std::memset(p, 0x41, 4096); std::free(p); } }
  if (mode == "double_free") { void* volatile p = std::malloc(100000); std::free(p); std::free(p); }
  if (mode == "terminate") { []() noexcept { throw std::runtime_error("thrown where none may be"); }(); }
  if (mode == "throw_int") throw 42;
  if (mode == "throw_std") throw std::out_of_range("the index is beyond the vocabulary");
  if (mode == "torch_check") TORCH_CHECK(false, "zoo::misbehave: the vocabulary file is missing");
  if (mode == "spin") { volatile bool on = true; while (on) {} }
  if (mode == "sleep") { for (;;) sleep(1); }
  if (mode == "exit0") std::exit(0);
  if (mode == "exit3") std::exit(3);
  if (mode == "exit0_raw") _exit(0);
  if (mode == "sigkill") { kill(getpid(), SIGKILL); pause(); }
  if (mode == "sigterm") { kill(getpid(), SIGTERM); pause(); }
  if (mode == "leak") { size_t n = 32u << 20; void* p = std::malloc(n); std::memset(p, 1, n); kept.push_back(p); }
  if (mode == "undefined") return at::Tensor();
  if (mode == "wrong_shape") return at::ones({2, 16}, x.options());
  if (mode == "wrong_dtype") return x.to(at::kDouble);
  if (mode == "wrong_stride") return (x * 2).t().contiguous().t();
  if (mode == "mutates") { const_cast<at::Tensor&>(x).mul_(3); return x * 2; }
  if (mode == "returns_input") return x;
  if (mode == "nan") return at::full_like(x, std::nan(""));
  if (mode == "rand") return at::rand_like(x);
  if (mode == "bad_alloc") { return at::empty({1LL << 50}, x.options()); }
  return x * 2;
}

at::Tensor misbehave_meta(const at::Tensor& x) { return at::empty_like(x); }
at::Tensor behave(const at::Tensor& x) { return at::sigmoid(x); }

TORCH_LIBRARY(zoo, m) {
  m.def("misbehave(Tensor x) -> Tensor");
  m.def("behave(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(zoo, CPU, m) {
  m.impl("misbehave", &misbehave);
  m.impl("behave", &behave);
}
TORCH_LIBRARY_IMPL(zoo, Meta, m) {
  m.impl("misbehave", &misbehave_meta);
  m.impl("behave", &misbehave_meta);
}
"""

FINE = """
import torch

LIB = torch.library.Library("zoofine", "DEF")
COUNTS = []


def op(schema, fake, tags=()):
    def register(real):
        name = schema.partition("(")[0]
        LIB.define(schema, tags=tags)
        LIB.impl(name, real, "CPU")
        torch.library.register_fake("zoofine::" + name, fake, lib=LIB)
        return real

    return register


def like(x, *_):
    return torch.empty_like(x)


@op(
    "mix(Tensor x, Tensor[] parts, Tensor?[] more, Tensor? bias, SymInt rows, float factor, str mode, ScalarType dtype, "
    "SymInt[] sizes, bool flag, Scalar alpha=1, *, Device? device=None, MemoryFormat? layout=None) -> Tensor",
    like,
)
def mix(x, parts, more, bias, rows, factor, mode, dtype, sizes, flag, alpha=1, device=None, layout=None):
    assert (mode, dtype, flag, bias, list(sizes)) == ("sum", torch.float16, True, None, [x.shape[0], 4]), sizes
    return x * factor * alpha + rows + sum(parts) + sum(one for one in more if one is not None)


@op("halves(Tensor x) -> (Tensor, Tensor)", lambda x: (x.new_empty(8, x.shape[0]), torch.empty_like(x)))
def halves(x):
    return x[:, :8].t().contiguous(), x + 1


@op("rows(Tensor x) -> Tensor[]", lambda x: [x.new_empty(16) for _ in range(2)])
def rows(x):
    return [x[at].clone() for at in range(2)]


@op("add_one_(Tensor(a!) x) -> ()", lambda x: None)
def add_one_(x):
    x.add_(1)


@op(
    "positive(Tensor x) -> Tensor",
    lambda x: x.new_empty(torch.library.get_ctx().new_dynamic_size()),
)
def positive(x):
    return x[x > 0]


@op("noise(Tensor x) -> Tensor", like, tags=(torch.Tag.nondeterministic_seeded,))
def noise(x):
    return torch.rand_like(x)


@op("say(Tensor x, str text) -> Tensor", like)
def say(x, text):
    COUNTS.append(text)
    print(text, len(COUNTS), flush=True)
    return x + 1
"""

PYTHON = """
import torch

LIB = torch.library.Library("zoopy", "DEF")
LIB.define("{schema}")


def fake(x, factor, *rest):
    return torch.empty_like(x)


def real(x, factor, *rest):
    {body}


LIB.impl("scale", real, "{key}")
LIB.impl("scale", fake, "Meta")
"""


def python_op(
    *, schema: str = "scale(Tensor x, float factor) -> Tensor", body: str = "return x * factor", key: str = "CPU"
) -> str:
    """A setup file that registers ``zoopy::scale``; the defaults are the operator as it was at export."""
    return PYTHON.format(schema=schema, body=body, key=key)


def cpp_op(library: Path, mode: str) -> str:
    """A setup file that loads the C++ library and sets its switch."""
    return f'import os\n\nimport torch\n\nos.environ["ZOO_MODE"] = {mode!r}\ntorch.ops.load_library({str(library)!r})\n'


def build_cpp(library: Path) -> None:
    """Compile the C++ library to ``library`` with one plain compiler call."""
    import torch

    compiler = shutil.which("g++")
    assert compiler is not None
    home = Path(torch.__file__).parent
    source = library.with_suffix(".cpp")
    source.write_text(CPP)
    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    includes = [f"-I{home / 'include'}", f"-I{home / 'include/torch/csrc/api/include'}"]
    command = [compiler, "-shared", "-fPIC", "-O1", "-std=c++20", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", *includes]
    command += [str(source), "-o", str(library), f"-L{home / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10"]
    subprocess.run(command, check=True, capture_output=True, text=True)
