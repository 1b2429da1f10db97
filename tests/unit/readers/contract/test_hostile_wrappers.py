"""A wrapper written by a stranger: whatever its statements look like, it is read.

That the time grows with the size and no faster, ``tests/bench/test_hostile.py`` measures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from aotidoctor.readers.contract.read_contract import read_contract

DATA = Path(__file__).parents[3] / "data" / "releases" / "2.13.0" / "wrappers"
SIZE = 19_000
STATEMENTS = {
    "conditions": "if (!(" + "a)) { throw std::runtime_error(" * (SIZE // 31),
    "quotes": 'AOTI_TORCH_CHECK("' + '"' * SIZE,
    "views": "auto buf0 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(" + "a, " * (SIZE // 3),
    "assertion": "assert_size_stride(buf0, {" + "1L}, {" * (SIZE // 6),
    "brackets": "launchKernel(" + "(" * SIZE + ");",
    "casts": "cpp_fused_0(" + "(const float*)(buf0.data_ptr(, " * (SIZE // 33) + ");",
    "clones": "AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_clone(" + "a, &output_handles[0" * (SIZE // 20) + "));",
    "views of dtypes": "AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_view_dtype(" + "_dtype_" * (SIZE // 7) + "));",
    "resets": "a.reset(); " * (SIZE // 11) + "!",
    "vectors": "std::vector<" + "a, " * (SIZE // 3) + ";",
    "records": 'kwargs_a.emplace("' + '", a' * (SIZE // 4),
    "proxies": "aoti_torch_proxy_executor_call_function(" + "std::array<AtenTensorHandle, 2>{a" * (SIZE // 33) + ");",
    "open lines": "call_triton_a(\n" * (SIZE // 15),
    "raw strings": 'KernelContextGuard _ctx("a", R"(\n' * (SIZE // 34),
    "comments": "/*\n" * (SIZE // 3),
    "grids": "Grid a = Grid(" + "a, " * (SIZE // 3) + ");",
}


def strange(kind: str, times: int) -> str:
    """A wrapper with the statement in it, so many times."""
    text = (DATA / "dyn.cpp").read_text(encoding="utf-8")
    mark = "    inputs.clear();\n"
    assert text.count(mark) > 0
    return text.replace(mark, mark + (STATEMENTS[kind] + "\n") * times)


@pytest.mark.parametrize("kind", sorted(STATEMENTS))
def test_a_strange_statement_is_left_out_and_the_others_are_read(kind, make_entry, make_artifact):
    plain, entry = make_entry((DATA / "dyn.cpp").read_text(encoding="utf-8")), make_entry(strange(kind, 1))
    contract = read_contract(make_artifact(entry), entry)
    assert contract.unknown_lines > 0
    assert contract.n_inputs == read_contract(make_artifact(plain), plain).n_inputs
