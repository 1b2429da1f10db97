"""Faults that show while running or in the output."""

from __future__ import annotations

import shutil
from pathlib import Path

from foundry.cases import EITHER, Case, Kit, called, given, made
from foundry.ops import python_op


def _torch():
    import torch

    return torch


def _put(**changes):
    """The integers model with some arguments replaced by what the functions make of them."""

    def change(base, rows, values, divisor):
        named = {"base": base, "rows": rows, "values": values, "divisor": divisor}
        return tuple(changes[name](value) if name in changes else value for name, value in named.items())

    return change


def _with(tensor, index: int, value):
    tensor = tensor.clone()
    tensor.view(-1)[index] = value
    return tensor


MODE = """
import os

import torch

os.environ["ZOO_MODE"] = "{mode}"
torch.ops.load_library("{library}")
"""


# What a stand-in for the operator heals.
HEALED = frozenset(
    f"custom-op-{ending}" for ending in ("crash", "exception", "exits", "hang", "bad-return", "fake-kernel")
)


def _op(mode: str, cause: str, **more) -> Case:
    """The C++ operator in one of its modes."""
    more.setdefault("proof", cause in HEALED)
    return called(f"op_{mode}", "misbehave", cause, "zoo::misbehave", setup=MODE.replace("{mode}", mode), **more)


def _second(mode: str, cause: str, **more) -> Case:
    """The same in a package with two operators."""
    more.setdefault("proof", cause in HEALED)
    return called(f"op_two_{mode}", "twoops", cause, "zoo::misbehave", setup=MODE.replace("{mode}", mode), **more)


def _plain_program(kit: Kit, where: Path) -> Path:
    """The package, and beside it a program that has an operator of PyTorch where the package calls its own."""
    torch = _torch()

    class Plain(torch.nn.Module):
        def forward(self, x):
            return ((x + 1) * 2) * 2 + x

    args, _ = kit.call("misbehave")
    torch.export.save(torch.export.export(Plain(), args), where / "plain.pt2")
    return Path(shutil.copy(kit.package("misbehave"), where / "model.pt2"))


def _py(name: str, cause: str, body: str, **more) -> Case:
    more.setdefault("proof", cause in HEALED)
    return called(f"op_py_{name}", "scale", cause, "zoopy::scale", setup=python_op(body=body), **more)


REFERENCE_CPP = ("--reference", "{exported:misbehave}")
REFERENCE_PYTHON = ("--reference", "{exported:scale}")

LOG = "cpp_fused_add_log_0 (aten.log)"

DATA_CASES: tuple[Case, ...] = (
    given("index_embedding_100", "embedding", lambda ids: (_with(ids, 3, 100),), "index-out-of-range", "args[0]"),
    given("index_embedding_huge", "embedding", lambda ids: (_with(ids, 0, 100000),), "index-out-of-range", "args[0]"),
    given("index_embedding_negative", "embedding", lambda ids: (_with(ids, 7, -101),), "index-out-of-range",
          "args[0]"),
    given("index_embedding_padding", "embedding", lambda ids: (_with(ids, 7, -1),), "index-out-of-range", "args[0]"),
    # Thrown out of a parallel loop: the process aborts.
    given("index_in_threads", "tokens", lambda ids: (_with(ids, 71, 503),), "index-out-of-range", "args[0]"),
    given("index_gather_negative", "gather", lambda x, index: (x, _with(index, 5, -1)), "index-out-of-range",
          "args[1]"),
    given("index_gather_16", "gather", lambda x, index: (x, _with(index, 5, 16)), "index-out-of-range", "args[1]"),
    given("index_put_5000", "integers", _put(rows=lambda rows: _with(rows, 2, 5000)), "index-out-of-range", "args[1]"),
    given("index_put_100", "integers", _put(rows=lambda rows: _with(rows, 7, 100)), "index-out-of-range", "args[1]"),
    given("index_keyword_100", "sentence", lambda x, *, ids: {"args": (x,), "kwargs": {"ids": _with(ids, 3, 100)}},
          "index-out-of-range", "kwargs['ids']"),
    given("index_through_buffer", "buffered", lambda ids, lengths: (_with(ids, 4, 60), lengths), "index-out-of-range",
          "args[0]"),
    given("index_through_sum", "buffered", lambda ids, lengths: (ids, lengths * 5), "index-out-of-range", "args[1]"),
    given("divide_by_zero", "integers", _put(divisor=lambda divisor: _with(divisor, 4, 0)), "integer-division",
          "args[3]"),
    given("divide_by_zeros", "integers", _put(divisor=lambda divisor: divisor * 0), "integer-division", "args[3]"),
    given("assert_above", "item", lambda x, n: (x, _torch().tensor(40)), "runtime-assert", "args[1]"),
    given("assert_below", "item", lambda x, n: (x, _torch().tensor(-3)), "runtime-assert", "args[1]"),
    given("nan_in_input", "pointwise", lambda x, y: (_with(x, 9, float("nan")), y), "input-nan", "args[0]"),
    given("inf_in_input", "pointwise", lambda x, y: (x, _with(y, 9, float("inf"))), "input-nan", "args[1]",
          exits=EITHER),
    given("bag_index_beyond", "bag", lambda ids, offsets: (_with(ids, 5, 20), offsets), "index-out-of-range", "args[0][5] = 20",
          proof=True),
    given("bag_index_negative", "bag", lambda ids, offsets: (_with(ids, 5, -1), offsets), "index-out-of-range",
          "args[0][5] = -1", proof=True),
    given("bag_first_offset", "bag", lambda ids, offsets: (ids, _with(offsets, 0, 1)), "index-out-of-range", "args[1][0] = 1",
          proof=True),
    given("bag_offsets_fall", "bag", lambda ids, offsets: (ids, _with(offsets, 1, 6)), "index-out-of-range", "args[1][2] = 4",
          proof=True),
    given("bag_offset_beyond", "bag", lambda ids, offsets: (ids, _with(offsets, 2, 9)), "index-out-of-range",
          "args[1][2] = 9", proof=True),
    given("inf_becomes_nan", "gelu", lambda x: (_with(x, 9, float("-inf")),), "input-nan", "args[0]", proof=True),
    given("nan_from_log_beside_inf", "numeric", lambda x, h: (_with(_with(x, 9, -1.0), 3, float("inf")), h), "nan-produced",
          LOG),
    given("nan_from_log", "numeric", lambda x, h: (_with(x, 9, -1.0), h), "nan-produced", LOG),
    given("nan_from_log_all", "numeric", lambda x, h: (-x, h), "nan-produced", LOG),
    given("inf_from_log", "numeric", lambda x, h: (_with(x, 9, 0.0), h), "nan-produced", LOG),
    given("overflow_half", "numeric", lambda x, h: (x, (h.float() * 2000).half()), "overflow",
          "aoti_torch_cpu_mm_out (aten.mm)"),
    given("memory_overflow", "cube", lambda x: (_torch().randn(3_000_000),), "out-of-memory", "args[0].shape[0]"),
    given("memory_too_much", "cube", lambda x: (_torch().randn(20_000),), "out-of-memory", "args[0].shape[0]"),
)  # fmt: skip

MODEL_CASES: tuple[Case, ...] = (
    called("random_dropout", "dropout", "nondeterministic", "aten.native_dropout", exits=EITHER, also=("train-mode",)),
    called("random_dropout_reference", "dropout", "nondeterministic", "aten.native_dropout",
           options=("--reference", "{exported:dropout}"), exits=EITHER, also=("train-mode",)),
    called("random_rand", "rand", "nondeterministic", "aten.rand", exits=EITHER),
    called("uninitialized", "empty", "uninitialized-read", "aten.empty", exits=EITHER, also=("nondeterministic",)),
    called("uninitialized_folded", "emptyfolded", "uninitialized-read", "aten.empty", exits=EITHER),
    called("train_batch_norm", "batchnorm", "train-mode", "batch_norm", exits=EITHER,
           options=("--reference", "{exported:batchnorm}")),
    called("wrong_decomposition", "wronggelu", "numeric-difference", "cpp_fused_add_gelu_mean_mul_0",
           options=("--reference", "{exported:wronggelu}"), slow=True),
    called("more_outputs_than_leaves", "rescaled", "output-spec", "result", proof=True),
    called("output_alias", "alias", "output-alias", "result[0], result[1]", exits=EITHER),
    called("input_mutation", "inplace", "input-mutation", "args[0]", exits=EITHER),
)  # fmt: skip

OP_CASES: tuple[Case, ...] = (
    _op("abort", "custom-op-crash"),
    made("op_abort_plain_reference", "misbehave", _plain_program, "custom-op-crash", "zoo::misbehave", proof=True,
         options=("--reference", "{where}/plain.pt2"), setup=MODE.replace("{mode}", "abort")),
    _op("segv", "custom-op-crash"),
    _op("fpe", "custom-op-crash"),
    _op("ill", "custom-op-crash"),
    _op("bus", "custom-op-crash"),
    _op("stack", "custom-op-crash"),
    _op("heap", "custom-op-crash"),
    _op("double_free", "custom-op-crash"),
    _op("terminate", "custom-op-crash"),
    _op("throw_int", "custom-op-exception"),
    _op("throw_std", "custom-op-exception"),
    _op("torch_check", "custom-op-exception"),
    _op("bad_alloc", "out-of-memory"),
    _op("spin", "custom-op-hang", options=("--timeout", "3"), exits=(1, 6), slow=True),
    _op("sleep", "custom-op-hang", options=("--timeout", "3"), exits=(1, 6), slow=True),
    _op("exit0", "custom-op-exits"),
    _op("exit3", "custom-op-exits"),
    _op("exit0_raw", "custom-op-exits"),
    called("op_sigkill", "misbehave", "killed", setup=MODE.replace("{mode}", "sigkill")),
    called("op_sigterm", "misbehave", "killed", setup=MODE.replace("{mode}", "sigterm")),
    _op("leak", "custom-op-leak", exits=EITHER),
    _op("undefined", "custom-op-bad-return"),
    _op("wrong_shape", "custom-op-fake-kernel"),
    # A dtype is nothing that the input checks look at; against the export it shows in the values only.
    _op("wrong_dtype", "custom-op-fake-kernel"),
    called("op_wrong_dtype_reference", "misbehave", "custom-op-fake-kernel", "zoo::misbehave", options=REFERENCE_CPP,
           setup=MODE.replace("{mode}", "wrong_dtype")),
    _op("wrong_stride", "custom-op-fake-kernel"),
    _op("nan", "nan-produced", proof=True),
    _op("rand", "nondeterministic"),
    _op("mutates", "custom-op-contract"),
    _op("returns_input", "custom-op-contract", exits=EITHER),
    _py("raises", "custom-op-exception", 'raise KeyError("vocab")'),
    _py("sys_exit", "custom-op-exception", "raise SystemExit(0)"),
    _py("os_exit", "custom-op-exits", "import os; os._exit(0)"),
    _py("hangs", "custom-op-hang", "import time; time.sleep(10000)", options=("--timeout", "3"), exits=(1, 6),
        slow=True),
    _py("returns_none", "custom-op-bad-return", "return None"),
    _py("returns_number", "custom-op-bad-return", "return 3.0"),
    _py("column_major", "custom-op-fake-kernel", "return (x * factor).t().contiguous().t()"),
    _py("smaller", "custom-op-fake-kernel", "return (x * factor)[:4].clone()"),
    _py("float64", "custom-op-fake-kernel", "return (x * factor).double()"),
    called("op_py_float64_reference", "scale", "custom-op-fake-kernel", "zoopy::scale", options=REFERENCE_PYTHON,
           setup=python_op(body="return (x * factor).double()")),
    _py("half", "custom-op-fake-kernel", "return (x * factor).half()"),
    _py("random", "nondeterministic", "return torch.rand_like(x)"),
    # The other operator of the package is called before and after, and returns what it should.
    _second("segv", "custom-op-crash"),
    _second("throw_std", "custom-op-exception"),
    _second("exit3", "custom-op-exits"),
    _second("undefined", "custom-op-bad-return"),
    _second("wrong_dtype", "custom-op-fake-kernel"),
    _second("nan", "nan-produced"),
    _second("rand", "nondeterministic"),
    _second("leak", "custom-op-leak", exits=EITHER),
    _second("mutates", "custom-op-contract"),
)  # fmt: skip

CASES: tuple[Case, ...] = (*DATA_CASES, *MODEL_CASES, *OP_CASES)
