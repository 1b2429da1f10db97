"""What is made of the answers of the recovery job."""

import json

from aotidoctor.readers.contract.sourceless_contract import recovered_contract

LEAF = {"type": None, "context": None, "children_spec": []}


def result(**changes):
    args = {"type": "builtins.tuple", "context": "null", "children_spec": [LEAF, LEAF]}
    kwargs = {"type": "builtins.dict", "context": "[]", "children_spec": []}
    call = {"type": "builtins.tuple", "context": "null", "children_spec": [args, kwargs]}
    base = {
        "n_inputs": 1,
        "n_outputs": 1,
        "n_constants": 0,
        "call_spec": [json.dumps([1, call]), json.dumps([1, LEAF])],
        "metadata": {"AOTI_DEVICE_KEY": "cpu", "AOTI_CPU_ISA": "AVX2"},
        "inputs": [
            {
                "name": "arg0_1",
                "dtype": "float32",
                "dims": [{"static": None, "min": 2, "max": 64}, {"static": 16, "min": None, "max": None}],
                "strides": [16, 1],
                "device_type": "cpu",
                "complete": True,
            }
        ],
        "constants": [],
        "problems": [],
    }
    return {**base, **changes}


def test_a_complete_answer():
    contract = recovered_contract("m", result())
    assert (contract.source, contract.model_name, contract.n_inputs, contract.problems) == ("recovered", "m", 1, ())
    tensor, constant = contract.leaves
    assert (tensor.path, tensor.dtype, tensor.rank, tensor.strides) == ("args[0]", "float32", 2, (16, 1))
    assert [(dim.static, dim.min, dim.max) for dim in tensor.dims] == [(None, 2, 64), (16, None, None)]
    assert (constant.kind, constant.input_index) == ("constant", None)
    assert contract.weights == "none"
    assert contract.needs.isa == ("avx2", "fma")


def test_an_input_that_was_not_finished_has_no_rank():
    entry = {**result()["inputs"][0], "complete": False}
    assert recovered_contract("m", result(inputs=[entry])).leaves[0].rank is None


def test_no_call_spec():
    contract = recovered_contract("m", result(call_spec=None))
    assert contract.args is None
    assert [leaf.path for leaf in contract.leaves] == ["args[0]"]
    assert contract.problems


def test_nothing_but_a_count():
    contract = recovered_contract("m", {"n_inputs": 3})
    assert (contract.n_inputs, contract.leaves, contract.weights) == (3, (), "unknown")


def test_values_of_the_wrong_type_are_left_out():
    odd = result(inputs=[{"name": 3, "dims": "x", "strides": [None, "1"], "complete": 1}], constants=[4], metadata=7)
    leaf = recovered_contract("m", odd).leaves[0]
    assert (leaf.generated_name, leaf.dtype, leaf.rank) == ("arg0_1", None, None)
