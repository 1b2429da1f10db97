"""Leaves: names, dtypes, dims, strides, shared symbols."""

import re

import pytest

from aotidoctor.model.artifact import ExportedFacts
from aotidoctor.model.expr import evaluate
from aotidoctor.readers.contract.read_contract import read_contract


def by_path(contract):
    return {leaf.path: leaf for leaf in contract.leaves}


def exprs(leaf):
    return [str(dim.expr) if dim.expr is not None else None for dim in leaf.dims]


def test_every_recorded_wrapper_is_understood_completely(contract_of, recorded_text):
    from pathlib import Path

    names = {
        path.name.partition(".")[0] for path in (Path(__file__).parents[3] / "data/wrappers").glob("*.wrapper.cpp")
    }
    assert len(names) > 25
    for name in sorted(names):
        contract = contract_of(name)
        assert contract.unknown_lines == 0, name
        assert len(contract.tensor_leaves()) == contract.n_inputs, name
        assert len(contract.outputs) == contract.n_outputs, name
        assert len(contract.constants) == contract.n_constants, name


def test_nested_call_has_the_users_paths_and_four_names(contract_of):
    contract = contract_of("nested")
    assert [leaf.path for leaf in contract.leaves] == [
        "args[0]",
        "args[1]['a']",
        "args[1]['n']['k']",
        "args[2][0]",
        "args[2][1][0]",
        "args[3][0]",
        "args[3][1]",
        "args[4].p",
        "args[4].q",
        "kwargs['od']['z']",
        "kwargs['od']['y']",
        "kwargs['ids']",
    ]
    leaf = contract.leaves[2]
    assert (leaf.input_index, leaf.generated_name, leaf.triton_names) == (2, "arg2_1", ("INPUT__2", "ARGS[1][n][k]"))
    assert contract.leaves[11].triton_names == ("INPUT__11", "KWARGS[ids]")
    assert [child.type for child in contract.args.children if hasattr(child, "type")] == [
        "dict",
        "list",
        "namedtuple:lab.Pt",
        "lab.DC",
    ]
    assert contract.kwargs.keys == ("od", "ids")
    assert contract.kwargs.children[0].type == "ordereddict"
    assert [output.path for output in contract.outputs] == [
        "result['out']",
        "result['t'][0]",
        "result['t'][1]",
        "result[3]",
    ]


def test_integer_keys_and_defaultdicts_keep_their_keys(contract_of):
    assert contract_of("intkeys").args.children[1].keys == (0, 7, "s")
    spec = contract_of("defaultdict").args.children[0]
    assert (spec.type, spec.keys) == ("defaultdict", ("b", "a"))


def test_static_input(contract_of):
    leaf = contract_of("scalar0d").leaves[0]
    assert (leaf.dtype, leaf.rank, leaf.strides, leaf.device_type) == ("float32", 2, (8, 1), "cpu")
    assert [dim.static for dim in leaf.dims] == [8, 8]
    assert (leaf.kind, leaf.used) == ("tensor", True)


def test_no_dims_at_all(contract_of):
    leaf = contract_of("scalar0d").leaves[1]
    assert (leaf.rank, leaf.dims, leaf.strides) == (0, (), ())


@pytest.mark.parametrize(("at", "dtype"), list(enumerate(["bfloat16", "uint8", "bool", "complex64", "float8_e4m3fn"])))
def test_dtypes(contract_of, at, dtype):
    assert contract_of("dtypes").leaves[at].dtype == dtype


def test_a_multiple_of_eight_is_seen_as_one(contract_of):
    contract = contract_of("div8")
    dim = contract.leaves[0].dims[0]
    assert (str(dim.expr), dim.min, dim.max, dim.static) == ("8*s40", 16, 4096, None)
    (symbol,) = contract.symbols
    assert (symbol.name, symbol.appears_in) == ("s40", ("args[0].shape[0]",))
    assert "1.0/8.0" in symbol.definition


def test_a_multiple_of_eight_is_seen_without_the_asserted_shape(contract_from, recorded_text):
    text = "\n".join(line for line in recorded_text("div8").split("\n") if "assert_size_stride" not in line)
    assert exprs(contract_from(text).leaves[0]) == ["8*s40"]


def test_derived_dims_share_one_symbol(contract_of):
    leaves = contract_of("derived").leaves
    assert [exprs(leaf)[0] for leaf in leaves] == ["s77", "s77 + 1", "2*s77"]
    assert [evaluate(leaf.dims[0].expr, {"s77": 8}) for leaf in leaves] == [8, 9, 16]
    assert [(leaf.dims[0].min, leaf.dims[0].max) for leaf in leaves] == [(2, 1024), (3, 1025), (4, 2048)]


def test_a_sum_of_two_symbols(contract_of):
    contract = contract_of("sumdim")
    assert exprs(contract.leaves[2]) == ["s17 + s77", "4"]
    assert {symbol.name: symbol.appears_in for symbol in contract.symbols}["s17"] == (
        "args[1].shape[0]",
        "args[2].shape[0]",
    )


def test_aliases_of_a_symbol_are_one_symbol(contract_of):
    contract = contract_of("unused_dyn")
    assert [symbol.name for symbol in contract.symbols] == ["s17"]
    assert {exprs(leaf)[0] for leaf in contract.leaves} == {"s17"}


def test_an_input_that_nothing_reads(contract_of):
    leaves = by_path(contract_of("unused_dyn"))
    assert [leaves[f"args[{at}]"].used for at in range(3)] == [True, False, True]


def test_symbolic_strides(contract_of):
    leaf = contract_of("unused_dyn2").leaves[0]
    assert leaf.strides == (None, 1)
    assert [str(stride) for stride in leaf.stride_exprs] == ["s27", "1"]


def test_without_asserted_shapes_the_only_symbol_with_the_same_bounds_is_the_one(contract_of):
    leaves = contract_of("noassert").leaves
    assert [exprs(leaf)[0] for leaf in leaves] == ["s17", "s17", "s17"]
    assert [leaf.rank for leaf in leaves] == [2, 2, 2]


def test_without_asserted_shapes_two_symbols_with_the_same_bounds_leave_it_open(contract_from, recorded_text):
    text = "\n".join(line for line in recorded_text("unused_dyn2").split("\n") if "assert_size_stride" not in line)
    leaves = contract_from(text).leaves
    assert exprs(leaves[0]) == ["s17", "s27"]
    assert exprs(leaves[2]) == [None, None]


def test_rank_is_open_where_no_lower_bounds_were_compiled_in(contract_of):
    contract = contract_of("nolower0d")
    leaves = by_path(contract)
    assert leaves["args[0]"].rank == 2
    assert leaves["args[1]"].rank is None
    assert any("args[1]" in problem for problem in contract.problems)


def test_a_trailing_constant_is_told_from_the_tensors(contract_of):
    leaves = contract_of("trail_int").leaves
    assert [leaf.kind for leaf in leaves] == ["tensor", "constant"]
    assert leaves[1].input_index is None


def test_which_leaves_are_tensors_can_be_open(contract_of):
    contract = contract_of("consts_mid")
    assert contract.problems
    assert contract.leaves[3].kind == "unknown"
    assert contract.leaves[5].kind == "constant"  # no reading makes the last one a tensor
    assert len(contract.tensor_leaves()) == 2


def test_an_export_in_the_same_archive_settles_it(make_entry, make_artifact, recorded_text):
    entry = make_entry(recorded_text("consts_mid"))
    plain = read_contract(make_artifact(entry), entry)
    baked = {"args[0]": "3", "args[2]": "None", "args[4]": "True", "args[5]": "'mul'"}
    facts = ExportedFacts(name="model", constant_inputs=baked, in_spec=plain.in_spec)
    contract = read_contract(make_artifact(entry, exported=(facts,)), entry)
    assert contract.problems == ()
    assert [leaf.kind for leaf in contract.leaves] == [
        "constant",
        "tensor",
        "constant",
        "tensor",
        "constant",
        "constant",
    ]
    assert [leaf.generated_name for leaf in contract.tensor_leaves()] == ["arg5_1", "arg7_1"]


def test_all_checks_in_one_function_as_in_2_7(contract_from, contract_of, recorded_text):
    text = recorded_text("derived")
    text = re.sub(
        r"AOTI_NOINLINE static void check_input_\d\(\n    AtenTensorHandle\* input_handles\n\) \{\n(.*?)\n\}\n",
        r"\1\n",
        text,
        flags=re.DOTALL,
    )
    text = re.sub(r"    check_input_\d\(input_handles\);\n", "", text)
    start = text.index("    ConstantHandle arg0_1 =")
    head = "AOTI_NOINLINE static void __check_inputs_outputs(\n    AtenTensorHandle* input_handles,\n    AtenTensorHandle* output_handles) {\n"
    text = text[:start] + head + text[start:]
    old, new = contract_from(text), contract_of("derived")
    assert [(leaf.dtype, leaf.dims, leaf.strides) for leaf in old.leaves] == [
        (leaf.dtype, leaf.dims, leaf.strides) for leaf in new.leaves
    ]


def test_a_statement_that_fits_no_rule_is_counted(contract_from, recorded_text):
    text = recorded_text("div8").replace(
        "    if (1 != arg0_1_stride[0]) {", "    if (!is_fine(arg0_1)) {\n    if (1 != arg0_1_stride[0]) {"
    )
    assert contract_from(text).unknown_lines == 1


def test_lines_point_to_the_statements(contract_of, recorded_text):
    lines = recorded_text("div8").split("\n")
    leaf = contract_of("div8").leaves[0]
    assert "assert_size_stride(arg0_1" in lines[leaf.source_line - 1]
    assert "ConstantHandle arg0_1" in lines[leaf.check_line - 1]


def test_a_written_input_is_marked(contract_of):
    assert [leaf.mutated for leaf in contract_of("mutate").leaves] == [True, None]


def test_no_call_spec(contract_from, recorded_text):
    text = re.sub(r'in_spec_ = R"\(.*?\)";', 'in_spec_ = R"()";', recorded_text("derived"))
    contract = contract_from(text)
    assert contract.args is None
    assert [leaf.path for leaf in contract.leaves] == ["args[0]", "args[1]", "args[2]"]
    assert contract.problems


def test_no_sources(contract_from):
    assert contract_from(None) is None
    assert contract_from("int main() { return 0; }\n") is None
