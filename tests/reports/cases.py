"""Public bug reports, rebuilt on this torch: what is asked about each, and the truth.

A script in ``scripts/`` makes ``model.pt2``, ``exported.pt2`` and ``sample.pt`` in the folder that it runs in, and shows
what plain PyTorch does; its output is ``report.log``. A report that cannot be run is a log in ``logs/``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A command line about a report, and its right answer.

    ``causes`` are the right causes (none: nothing is wrong), ``subject`` is part of the subject or the title, ``says``
    are words of the first diagnosis (of the findings, where nothing is wrong), and ``never`` is nowhere in the report.
    """

    words: str
    causes: tuple[str, ...] = ()
    subject: str = ""
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report by its name and source. ``remedy`` is text of the script and what replaces it: then the script succeeds.

    ``right``: its questions are answered with the truth today, and the tests see to it that they stay so.
    """

    name: str
    source: str
    asked: tuple[Question, ...]
    arguments: tuple[str, ...] = ()
    remedy: tuple[tuple[str, str], ...] = ()
    right: bool = False

    @property
    def script(self) -> Path:
        return HERE / "scripts" / f"{self.name}.py"

    @property
    def log(self) -> Path:
        return HERE / "logs" / f"{self.name}.log"


def _ask(words: str, *causes: str, subject: str = "", says: tuple[str, ...] = (), never: tuple[str, ...] = ()):
    return Question(words=words, causes=causes, subject=subject, says=says, never=never)


RUN = "run model.pt2 -i sample.pt"
REFERENCE = f"{RUN} --reference exported.pt2"
AGAINST = "verify exported.pt2 --against model.pt2"
CLASSIFY = "classify report.log"
TRIED, NOT_TRIED = "tried: it compiles and agrees with eager", "not tried: needs the model"
NOT_EXPORT = ("strict=False",)

REPORTS = (
    Report(
        name="any_uint8",
        right=True,
        source="pytorch#198081",
        asked=(
            _ask(REFERENCE, "codegen-bug", subject="aten.any", says=("any(x != 0, ...).to(torch.uint8)", "pytorch#198081", TRIED), never=("eval mode", "different program")),
            _ask(AGAINST, never=("different program",)),
        ),
        remedy=(("torch.any(mask, 1)", "torch.any(mask != 0, 1).to(torch.uint8)"),),
    ),
    Report(
        name="empty_index",
        right=True,
        source="pytorch#94830",
        asked=(
            _ask(REFERENCE, "index-out-of-range", "input-range", subject="args[0]", never=("newer torch", "another release")),
            _ask(RUN, "index-out-of-range", "input-range", "input-shape", subject="args[0]", never=("no input explains",)),
        ),
    ),
    Report(
        name="instnorm_closure",
        right=True,
        source="pytorch#197096",
        asked=(
            _ask("verify exported.pt2", "packaging-bug", "export-unsupported", says=("register_buffer", TRIED), never=NOT_EXPORT),
            _ask(CLASSIFY, "packaging-bug", "export-unsupported", says=("register_buffer", NOT_TRIED), never=NOT_EXPORT),
        ),
    ),
    Report(
        name="alias_inputs",
        right=True,
        source="pytorch#144683, #139805, #139646",
        asked=(
            _ask(REFERENCE, "export-specialization", subject="args[0]", says=("clone",)),
            _ask(f"{RUN} --reference alias_inputs_eager.py:model", "export-specialization", subject="args[0]"),
            _ask("check model.pt2 -i sample.pt --reference exported.pt2", "export-specialization", subject="args[0]"),
            _ask("verify exported.pt2", "export-specialization", subject="args[0]"),
        ),
        remedy=(("(x, x)", "(x, x.clone())"),),
    ),
    Report(
        name="alias_named",
        source="the report above, with other names",
        asked=(_ask("verify exported.pt2", "export-specialization", subject="args[0]"),),
        right=True,
    ),
    Report(
        name="unread_inputs",
        source="pytorch#144683: what looks alike",
        asked=(_ask("verify shape.pt2"), _ask("verify unused.pt2")),
        right=True,
    ),
    Report(
        name="empty_constant",
        right=True,
        source="pytorch PR 165970",
        asked=(
            _ask("check model.pt2 -i sample.pt --weights same.pt"),
            _ask(f"{RUN} --weights weights.pt", "weights-mismatch", subject="l.bias", says=("ompile",)),
            _ask("check model.pt2 -i sample.pt --weights weights.pt", "weights-mismatch", subject="l.bias", says=("ompile",)),
        ),
    ),
    Report(
        name="bce_targets",
        right=True,
        source="pytorch#193757",
        asked=(_ask(REFERENCE, "operator-refused", subject="args[1]", says=("between 0 and 1",)),),
    ),
    Report(
        name="scatter_unchecked",
        source="pytorch: cpp_wrapper_cpu.py, generate_scatter_fallback",
        asked=(
            _ask(RUN, "index-out-of-range", says=("index 1024",)),
            _ask("run model.pt2 -i fine.pt"),
        ),
        right=True,
    ),
    Report(
        name="select_oob",
        right=True,
        source="pytorch#183769",
        asked=(
            _ask(CLASSIFY, "index-out-of-range", says=("select_oob.py", "select(): index 1"), never=NOT_EXPORT),
            _ask("watch -- PYTHON select_oob.py", "index-out-of-range", says=("select(): index 1",), never=NOT_EXPORT),
        ),
    ),
    Report(
        name="lstm_dynamic",
        right=True,
        source="pytorch/executorch#5176",
        asked=(_ask(CLASSIFY, "export-specialization", subject="time", never=("Dim.AUTO",)),),
    ),
    Report(
        name="sdpa_nan",
        right=True,
        source="pytorch#141128, #127055",
        asked=(
            _ask(RUN, "input-nan", subject="args[0]", never=("args[3] = ", "in args[0], args[3]", "NaN and Inf in")),
            _ask(REFERENCE, "input-nan", subject="args[0]", never=("args[3] = ", "in args[0], args[3]", "NaN and Inf in")),
        ),
    ),
    Report(
        name="typename_strict",
        right=True,
        source="pytorch#160241",
        asked=(_ask(CLASSIFY, "export-unsupported", subject="typename"),),
        remedy=(("strict=True", "strict=False"),),
    ),
    Report(name="int_shape_auto", right=True, source="pytorch#138853", asked=(_ask(REFERENCE, "input-shape", "input-range"),)),
    Report(
        name="size_output",
        right=True,
        source="pytorch#137682",
        asked=(_ask(CLASSIFY, "output-spec", "export-unsupported", "pytree-class-missing", subject="torch.Size",
                    says=("tuple(",), never=("import a library",)),),
        remedy=(("x.size()", "tuple(x.size())"),),
    ),
    Report(
        name="train_mode",
        right=True,
        source="pytorch#151726, #103681",
        asked=(_ask(REFERENCE, "train-mode", never=("decomposition is wrong",)), _ask(AGAINST, "train-mode")),
    ),
    Report(
        name="log_fft_stride",
        right=True,
        source="pytorch#181625",
        asked=(_ask(CLASSIFY, "custom-op-fake-kernel", "codegen-bug", subject="_fft_r2c", says=("bug of PyTorch",), never=("fake (meta) kernel of aten", "fake kernel of aten")),),
    ),
    Report(
        name="log_float_item",
        right=True,
        source="pytorch#153411",
        asked=(_ask(CLASSIFY, "unbacked-symint", "export-unsupported", never=("torch._check(",)),),
    ),
    Report(
        name="remainder_inf",
        right=True,
        source="pytorch#198057",
        asked=(
            _ask(REFERENCE, "codegen-bug", subject="remainder", never=("contains NaN or Inf", "different program")),
            _ask(AGAINST, never=("different program",)),
        ),
    ),
    Report(
        name="floor_divide",
        right=True,
        source="pytorch#197895",
        asked=(
            _ask(REFERENCE, "codegen-bug", subject="aten.div", never=("different program",)),
            _ask(AGAINST, never=("different program",)),
        ),
    ),
    Report(
        name="remainder_half",
        source="pytorch#186875, #183083",
        asked=(_ask(REFERENCE, "codegen-bug", subject="remainder", never=("different program",)),),
    ),
    Report(
        name="bmm_int8",
        right=True,
        source="pytorch#191308",
        asked=(
            _ask(REFERENCE, "codegen-bug", subject="bmm", says=("int8",), never=("different program", "eval mode")),
            _ask(AGAINST, never=("different program",)),
        ),
    ),
    Report(
        name="half_roundtrip",
        right=True,
        source="pytorch#185337",
        asked=(
            _ask(REFERENCE, says=("emulate_precision_casts",), never=("different program",)),
        ),
    ),
    Report(
        name="embedding_negative",
        right=True,
        source="pytorch#183608",
        asked=(_ask(REFERENCE, "index-out-of-range", "operator-refused", subject="args[0]", never=("newer torch",)),),
    ),
    Report(
        name="index_add_negative",
        right=True,
        source="pytorch#185885",
        asked=(_ask(REFERENCE, "index-out-of-range", "operator-refused", subject="args[1]", never=("newer torch",)),),
    ),
    Report(
        name="smooth_l1_beta",
        right=True,
        source="pytorch#194501",
        asked=(_ask(REFERENCE, "operator-refused", says=("negative values for beta",), never=("Give the model values",)),),
    ),
    Report(
        name="linear_half",
        right=True,
        source="pytorch#141865",
        asked=(
            _ask("check model.pt2 -i sample.pt", "input-dtype", subject="args[0]"),
            _ask(REFERENCE, "input-dtype", subject="args[0]"),
        ),
    ),
    Report(
        name="inverse_singular",
        right=True,
        source="pytorch#150165",
        asked=(_ask(REFERENCE, says=("no digit of either is right",), never=("different program",)),),
    ),
    Report(
        name="dim_one",
        right=True,
        source="pytorch#181097",
        asked=(
            _ask(REFERENCE, "export-specialization", "input-range", "input-shape", subject="args[", never=("codegen-bug",)),
        ),
    ),
    Report(
        name="dataclass_input",
        right=True,
        source="pytorch#147400",
        asked=(_ask(CLASSIFY, "export-unsupported", "pytree-class-missing", subject="Settings", says=("serialized_type_name",), never=NOT_EXPORT),),
        remedy=(
            (
                "class Affine(",
                'torch.export.register_dataclass(Settings, serialized_type_name="Settings")\n\n\nclass Affine(',
            ),
        ),
    ),
    Report(
        name="cond_constant",
        right=True,
        source="pytorch#180354",
        asked=(
            _ask(CLASSIFY, "export-unsupported", "lowering-failure", "packaging-bug", says=("torch.tensor",), never=NOT_EXPORT),
        ),
        remedy=(("torch.tensor(0.0)", "x.new_zeros(())"),),
    ),
    Report(
        name="parity_branch",
        right=True,
        source="pytorch#138847",
        asked=(
            _ask(REFERENCE, "export-specialization", "input-divisibility", "input-range", "input-shape", subject="args[0]", never=("codegen-bug",)),
        ),
    ),
    Report(
        name="cond_check",
        right=True,
        source="pytorch#147991",
        asked=(_ask(CLASSIFY, "export-specialization", subject="sequence_length", says=("min=6",), never=(*NOT_EXPORT, "Dim.AUTO")),),
        remedy=(('Dim("sequence_length")', 'Dim("sequence_length", min=6)'),),
    ),
    Report(
        name="batch_of_one",
        right=True,
        source="pytorch#133653",
        asked=(_ask(CLASSIFY, "export-specialization", subject="batch", says=("example",), never=NOT_EXPORT),),
        remedy=(("torch.randn(1, 3, 8, 8)", "torch.randn(2, 3, 8, 8)"),),
    ),
    Report(
        name="class_on_load",
        right=True,
        source="pytorch#140615",
        asked=(_ask(RUN, "pytree-class-missing", subject="detector.Boxes"),),
    ),
    Report(
        name="int_argument",
        right=True,
        source="pytorch#130152",
        asked=(_ask(REFERENCE, "input-constant-changed", subject="args[1]"),),
    ),
    Report(
        name="first_sight",
        right=True,
        source="pytorch#197554",
        arguments=("index_copy",),
        asked=(_ask(REFERENCE, "index-out-of-range", subject="args[1]", says=("-1",), never=("different program",)),),
    ),
    Report(
        name="first_sight",
        right=True,
        source="pytorch#143752",
        arguments=("pool",),
        asked=(_ask(REFERENCE, "operator-refused", subject="adaptive_max_pool2d", says=("a dtype is refused",), never=("values are refused",)),),
    ),
    Report(
        name="first_sight",
        right=True,
        source="pytorch#150114",
        arguments=("condition",),
        asked=(_ask(REFERENCE, "nan-produced", "numeric-difference", says=("The reference is finite",), never=("NaN as well?",)),),
    ),
    Report(
        name="first_sight",
        right=True,
        source="pytorch#41508, of scaled_dot_product_attention and softmax",
        arguments=("masked_row",),
        asked=(_ask(REFERENCE, "nan-produced", subject="softmax", says=("not the compiler",), never=("NaN as well?", "codegen-bug")),),
    ),
    Report(
        name="first_sight",
        right=True,
        source="pytorch#137748",
        arguments=("reshape",),
        asked=(
            _ask(CLASSIFY, "export-specialization", subject="a", never=NOT_EXPORT),
            _ask("verify first_sight.py:program_reshape", "export-specialization", says=("0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO", TRIED)),
        ),
    ),
    Report(
        name="first_sight",
        right=True,
        source="pytorch#160730",
        arguments=("branch",),
        asked=(_ask("verify first_sight.py:program_branch", "unbacked-symint", subject="first_sight.py:42, in forward", never=("torch._check(n",)),),
    ),
    Report(
        name="mask_slice",
        right=True,
        source="pytorch#140011",
        asked=(_ask(CLASSIFY, "export-specialization", subject="seq_len", never=(*NOT_EXPORT, "Dim.AUTO")),),
    ),
    Report(
        name="randn_forward",
        right=True,
        source="pytorch#151525",
        asked=(
            _ask(REFERENCE, "nondeterministic", never=("codegen-bug", "different program")),
            _ask("verify exported.pt2"),
        ),
    ),
    Report(
        name="fmod_zero",
        right=True,
        source="pytorch#154420",
        asked=(_ask(RUN, "integer-division", subject="args[1]"),),
    ),
    Report(
        name="scalar_weights",
        right=True,
        source="pytorch: torch/_inductor/graph.py, get_attr",
        asked=(
            _ask("check model.pt2 -i sample.pt --weights same.pt"),
            _ask("check model.pt2 -i sample.pt --weights hotter.pt", "weights-mismatch", subject="temperature", says=("0.7311", "ompile")),
            _ask(f"{RUN} --weights louder.pt", "weights-mismatch", subject="gain", says=("1.204", "ompile")),
        ),
    ),
    Report(
        name="second_sight",
        right=True,
        source="pytorch#182965",
        arguments=("cholesky",),
        asked=(
            _ask(RUN, "operator-refused", says=("not positive-definite",), never=("newer torch",)),
            _ask(REFERENCE, "operator-refused", says=("not positive-definite",), never=("newer torch",)),
        ),
    ),
    Report(
        name="second_sight",
        right=True,
        source="pytorch#183762",
        arguments=("celu",),
        asked=(
            _ask(REFERENCE, "operator-refused", subject="celu", says=("alpha cannot be 0",), never=("different program",)),
        ),
    ),
    Report(
        name="second_sight",
        right=True,
        source="pytorch#175154, #198201",
        arguments=("nearest",),
        asked=(
            _ask(REFERENCE, "codegen-bug", subject="upsample_nearest2d", says=("pytorch#175154",), never=("different program",)),
            _ask(AGAINST),
        ),
    ),
    Report(
        name="second_sight",
        right=True,
        source="pytorch#148859",
        arguments=("unique",),
        # How many elements are alike is decided by values that differ by rounding.
        asked=(_ask(REFERENCE, "numeric-difference", says=("rounding may move them",), never=("OPERATOR",)),),
    ),
    Report(
        name="second_sight",
        right=True,
        source="pytorch#190421",
        arguments=("infinite",),
        asked=(
            _ask("verify exported.pt2", "codegen-bug", says=("pytorch#190421",), never=NOT_EXPORT),
            _ask(CLASSIFY, "codegen-bug", says=("pytorch#190421", NOT_TRIED), never=NOT_EXPORT),
        ),
    ),
    Report(
        name="second_sight",
        right=True,
        source="pytorch#135047, lowered",
        arguments=("item_in_branch",),
        asked=(
            _ask("verify exported.pt2", "lowering-failure", subject="_local_scalar_dense", never=NOT_EXPORT),
            _ask(CLASSIFY, "lowering-failure", subject="_local_scalar_dense", never=NOT_EXPORT),
        ),
    ),
    Report(
        name="second_sight",
        right=True,
        source="pytorch#165444: mended",
        arguments=("counter",),
        asked=(
            _ask(RUN),
            _ask(REFERENCE),
            _ask(AGAINST),
        ),
    ),
    Report(
        name="second_sight",
        right=True,
        source="pytorch#169118: mended",
        arguments=("flag_of_branch",),
        asked=(
            _ask(RUN),
            _ask(REFERENCE),
            _ask(AGAINST),
        ),
    ),
    Report(
        name="second_sight",
        right=True,
        source="pytorch#159239: roundings only",
        arguments=("rotary",),
        asked=(
            _ask(RUN),
            _ask(REFERENCE),
            _ask(AGAINST),
        ),
    ),
    Report(
        name="assert_operand",
        right=True,
        source="pytorch: torch/_inductor/ir.py, AssertScalar",
        asked=(_ask(RUN, "runtime-assert", subject="args[1]", says=("= 5",)),),
    ),
    *(
        Report(
            name="healthy_functions",
            right=True,
            source="pytorch: torch.nn.functional",
            arguments=(functions,),
            asked=(_ask(f"verify {functions}.pt2 --against {functions}_model.pt2", never=("different program",)),),
        )
        for functions in ("losses_of_numbers", "losses_of_classes", "activations_and_norms")
    ),
)  # fmt: skip
