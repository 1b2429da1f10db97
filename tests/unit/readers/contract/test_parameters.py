"""Signatures of kernels, and the names that calls pair with them."""

from aotidoctor.model.contract import KernelParameter


def by_name(contract, name):
    (body,) = (body for body in contract.bodies if body.name == name)
    return body


def test_parameters_of_cpp_kernels(contract_of, recorded_text):
    contract = contract_of("dynamic_index")
    body = by_name(contract, "cpp_fused_add_index_0")
    assert body.parameters == (
        KernelParameter(name="in_ptr0", type="int64_t", pointer=True, const=True),
        KernelParameter(name="in_ptr1", type="float", pointer=True, const=True),
        KernelParameter(name="out_ptr0", type="float", pointer=True, const=False),
        KernelParameter(name="ks0", type="int64_t", pointer=False, const=True),
        KernelParameter(name="ks1", type="int64_t", pointer=False, const=True),
    )
    (call,) = contract.kernels
    assert call.arguments == ("arg1_1", "arg0_1", "buf0", "s23", "s77")
    lines = recorded_text("dynamic_index", "kernel").split("\n")
    assert body.name in lines[body.line - 1]
    assert body.kind == "cpp"


def test_every_kernel_has_its_own_text(contract_of, recorded_text):
    lines = recorded_text("buffered", "kernel").split("\n")
    first, second = contract_of("buffered").bodies
    assert first.line + first.lines - 1 == second.line
    assert "cpp_fused_embedding_1" in lines[second.line - 1]


def test_parameters_of_triton_kernels(contract_of, recorded_text):
    body = by_name(contract_of("cuda_index"), "triton_poi_fused_add_index_0")
    assert [(one.name, one.type, one.pointer, one.const) for one in body.parameters] == [
        ("in_ptr0", "i64", True, True),
        ("in_ptr1", "fp32", True, True),
        ("in_ptr2", "fp32", True, True),
        ("out_ptr0", "fp32", True, False),
        ("xnumel", "i32", False, False),
    ]
    text = "\n".join(recorded_text("cuda_index").split("\n")[body.line - 1 : body.line - 1 + body.lines])
    assert "tl.device_assert" in text
    assert "loadKernel" not in text


def test_a_triton_kernel_with_a_helper_function_before_it(contract_of):
    (body,) = (body for body in contract_of("cuda_sort").bodies if "sort" in body.name)
    assert [one.name for one in body.parameters if one.pointer] == ["in_out_ptr0", "in_ptr0", "in_ptr1"]


def test_a_signature_that_is_not_understood_has_no_parameters(contract_from, recorded_text):
    kernel = recorded_text("dynamic_index", "kernel").replace("const float* in_ptr1", "const float (*in_ptr1)[4]")
    contract = contract_from(recorded_text("dynamic_index"), kernel)
    assert by_name(contract, "cpp_fused_add_index_0").parameters == ()


def test_memory_that_goes_by_another_name(contract_of):
    contract = contract_of("scatter")
    assert all(name != other for name, other in contract.renamed.items())
    assert contract.views <= contract.renamed.keys()
