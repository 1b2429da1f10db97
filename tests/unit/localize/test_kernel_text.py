"""Whether a kernel reads what a buffer held that it is given in place."""

from __future__ import annotations

import pytest

from aotidoctor.localize.call_timeline import stores_first

CPP = """\
extern "C"  void  cpp_fused_native_layer_norm_0(float* in_out_ptr0,
                       const float* in_ptr0,
                       const int64_t ks0)
{{
    {alias}
    #pragma omp parallel
    {{
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(32L*ks0); x0+=static_cast<int64_t>(1L))
        {{
            {first}
            auto tmp7 = in_out_ptr0[static_cast<int64_t>(x0)];
        }}
    }}
}}
"""
TRITON = """\
async_compile.triton('triton_poi_fused_relu_0', '''
@triton.jit
def triton_poi_fused_relu_0(in_out_ptr0, in_ptr0, xnumel, XBLOCK : tl.constexpr):
    xmask = xindex < xnumel
    {first}
    tl.store(in_out_ptr0 + (x2), tmp1, xmask)
"""


@pytest.mark.parametrize(
    ("alias", "first", "overwritten"),
    [
        ("", "tmp3.store(in_out_ptr0 + static_cast<int64_t>(x0));", True),
        ("", "in_out_ptr0[static_cast<int64_t>(x0)] = static_cast<float>(tmp_acc0);", True),
        ("auto out_ptr0 = in_out_ptr0;", "out_ptr0[static_cast<int64_t>(x0)] = tmp_acc0;", True),
        ("auto out_ptr0 = in_out_ptr0;", "tmp5.store(out_ptr0 + static_cast<int64_t>(x0));", True),
        ("", "auto tmp0 = at::vec::Vectorized<float>::loadu(in_out_ptr0 + static_cast<int64_t>(x0));", False),
        ("", "if (in_out_ptr0[x0] == 3) continue;", False),
        ("", "atomic_add(&in_out_ptr0[x0], tmp1);", False),
        ("auto out_ptr0 = in_out_ptr0;", "auto tmp1 = out_ptr0[x0];", False),
        ("", "out_ptr7[x0] = tmp1;", False),
    ],
)
def test_cpp(alias, first, overwritten):
    assert stores_first(CPP.format(alias=alias, first=first), "in_out_ptr0", triton=False) is overwritten


@pytest.mark.parametrize(
    ("first", "overwritten"),
    [("tmp0 = tl.load(in_out_ptr0 + (x2), xmask)", False), ("tmp0 = tl.load(in_ptr0 + (x2), xmask)", True)],
)
def test_triton(first, overwritten):
    assert stores_first(TRITON.format(first=first), "in_out_ptr0", triton=True) is overwritten


def test_a_parameter_that_is_not_used_is_not_overwritten():
    assert not stores_first(CPP.format(alias="", first=""), "in_out_ptr9", triton=False)
