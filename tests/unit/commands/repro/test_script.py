from __future__ import annotations

import ast

import pytest

from aotidoctor.commands.repro.repro_script import VERDICTS, Recipe, quote_text, script_text

CALL = Recipe(title="input-dtype at args[0]", args="(torch.rand((4,)),)")


def lines(recipe):
    text, load_line = script_text(recipe)
    ast.parse(text)
    return text.splitlines(), load_line


def test_a_script_is_a_few_lines_of_torch_alone():
    text, load_line = lines(CALL)
    assert "aotidoctor" not in "\n".join(text)
    assert text[load_line - 1] == 'model = torch._inductor.aoti_load_package(str(HERE / "model.pt2"))'
    assert text[-2:] == ["result = model(*args, **kwargs)", "print(result)"]
    assert len(text) <= 15


@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_verdict_is_python(verdict):
    text, _ = lines(Recipe(title="x", args="()", verdict=verdict, treated="args[0].clone()"))
    assert "print(result)" not in text


def test_the_repaired_call_is_written_as_it_is():
    recipe = Recipe(title="x", args="()", verdict="treated", treated='{"a": args[0]}')
    assert 'expected = model({"a": args[0]})' in lines(recipe)[0]


def test_what_only_loads_calls_nothing():
    text, load_line = lines(Recipe(title="x"))
    assert load_line == len(text)
    assert not any("args" in line for line in text)


def test_surroundings():
    recipe = Recipe(
        title="x",
        args="()",
        environment=(("AOTI_RUNTIME_CHECK_INPUTS", "1"),),
        model_name="encoder",
        threads=4,
        setup="setup_ops.py",
        has_after_load=True,
        libraries=("libzoo.so",),
        values="values.pt",
    )
    text, load_line = lines(recipe)
    assert 'os.environ["AOTI_RUNTIME_CHECK_INPUTS"] = "1"' in text
    assert "torch.set_num_threads(4)" in text
    assert 'torch.ops.load_library(str(HERE / "libzoo.so"))' in text
    assert 'given = torch.load(HERE / "values.pt")' in text
    assert text[load_line - 1] == 'model = load_package(str(HERE / "model.pt2"), "encoder")'
    assert text[load_line] == 'setup["after_load"](model)'
    assert text.index("import torch") > text.index("import os")


def test_long_calls_have_a_line_per_argument():
    leaves = ", ".join(f"torch.rand(({size}, {size}))" for size in range(10, 20))
    text, _ = lines(Recipe(title="x", args=f"({leaves})", kwargs='{"a, b": 1}'))
    assert "    torch.rand((10, 10))," in text
    assert 'kwargs = {"a, b": 1}' in text
    assert len(text) < 30


def test_quotes():
    assert quote_text("a b") == '"a b"'
    assert ast.literal_eval(quote_text('a"b\\c\n')) == 'a"b\\c\n'
