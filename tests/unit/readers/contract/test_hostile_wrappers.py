"""A wrapper written by a stranger: whatever its statements look like, it is read in time that grows with its size."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from aotidoctor.readers.contract import read_contract

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


@pytest.mark.parametrize("kind", sorted(STATEMENTS))
def test_a_strange_statement_takes_no_longer_than_its_length(kind, make_entry, make_artifact):
    text = (DATA / "dyn.cpp").read_text(encoding="utf-8")
    mark = "    inputs.clear();\n"

    def seconds(times: int) -> float:
        entry = make_entry(text.replace(mark, mark + (STATEMENTS[kind] + "\n") * times))
        best = []
        for _ in range(3):
            began = time.process_time()
            contract = read_contract(make_artifact(entry), entry)
            best.append(time.process_time() - began)
        assert contract is not None
        assert contract.unknown_lines > 0
        return min(best)

    # 20 KB take milliseconds; a square of them would take seconds, and four times that when doubled.
    assert seconds(8) < 8 * 0.25
