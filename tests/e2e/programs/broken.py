"""Exported programs that break one rule, made by editing healthy ones in memory as a careless pass would."""

from __future__ import annotations

import torch
from torch._export.verifier import Verifier
from torch.export import Dim, ExportedProgram, export
from torch.export.graph_signature import ConstantArgument, CustomObjArgument, InputKind, TensorArgument

from programs import healthy


def call(program: ExportedProgram, at: int = 0) -> torch.fx.Node:
    return [node for node in program.graph.nodes if node.op == "call_function"][at]


def last(program: ExportedProgram) -> torch.fx.Node:
    return next(iter(reversed(program.graph.nodes)))


def spec(program: ExportedProgram, kind: str):
    return next(item for item in program.graph_signature.input_specs if item.kind is InputKind[kind])


# -- graph


def val_missing():
    program = healthy.two()
    del call(program).meta["val"]
    return program


def placeholder_without_val():
    program = healthy.two()
    del next(iter(program.graph.nodes)).meta["val"]
    return program


def val_kind():
    program = healthy.two()
    call(program).meta["val"] = (call(program).meta["val"], object())
    return program


def operator_kind():
    program = healthy.two()
    call(program).target = torch.add
    return program


def not_functional():
    program = healthy.two()
    call(program).target = torch.ops.aten.add_.Tensor
    return program


def call_module():
    program = healthy.two()
    program.graph_module.part = torch.nn.ReLU()
    node = call(program)
    with program.graph.inserting_after(node):
        program.graph.create_node("call_module", "part", (node,))
    return program


def call_method():
    program = healthy.two()
    node = call(program)
    with program.graph.inserting_after(node):
        program.graph.create_node("call_method", "relu", (node,))
    return program


def attribute_absent():
    program = healthy.cond()
    del program.graph_module.true_graph_0
    return program


def attribute_name():
    program = healthy.cond()
    next(node for node in program.graph.nodes if node.op == "get_attr").target = 7
    return program


def attribute_type():
    program = healthy.two()
    program.graph_module.weight = torch.nn.Parameter(torch.ones(1))
    healthy._read_first(program, "weight")
    return program


def attribute_type_below():
    """In a subgraph tensors are allowed, other things are not."""
    program = healthy.cond()
    branch = program.graph_module.true_graph_0
    branch.thing = object()
    with branch.graph.inserting_before(next(iter(branch.graph.nodes))):
        branch.graph.create_node("get_attr", "thing")
    return program


def lowered_module():
    program = healthy.lowered()
    program.graph_module.lowered_module_0.processed_bytes = "text"
    return program


def lint_order():
    program = healthy.linear()
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    nodes[-1].append(nodes[0])
    return program


def lint_foreign():
    program, other = healthy.two(), healthy.two()
    node = call(program)
    node.args = (node.args[0], next(iter(other.graph.nodes)))
    return program


def lint_name_twice():
    program = healthy.two()
    call(program, 1).name = call(program, 0).name
    return program


def lint_other():
    program = healthy.two()
    call(program).target = "aten.add"
    return program


class ToyVerifier(Verifier):
    dialect = "TOY"

    def check_valid_op(self, op):
        if op is torch.ops.aten.mul.Tensor:
            raise ValueError("mul is not an operator of this backend")


class StrictVerifier(Verifier):
    dialect = "STRICT"

    def check_additional(self, gm):
        raise ValueError("no memory formats were planned")


class OddVerifier(Verifier):
    """Refuses the program for a reason that is in no list of rules."""

    dialect = "ODD"

    def allowed_getattr_types(self):
        return (object,)

    def allowed_getattr_types_for_subgm(self):
        return (object,)


def _of(program, verifier):
    program._verifiers = [verifier]
    return program


def dialect_operator():
    return _of(healthy.two(), ToyVerifier)


def dialect_graph():
    return _of(healthy.two(), StrictVerifier)


def dialect_fits():
    return _of(healthy.linear().run_decompositions(), StrictlyNothing)


class StrictlyNothing(Verifier):
    dialect = "NOTHING"


def refused_for_other_reasons():
    return _of(healthy.cond_aten(), OddVerifier)


def several():
    """Five violations: torch's verifier tells of one."""
    program = healthy.core_aten()
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    nodes[0].target = torch.ops.aten.transpose_.default
    del nodes[1].meta["val"]
    spec(program, "PARAMETER").target = "body.wait"
    program.graph_signature.output_specs.clear()
    return program


# -- signature


def input_count():
    program = healthy.two()
    program.graph_signature.input_specs.pop()
    return program


def input_name():
    program = healthy.two()
    specs = program.graph_signature.input_specs
    specs[0].arg, specs[1].arg = specs[1].arg, specs[0].arg
    return program


def _changed(which, **changes):
    def make():
        program = healthy.linear() if which != "CONSTANT_TENSOR" else healthy.constants()
        chosen = spec(program, which)
        for name, value in changes.items():
            setattr(chosen, name, value)
        return program

    return make


parameter_not_tensor = _changed("PARAMETER", arg=ConstantArgument(name="p", value=1))
parameter_no_target = _changed("PARAMETER", target=None)
parameter_absent = _changed("PARAMETER", target="body.wait")
buffer_not_tensor = _changed("BUFFER", arg=ConstantArgument(name="b", value=1))
buffer_no_target = _changed("BUFFER", target=None)
buffer_no_persistence = _changed("BUFFER", persistent=None)
buffer_absent = _changed("BUFFER", target="skale")
buffer_unwanted = _changed("BUFFER", persistent=False)
constant_not_tensor = _changed("CONSTANT_TENSOR", arg=ConstantArgument(name="c", value=1))
constant_no_target = _changed("CONSTANT_TENSOR", target=None)
constant_absent = _changed("CONSTANT_TENSOR", target="lifted_tensor_9")
_OBJECT = CustomObjArgument(name="c_lifted_tensor_0", class_fqn="demo.Queue")
object_not_object = _changed("CONSTANT_TENSOR", kind=InputKind.CUSTOM_OBJ)
object_no_target = _changed("CONSTANT_TENSOR", kind=InputKind.CUSTOM_OBJ, arg=_OBJECT, target=None)
object_absent = _changed("CONSTANT_TENSOR", kind=InputKind.CUSTOM_OBJ, arg=_OBJECT, target="queue")
object_there = _changed("CONSTANT_TENSOR", kind=InputKind.CUSTOM_OBJ, arg=_OBJECT)
not_token = _changed("CONSTANT_TENSOR", kind=InputKind.TOKEN)
input_kind = _changed("CONSTANT_TENSOR", kind="RNG_STATE")


def parameter_is_tensor():
    program = healthy.linear()
    program.state_dict["body.weight"] = torch.ones(4, 4)
    return program


def output_count():
    program = healthy.two()
    program.graph_signature.output_specs.pop()
    return program


def mutated_buffer_unknown():
    program = healthy.counter_aten()
    program.graph_signature.output_specs[0].target = "stops"
    return program


def mutated_input_unknown():
    program = written_aten()
    program.graph_signature.output_specs[0].target = "z"
    return program


def mutated_parameter_unknown():
    from torch.export.graph_signature import OutputKind

    program = healthy.counter_aten()
    first = program.graph_signature.output_specs[0]
    first.kind, first.target = OutputKind.PARAMETER_MUTATION, "weight"
    return program


def mutation_stray():
    program = healthy.counter_aten()
    output = last(program)
    output.args = (tuple(reversed(output.args[0])),)
    return program


def output_order():
    program = healthy.two()
    output = last(program)
    output.args = (tuple(reversed(output.args[0])),)
    return program


def module_call_input():
    program = healthy.preserved()
    program.module_call_graph[1].signature.inputs[0] = TensorArgument(name="gone")
    return program


def module_call_output():
    program = healthy.preserved()
    program.module_call_graph[1].signature.outputs[0] = TensorArgument(name="gone")
    return program


def no_output_node():
    program = healthy.two()
    program.graph.erase_node(last(program))
    return program


def not_a_tuple():
    program = healthy.two()
    last(program).args = (call(program),)
    return program


# -- what makes AOTInductor fail later


class Written(torch.nn.Module):
    def forward(self, x):
        x[0].add_(1)
        return x * 2


def written():
    return export(Written(), (torch.randn(3, 4),))


def written_aten():
    return written().run_decompositions()


def parameter_written():
    class Rescaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(4), requires_grad=False)

        def forward(self, x):
            self.w.div_(2)
            return x + self.w

    return export(Rescaled(), (torch.randn(4),))


def parameter_written_aten():
    return parameter_written().run_decompositions()


def no_shim():
    class Eig(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.eigvals(x).abs()

    return export(Eig(), (torch.randn(3, 3),))


def shim_of_another_device():
    class Attention(torch.nn.Module):
        def forward(self, q):
            return torch.ops.aten._scaled_dot_product_flash_attention(q, q, q)[0]

    return export(Attention(), (torch.randn(1, 2, 8, 16),))


def _custom(name, *, fake=True, kernel=True):
    library = torch.library.Library("zoolate", "FRAGMENT")
    healthy.__dict__.setdefault("_kept", []).append(library)
    library.define(f"{name}(Tensor x) -> Tensor")
    if kernel:
        library.impl(name, lambda x: x + 1, "CPU")
    holder = torch._library.simple_registry.singleton.find(f"zoolate::{name}").fake_impl
    handle = holder.register(torch.empty_like, "here", lib=library)

    class Model(torch.nn.Module):
        def forward(self, x):
            return getattr(torch.ops.zoolate, name)(x) * 2

    program = export(Model(), (torch.randn(4),))
    if not fake:
        handle.destroy()
    return program


def custom_without_fake():
    return _custom("no_fake", fake=False)


def custom_without_kernel():
    return _custom("no_kernel", kernel=False)


def unbounded():
    class Zeros(torch.nn.Module):
        def forward(self, x):
            return torch.zeros(x.max().to(torch.int64).item()) + 1

    return export(Zeros(), (torch.tensor([3.0, 5.0]),))


def unbounded_by_nature():
    class NonZero(torch.nn.Module):
        def forward(self, x):
            return torch.nonzero(x) + 1

    return export(NonZero(), (torch.randn(6),), dynamic_shapes=({0: Dim.DYNAMIC},))


def specialized():
    """``y`` goes with ``x`` and was not declared; ``view`` holds the sample's size."""

    class Pair(torch.nn.Module):
        def forward(self, x, y):
            return x.sum() + y.sum() + torch.zeros(6).sum()

    return export(Pair(), (torch.randn(6, 2), torch.randn(6, 2)), dynamic_shapes=({0: Dim("batch", min=2)}, {}))


def dropout_on():
    return export(healthy.Norm().train(), (torch.randn(3, 4),))


def dropout_on_aten():
    return dropout_on().run_decompositions()


def large():
    class Large(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("w", torch.zeros(1).expand(600_000_000))

        def forward(self, x):
            return x + self.w[0]

    return export(Large(), (torch.randn(3),))


class Cast(torch.nn.Module):
    def forward(self, x):
        return x.to(torch.float8_e8m0fnu).to(torch.float32) + 1


def dtype_between():
    return export(Cast(), (torch.ones(4),))


def dtype_of_input():
    return export(Cast(), (torch.ones(4).to(torch.float8_e8m0fnu),))


def number():
    return export(healthy.Sized(), (torch.randn(3), 5), dynamic_shapes=({}, Dim.DYNAMIC))


def custom_object():
    program = healthy.two()
    program.graph_signature.input_specs[1].arg = CustomObjArgument(name="y", class_fqn="demo.Queue")
    return program
