"""Advice that fits: the kinds of a cause have sentences of their own; the library and the symbol are named."""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text
from aotidoctor.diagnosis.playbooks import find_playbook
from aotidoctor.logs.splits import demangle, kind_of, splits

SO = "/opt/venv/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so"
KINDS = {
    "codegen-bug": {
        "does-not-compile": "/tmp/torchinductor_me/c5/c5h3mnas.main.cpp:182:22: error: redeclaration of 'CUstream_st* stream0'",
        "stops": '  File "/venv/torch/_inductor/codegen/cpp.py", line 18, in generate\nIndexError: list index out of range',
        "wrong-numbers": "FAILED inductor/test_aot_inductor.py::T::test_m - AssertionError: Tensor-likes are not close!",
    },
    "abi-mismatch": {
        "libstdc++": "Error in dlopen: /lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /tmp/m.so)",
        "libc": "ImportError: /lib64/libm.so.6: version `GLIBC_2.29' not found (required by /opt/torch/lib/libtorch_cpu.so)",
        "entry-point": "[WARNING] Could not dlsym AOTInductorModelContainerGetConstantsBlobSize\nRuntimeError: Failed to get it. Otherwise consider rebuilding your model",
        "extension": f"ImportError: {SO}: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationE",
        "versions": "RuntimeError: Detected that PyTorch and TorchAudio were compiled with different CUDA versions.",
        "symbol": "RuntimeError: Error in dlopen: /tmp/m.wrapper.so: undefined symbol: _ZN2at4_ops5zeros4callE",
    },
    "gpu-arch-mismatch": {
        "torch": "UserWarning: sm_120 is not compatible with the current PyTorch installation.\nRuntimeError: CUDA error",
        "library": "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
    },
    "backend-unsupported": {
        "old-gpu": "torch._inductor.exc.GPUTooOldForTriton: Found Tesla P100 which is too old to be supported by the triton GPU compiler"
    },
    "custom-op-fake-kernel": {
        "of-torch": "AssertionError: expected size 4==4, stride 4==48 at dim=0\nError in op: torch.ops.aten._fft_r2c.default",
        "missing": "NotImplementedError: There was no fake impl registered for <CustomOpDef(mylib::scale)>.",
        "unnamed": "    assert_size_stride(buf4, (2, 2), (2, 1))\nAssertionError: expected size 2==2, stride 1==2 at dim=0",
    },
    "export-unsupported": {
        "outside-tensor": "RuntimeError: Constant lifted_0 is mutated in the forward method. Pls register it as buffer",
        "control-flow": "torch._dynamo.exc.UserError: Dynamic control flow is not supported at the moment.",
        "untraceable": "torch._dynamo.exc.Unsupported: call_function BuiltinVariable(iter)",
    },
    "cuda-launch": {
        "shared-memory": "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456",
        "registers": "RuntimeError: CUDA error: too many resources requested for launch",
        "configuration": "RuntimeError: CUDA error: invalid configuration argument",
    },
    "tmpdir": {
        "torch_extensions": "PermissionError: [Errno 13] Permission denied: '/home/me/.cache/torch_extensions/py310'",
        "triton": "PermissionError: [Errno 13] Permission denied: '/root/.triton/cache'",
        "inductor": "PermissionError: [Errno 13] Permission denied: '/tmp/torchinductor_root/aotriton'",
        "home": "PermissionError: [Errno 13] Permission denied: '/.cache'",
    },
    "cuda-graph-capture": {
        "operator": "RuntimeError: operation not permitted when stream is capturing, in aten::nonzero"
    },
    "output-alias": {
        "overwritten": "RuntimeError: Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run."
    },
    "load-api": {
        "codecache": "AttributeError: module 'torch._inductor' has no attribute 'codecache'",
        "entry-point": "RuntimeError: No update_constant_buffer_from_cpu in .so! Consider rebuild your model with the latest AOTInductor.",
    },
    "unbacked-symint": {
        "float": "torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: Could not extract specialized float from data-dependent expression zuf0 (unhinted: zuf0).  (Size-like symbols: none)"
    },
    "index-out-of-range": {
        "select": "IndexError: select(): index 1 out of range for tensor of size [3, 1, 4] at dimension 1"
    },
    "pytree-class-missing": {
        "size": "NotImplementedError: No registered serialization name for <class 'torch.Size'> found. Please update your _register_pytree_node call"
    },
    "missing-library": {"openmp": "dyld[331]: Library not loaded: @rpath/libomp.dylib\ntorch"},
}
CASES = [(cause, kind, text) for cause, kinds in KINDS.items() for kind, text in kinds.items()]


@pytest.mark.parametrize(("cause", "kind", "text"), CASES, ids=[f"{cause}-{kind}" for cause, kind, _ in CASES])
def test_a_kind_has_its_own_sentences(cause, kind, text):
    findings, diagnoses, _ = classify_text(f"{text}\n".encode(), "log")
    first, playbook = diagnoses[0], find_playbook(cause)
    assert (first.cause, findings[0].facts.get("split")) == (cause, kind)
    (split,) = (one for one in splits() if (one.cause, one.kind) == (cause, kind))
    assert (split.title in ("", playbook.title)) or first.title != playbook.title
    assert "{" not in first.title + first.remedy.text
    assert "?" not in first.title


def test_the_sentences_of_the_kinds_differ():
    told = [(one.cause, one.title, one.remedy) for one in splits() if one.title or one.remedy]
    assert len(set(told)) == len(told) > 25


def test_every_kind_is_of_a_cause_that_has_a_playbook():
    assert all(find_playbook(one.cause) is not None for one in splits())
    told = {(one.cause, one.kind) for one in splits()}
    assert told >= {(cause, kind) for cause, kind, _ in CASES}
    # Advice for a log in which nothing is AOTInductor's stands last, after the kinds that the words tell.
    lasts = {one.cause: one.kind for one in splits()}
    assert {cause for cause, kind in told if kind == "elsewhere"} == {
        c for c, kind in lasts.items() if kind == "elsewhere"
    }
    assert len(told) == len(splits())


def test_the_library_and_the_symbol_are_named():
    findings, diagnoses, _ = classify_text(
        f"ImportError: {SO}: undefined symbol: _ZN3c105ErrorC2ENS_1E\n".encode(), "log"
    )
    assert findings[0].facts["library"] == "flash_attn"
    assert findings[0].facts["demangled"] == "c10::Error::Error"
    assert "flash_attn" in diagnoses[0].title
    assert "c10::Error::Error" in diagnoses[0].title


def test_a_cause_without_kinds_has_none():
    assert kind_of("out-of-memory", "CUDA out of memory") == {}


# What c++filt and undname say, without parameters.
@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcE", "c10::Error::Error"),
        ("_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEE", "at::_ops::zeros::call"),
        ("_ZNK3c1017SymbolicShapeMeta18init_is_contiguousEv", "c10::SymbolicShapeMeta::init_is_contiguous"),
        ("_ZTVN5torch2nn10LinearImplE", "vtable for torch::nn::LinearImpl"),
        ("_Z16aoti_torch_dtypeIN3c104HalfEEiv", "aoti_torch_dtype"),
        ("_ZN3c1012OperatorNameD1Ev", "c10::OperatorName::~OperatorName"),
        ("__ZN3c104impl8GPUTrace13gpuTraceStateE", "c10::impl::GPUTrace::gpuTraceState"),
        ("?torchInternalAssertFail@detail@c10@@YAXPEBD0I0AEBV?$basic_string", "c10::detail::torchInternalAssertFail"),
        ("aoti_torch_item_float32", "aoti_torch_item_float32"),
        ("_Z", "_Z"),
        ("_ZN99999E", "_ZN99999E"),
    ],
)
def test_mangled_names(symbol, name):
    assert demangle(symbol) == name


def test_mixed_devices_and_a_load_as_another_device_are_offered_together():
    text = "create_func_(&container_handle_, 1) API call failed\nError: CUDAGuardImpl initialized with non-CUDA DeviceType: cpu\n"
    _, diagnoses, _ = classify_text(text.encode(), "log")
    assert {one.cause for one in diagnoses} == {"load-device", "mixed-device"}
    _, diagnoses, _ = classify_text(b"Error: CUDAGuardImpl initialized with non-CUDA DeviceType: cpu\n", "log")
    assert [one.cause for one in diagnoses] == ["mixed-device"]


def traced(message, *frames, name="/home/me/model.py"):
    """A traceback of an export: the user's forward, and ``frames`` of torch below it."""
    places = ["/venv/torch/export/_trace.py", "/venv/torch/nn/modules/module.py", name, *frames]
    lines = [f'  File "{place}", line 12, in forward\n    code' for place in places]
    return "\n".join(["Traceback (most recent call last):", *lines, message, ""]).encode()


META = ("/venv/torch/_ops.py", "/venv/torch/_meta_registrations.py")
OBSERVED = """torch._dynamo.exc.Unsupported: Observed exception
  Explanation: Dynamo found no exception handler at the top-level compiled function when encountering an exception.

  Developer debug context: raised exception KeyError('missing')

from user code:
   File "/venv/torch/_dynamo/functional_export.py", line 232, in forward
    res = self._export_root(*args, **kwargs)
  File "/home/me/model.py", line 12, in forward"""
FALSE = """torch._dynamo.exc.Unsupported: Data-dependent assertion failed (cannot compile partial graph)
  Explanation: Dynamo has determined that it should not compile the partial graph.

  Developer debug context: value: ConstantVariable(bool: False)
"""


@pytest.mark.parametrize(
    ("log", "cause", "words"),
    [
        (traced("KeyError: 'missing'"), "export-unsupported", "itself raises KeyError: 'missing', model.py:12, in forward"),
        (traced("AssertionError: three rows are needed"), "export-unsupported", "itself raises AssertionError: three"),
        (traced(OBSERVED), "export-unsupported", "itself raises KeyError('missing'), model.py:12"),
        (traced(FALSE), "model-error", "model.py:12, in forward: an assertion does not hold"),
        (traced("RuntimeError: shape '[7, -1]' is invalid for input of size 12", *META), "model-error", "model.py:12, in forward: shape '[7, -1]'"),
        (traced("IndexError: index 5 is out of bounds for dimension 0 with size 3", *META), "model-error", "model.py:12, in forward: index 5 is out"),
        (traced("RuntimeError: Given groups=1, weight of size [4, 3, 3, 3], expected input[1, 5, 8, 8] to have 3 channels, but got 5 channels instead", *META), "model-error", "model.py:12, in forward: Given groups=1"),
    ],
)  # fmt: skip
def test_an_error_of_the_model_is_not_the_exporters(log, cause, words):
    _, diagnoses, _ = classify_text(log, "log")
    assert (diagnoses[0].cause, diagnoses[0].confidence >= 0.6) == (cause, True)
    assert words in diagnoses[0].title
    assert "strict=False" not in diagnoses[0].remedy.text
    assert diagnoses[0].remedy.command.startswith("model(*args)")


@pytest.mark.parametrize(
    "log",
    [
        # Not the model's file; and a size that only an export has.
        traced("KeyError: 'missing'", "/venv/torch/_dynamo/symbolic_convert.py"),
        traced("KeyError: 'missing'", name="/venv/lib/python3.11/site-packages/transformers/models/t5.py"),
        traced("RuntimeError: shape '[u0, -1]' is invalid for input of size 12", *META),
    ],
)
def test_an_error_below_torch_is_not_the_models_own(log):
    _, diagnoses, _ = classify_text(log, "log")
    assert not diagnoses or not diagnoses[0].remedy.command.startswith("model(*args)")
