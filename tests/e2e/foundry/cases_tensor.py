"""Faults of single tensors: dtype, rank, dims, strides, layout, device, lazy bits, order, aliasing."""

from __future__ import annotations

from foundry.cases import EITHER, WARNS, Case, given


def _torch():
    import torch

    return torch


def _dtype(dtype: str):
    return lambda x, y: (x, y.to(getattr(_torch(), dtype)))


def _ids_as(dtype: str):
    return lambda ids: (ids.to(getattr(_torch(), dtype)),)


def _fill(dtype: str):
    return lambda x, mask, fill: (x, mask, fill.to(getattr(_torch(), dtype)))


def _mask(dtype: str):
    return lambda x, mask, fill: (x, mask.to(getattr(_torch(), dtype)), fill)


DTYPE_CASES: tuple[Case, ...] = (
    given("dtype_float64", "pointwise", _dtype("float64"), "input-dtype", "args[1]"),
    given("dtype_float16", "pointwise", _dtype("float16"), "input-dtype", "args[1]"),
    given("dtype_bfloat16", "pointwise", _dtype("bfloat16"), "input-dtype", "args[1]"),
    given("dtype_int32", "pointwise", _dtype("int32"), "input-dtype", "args[1]"),
    given("dtype_int64", "pointwise", _dtype("int64"), "input-dtype", "args[1]"),
    given("dtype_uint8", "pointwise", _dtype("uint8"), "input-dtype", "args[1]"),
    given("dtype_bool", "pointwise", _dtype("bool"), "input-dtype", "args[1]"),
    given("dtype_complex64", "pointwise", lambda x, y: (x.to(_torch().complex64), y), "input-dtype", "args[0]"),
    given("dtype_both_float64", "pointwise", lambda x, y: (x.double(), y.double()), "input-dtype", "args[0]"),
    given("dtype_float32_for_complex", "complex", lambda z: (z.real.contiguous(),), "input-dtype", "args[0]"),
    given("dtype_complex128", "complex", lambda z: (z.to(_torch().complex128),), "input-dtype", "args[0]",
          exits=EITHER),  # an extern kernel takes the tensor as it is
    given("dtype_float32_for_half", "numeric", lambda x, h: (x, h.float()), "input-dtype", "args[1]"),
    given("dtype_bfloat16_for_half", "numeric", lambda x, h: (x, h.bfloat16()), "input-dtype", "args[1]"),
    given("dtype_int32_ids", "embedding", _ids_as("int32"), "input-dtype", "args[0]"),
    given("dtype_int32_zero_ids", "embedding", lambda ids: (_torch().zeros(8, dtype=_torch().int32),), "input-dtype",
          "args[0]"),
    given("dtype_float_ids", "embedding", _ids_as("float32"), "input-dtype", "args[0]"),
    given("dtype_uint8_ids", "embedding", _ids_as("uint8"), "input-dtype", "args[0]"),
    given("dtype_double_ids", "embedding", _ids_as("float64"), "input-dtype", "args[0]"),
    given("dtype_float_mask", "masked", _mask("float32"), "input-dtype", "args[1]"),
    given("dtype_int64_mask", "masked", _mask("int64"), "input-dtype", "args[1]"),
    given("dtype_uint8_mask_255", "masked", lambda x, mask, fill: (x, mask.to(_torch().uint8) * 255, fill),
          "input-dtype", "args[1]", exits=EITHER),
    given("dtype_scalar_float64", "masked", _fill("float64"), "input-dtype", "args[2]"),
    given("dtype_scalar_int64", "masked", _fill("int64"), "input-dtype", "args[2]"),
    given("dtype_scalar_int32", "masked", _fill("int32"), "input-dtype", "args[2]"),
    given("dtype_in_dict", "nested", lambda x, o, p: (x, {"a": o["a"].double(), "b": o["b"]}, p), "input-dtype",
          "args[1]['a']"),
    given("dtype_in_list", "nested", lambda x, o, p: (x, o, [p[0], p[1].half()]), "input-dtype", "args[2][1]"),
    given("dtype_in_kwarg", "kwargs", lambda x, scale, bias: {"args": (x,), "kwargs": {
        "scale": scale.double(), "bias": bias}}, "input-dtype", "kwargs['scale']"),
    given("dtype_int32_index", "gather", lambda x, index: (x, index.int()), "input-dtype", "args[1]"),
    given("dtype_int32_divisor", "integers", lambda base, rows, values, divisor: (
        base, rows, values, divisor.int()), "input-dtype", "args[3]"),
    given("dtype_int32_count", "item", lambda x, n: (x, n.int()), "input-dtype", "args[1]", exits=EITHER),
    given("dtype_quantized", "pointwise", lambda x, y: (
        _torch().quantize_per_tensor(x, 0.1, 10, _torch().quint8), y), "input-dtype", "args[0]",
        also=("input-layout",)),
)  # fmt: skip

SHAPE_CASES: tuple[Case, ...] = (
    given("rank_flat", "pointwise", lambda x, y: (x.reshape(256), y), "input-rank", "args[0]"),
    given("rank_extra", "pointwise", lambda x, y: (x[None], y), "input-rank", "args[0]"),
    given("rank_extra_end", "pointwise", lambda x, y: (x, y[..., None]), "input-rank", "args[1]"),
    given("rank_extra_dynamic", "mlp", lambda x, y: (x[None], y), "input-rank", "args[0]"),
    given("rank_missing_batch", "mlp", lambda x, y: (x[0], y), "input-rank", "args[0]"),
    given("rank_no_batch_conv", "conv", lambda x: (x[0],), "input-rank", "args[0]"),
    given("rank_0d_for_2d", "pointwise", lambda x, y: (x, y[0, 0]), "input-rank", "args[1]"),
    given("rank_1d_for_0d", "masked", lambda x, mask, fill: (x, mask, fill.repeat(4)), "input-rank", "args[2]",
          exits=EITHER),
    given("rank_ids_2d", "embedding", lambda ids: (ids.reshape(2, 4),), "input-rank", "args[0]"),
    given("shape_wider", "pointwise", lambda x, y: (_torch().randn(16, 17), y), "input-shape", "args[0]"),
    given("shape_narrower", "pointwise", lambda x, y: (x[:, :15].contiguous(), y), "input-shape", "args[0]"),
    given("shape_fewer_rows", "pointwise", lambda x, y: (x, y[:4].contiguous()), "input-shape", "args[1]"),
    given("shape_batch_8", "linear", lambda x: (x.repeat(2, 1),), "input-shape", "args[0]"),
    given("shape_batch_1", "linear", lambda x: (x[:1],), "input-shape", "args[0]"),
    given("shape_transposed_dims", "linear", lambda x: (_torch().randn(16, 4),), "input-shape", "args[0]"),
    given("shape_empty", "pointwise", lambda x, y: (_torch().empty(0, 16), y), "input-shape", "args[0]"),
    given("shape_static_dim", "mlp", lambda x, y: (_torch().randn(8, 512), y), "input-shape", "args[0]"),
    given("shape_static_dim_both", "mlp", lambda x, y: (_torch().randn(8, 512), _torch().randn(8, 512)), "input-shape",
          "args[0]"),
    given("shape_in_dict", "nested", lambda x, o, p: (x, {"a": o["a"], "b": o["b"][:2]}, p), "input-shape",
          "args[1]['b']"),
    given("shape_in_kwarg", "kwargs", lambda x, scale, bias: {"args": (x,), "kwargs": {
        "scale": scale, "bias": bias[0:1]}}, "input-shape", "kwargs['bias']"),
    given("shape_image_size", "conv", lambda x: (_torch().randn(1, 3, 32, 32),), "input-shape", "args[0]"),
    given("shape_image_nhwc", "conv", lambda x: (_torch().randn(1, 16, 16, 3),), "input-shape", "args[0]"),
    given("shape_fewer_ids", "embedding", lambda ids: (ids[:3].clone(),), "input-shape", "args[0]"),
    given("order_same_rank", "gather", lambda x, index: (index, x), "input-order"),
    given("order_dtype", "masked", lambda x, mask, fill: (mask, x, fill), "input-order"),
    given("order_shape", "integers", lambda base, rows, values, divisor: (values, rows, base, divisor), "input-order"),
    given("order_rotated", "masked", lambda x, mask, fill: (fill, x, mask), "input-order", also=("input-rank",)),
    given("disagree_larger", "mlp", lambda x, y: (x, _torch().randn(16, 1024)), "input-shape-disagree"),
    given("disagree_smaller", "mlp", lambda x, y: (x, y[:4]), "input-shape-disagree"),
    given("disagree_one", "mlp", lambda x, y: (x, y[:1]), "input-shape-disagree", also=("input-range",)),
    given("disagree_far_larger", "mlp", lambda x, y: (_torch().randn(64, 1024), y[:2]), "input-shape-disagree"),
    given("range_zero", "mlp", lambda x, y: (x[:0], y[:0]), "input-range", exits=WARNS),
    given("range_above", "mlp", lambda x, y: (_torch().randn(100, 1024), _torch().randn(100, 1024)), "input-range",
          exits=WARNS),
    # The program has no answer to hold the package's against: that is no remark any more.
    given("range_above_reference", "mlp", lambda x, y: (_torch().randn(100, 1024), _torch().randn(100, 1024)),
          "input-range", options=("--reference", "{exported:mlp}"), proof=True),
    given("range_div_below", "div8", lambda x: (x[:8],), "input-range", exits=WARNS),
    given("divide_30", "div8", lambda x: (_torch().randn(30),), "input-divisibility", "args[0]"),
    given("divide_33", "div8", lambda x: (_torch().randn(33),), "input-divisibility", "args[0]"),
    given("divide_7", "div8", lambda x: (_torch().randn(7),), "input-divisibility", "args[0]",
          also=("input-range",)),
)  # fmt: skip


def _strided(shape, stride):
    return _torch().randn(4096).as_strided(shape, stride)


def _channels_last(x):
    return x.to(memory_format=_torch().channels_last)


LAYOUT_CASES: tuple[Case, ...] = (
    given("stride_transposed", "pointwise", lambda x, y: (x.t(), y), "input-stride", "args[0]"),
    given("stride_both_transposed", "pointwise", lambda x, y: (x.t(), y.t()), "input-stride", "args[0]"),
    given("stride_expanded", "pointwise", lambda x, y: (x, y[:1].clone().expand(16, 16)), "input-stride", "args[1]"),
    given("stride_step_2", "pointwise", lambda x, y: (_torch().randn(16, 32)[:, ::2], y), "input-stride", "args[0]"),
    given("stride_sliced_columns", "pointwise", lambda x, y: (_torch().randn(16, 64)[:, :16], y), "input-stride",
          "args[0]"),
    given("stride_sliced_rows", "pointwise", lambda x, y: (_torch().randn(32, 16)[::2], y), "input-stride", "args[0]"),
    given("stride_channels_last", "conv", lambda x: (_channels_last(x),), "input-stride", "args[0]"),
    given("stride_permuted_image", "conv", lambda x: (_torch().randn(1, 16, 16, 3).permute(0, 3, 1, 2),),
          "input-stride", "args[0]"),
    given("stride_dynamic_transposed", "mlp", lambda x, y: (_torch().randn(1024, 8).t(), y), "input-stride",
          "args[0]"),
    given("stride_linear_transposed", "linear", lambda x: (_torch().randn(16, 4).t(),), "input-stride", "args[0]", exits=WARNS),
    given("stride_in_dict", "nested", lambda x, o, p: (x, {"a": _torch().randn(16, 4).t(), "b": o["b"]}, p),
          "input-stride", "args[1]['a']"),
    given("stride_index_transposed", "gather", lambda x, index: (x, index.t().contiguous().t()), "input-stride",
          "args[1]"),
    given("stride_ids_step_2", "embedding", lambda ids: (ids.repeat_interleave(2)[::2],), "input-stride", "args[0]"),
    given("stride_overlapping", "pointwise", lambda x, y: (_strided((16, 16), (1, 1)), y), "input-stride", "args[0]"),
    given("lazy_neg", "pointwise", lambda x, y: (_torch()._neg_view(x), y), "input-lazy-bit", "args[0]"),
    given("lazy_conj", "complex", lambda z: (z.conj(),), "input-lazy-bit", "args[0]", exits=WARNS),
    given("lazy_neg_imag", "pointwise", lambda x, y: (x, _torch().complex(x, y).conj().imag), "input-lazy-bit",
          "args[1]", also=("input-stride",)),
    given("layout_coo", "linear", lambda x: (x.to_sparse(),), "input-layout", "args[0]"),
    given("layout_csr", "linear", lambda x: (x.to_sparse_csr(),), "input-layout", "args[0]"),
    given("layout_csc", "pointwise", lambda x, y: (x, y.to_sparse_csc()), "input-layout", "args[1]"),
    given("layout_bsr", "pointwise", lambda x, y: (x.to_sparse_bsr((4, 4)), y), "input-layout", "args[0]"),
    given("layout_nested", "linear", lambda x: (_torch().nested.nested_tensor([x[:2], x[2:]]),), "input-layout",
          "args[0]"),
    given("device_meta", "pointwise", lambda x, y: (x.to("meta"), y), "input-device", "args[0]"),
    given("device_meta_second", "pointwise", lambda x, y: (x, y.to("meta")), "input-device", "args[1]"),
    given("alias_same_tensor", "inplace", lambda x, y: (x, x), "input-alias"),
    given("alias_overlapping", "inplace", lambda x, y: _overlapping(), "input-alias"),
)  # fmt: skip


def _overlapping():
    pool = _torch().randn(80)
    return pool[:64].view(4, 16), pool[16:].view(4, 16)


CASES: tuple[Case, ...] = (*DTYPE_CASES, *SHAPE_CASES, *LAYOUT_CASES)
