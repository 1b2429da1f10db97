"""Outputs that are no tensors: a number of the program, None."""

import pytest


def test_numbers_and_none_are_told_from_tensors(contract_of):
    outputs = {output.path: output for output in contract_of("odd_outputs").outputs}
    assert [(path, item.kind, item.dtype, item.shape) for path, item in outputs.items()] == [
        ("result['y']", "tensor", "float32", ("2", "3")),
        ("result['none']", "none", None, None),
        ("result['three']", "number", "int64", ()),
        ("result['total']", "tensor", "float32", ()),
        ("result['z']", "tensor", "float32", ("2", "3")),
    ]


def test_what_the_wrapper_writes_in_another_way_is_no_none(contract_from, recorded_text):
    text = recorded_text("odd_outputs").replace("output_handles[4] = buf2.release();", "output_handles[4] = (buf2);")
    kinds = [output.kind for output in contract_from(text).outputs]
    assert kinds == ["tensor", "none", "number", "tensor", "tensor"]


def test_a_written_null_is_none_and_literals_have_types(contract_from, recorded_text):
    text = recorded_text("odd_outputs")
    text = text.replace("output_handles[4] = buf2.release();", "output_handles[4] = nullptr;")
    text = text.replace("scalar_to_tensor_handle(3L)", "scalar_to_tensor_handle(2.5)")
    outputs = contract_from(text).outputs
    assert (outputs[2].dtype, outputs[4].kind) == ("float64", "none")


def test_an_empty_dict_among_outputs_is_no_output(contract_of):
    contract = contract_of("empty_output")
    assert [output.path for output in contract.outputs] == ["result[0]", "result[2]"]
    assert all(output.kind == "tensor" for output in contract.outputs)


def test_the_type_of_an_operators_result_is_what_kernels_take_it_for(contract_of):
    """aten.rand gives a buffer that a kernel then writes into, as float."""
    (output,) = contract_of("rand_fallback").outputs
    assert (output.dtype, output.shape) == ("float32", ("64", "64"))


def test_a_buffer_that_is_reused_in_another_form_has_that_form(contract_from, recorded_text):
    """What a memory plan makes of big models: a view of an older buffer, which is given up in the same statement."""
    text = recorded_text("odd_outputs")
    kept = "output_handles[4] = buf2.release();"
    reused = "auto buf9 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(buf2, 2, int_array_90, int_array_91, 0L)); buf2.reset();  // reuse"
    arrays = (
        "static constexpr int64_t int_array_90[] = {3L, 2L};\n    static constexpr int64_t int_array_91[] = {2L, 1L};"
    )
    assert kept in text
    contract = contract_from(text.replace(kept, f"{arrays}\n    {reused}\n    output_handles[4] = buf9.release();"))
    assert (contract.outputs[4].dtype, contract.outputs[4].shape) == ("float32", ("3", "2"))
    assert contract.unknown_lines == contract_from(text).unknown_lines


@pytest.mark.parametrize(
    "given",
    ["buf2", "wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(buf2, 2, int_array_0, int_array_1, 0L))"],
)
@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        ("aoti_torch_cpu_convolution", "float32"),
        ("aoti_torch_cpu_mkldnn__convolution_pointwise", "float32"),
        # What another operator makes of its argument may have another dtype.
        ("aoti_torch_cpu_argsort", None),
    ],
)
def test_a_convolution_keeps_the_dtype_of_its_input(contract_from, recorded_text, function, dtype, given):
    """The last step of a segmentation model, or of one that separates voices: its result goes out as the operator gives it."""
    text = recorded_text("odd_outputs")
    last = f"""AtenTensorHandle buf9_handle;
    AOTI_TORCH_ERROR_CODE_CHECK({function}({given}, buf2, nullptr, 2, 0, &buf9_handle));
    RAIIAtenTensorHandle buf9(buf9_handle);
    output_handles[4] = buf9.release();"""
    kept = "output_handles[4] = buf2.release();"
    assert contract_from(text.replace(kept, last)).outputs[4].dtype == dtype
