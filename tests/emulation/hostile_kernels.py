"""Texts of kernels that try to get out: by name, what stands before the kernel, and in it.

``MARK`` is a file that a text makes where it succeeds.
"""

_SYSTEM = "os.system('touch MARK')"

HOSTILE: dict[str, tuple[str, str]] = {
    # By what an allowed name leads to.
    "heuristics": ("", f"x = triton_heuristics.{_SYSTEM}"),
    "renamed module": ("", f"t = triton; t.runtime.cache.{_SYSTEM}"),
    "module renamed by its import": ("import triton as z", f"z.runtime.cache.{_SYSTEM}"),
    "what the interpreter adds": ("", "m = inspect.linecache; m.os.system('touch MARK')"),
    "what the interpreter adds, bare": ("", f"inspect.{_SYSTEM}"),
    "helpers": ("", f"x = triton_helpers; x.{_SYSTEM}"),
    "language": ("", f"x = tl.core; x.{_SYSTEM}"),
    "in a tuple": ("", f"(triton,)[0].runtime.cache.{_SYSTEM}"),
    "in a list": ("", f"[triton][0].runtime.cache.{_SYSTEM}"),
    "by a condition": ("", f"(triton if True else 1).runtime.cache.{_SYSTEM}"),
    "by or": ("", f"(0 or triton).runtime.cache.{_SYSTEM}"),
    "as an argument": ("@triton.jit\ndef f(m):\n    m.runtime.cache.os.system('touch MARK')", "f(triton)"),
    "as a constant": ("M = triton", f"M.runtime.cache.{_SYSTEM}"),
    "as a loop variable": ("", f"for m in (triton,): m.runtime.cache.{_SYSTEM}"),
    "by a comprehension": ("", f"x = [m.runtime.cache.{_SYSTEM} for m in (triton,)]"),
    "by a lambda": ("", f"x = (lambda m: m.runtime.cache.{_SYSTEM})(triton)"),
    "by a walrus": ("", f"(m := triton).runtime.cache.{_SYSTEM}"),
    "by a with": ("", f"with triton as m: m.runtime.cache.{_SYSTEM}"),
    "by a match": ("", "match triton:\n        case m: m.runtime.cache.os.system('touch MARK')"),
    "by an except": ("", "try: pass\n    finally: triton_heuristics.os.system('touch MARK')"),
    "in an f-string": ("", "x = f'{triton_heuristics.os.system(\"touch MARK\")}'"),
    "by an annotation": ("", "x: triton_heuristics.os.system('touch MARK') = 1"),
    "by a parameter's annotation": (
        "@triton.jit\ndef f(x: triton_heuristics.os.system('touch MARK')):\n    return x",
        "f(1)",
    ),
    "by a default of a parameter": (
        "@triton.jit\ndef f(x=triton_heuristics.os.system('touch MARK')):\n    return x",
        "f(1)",
    ),
    "by a decorator": ("@triton_heuristics.os.system('touch MARK')\ndef f(x):\n    return x", "pass"),
    "by a base class": ("class A(triton_heuristics.os.system('touch MARK')): pass", "pass"),
    "by the globals of a function": (
        "",
        "tl.cdiv.fn.__globals__['builtins'].exec(\"import os; os.system('touch MARK')\")",
    ),
    "by a format": ("", "x = '{0.__class__}'.format(tl); triton_heuristics.os.system(x + 'touch MARK')"),
    "an inner function": ("", "\n    def g(): return triton_heuristics.os.system('touch MARK')\n    g()"),
    # By what is read again: the text from the last line that looks like a definition.
    "a docstring": (
        "",
        '"""\n    def k(in_ptr0, XBLOCK):\n        inspect.os.system("touch MARK")\n        x = 1 # """\n    pass',
    ),
    "a text": (
        "",
        'x = """\n    def k(in_ptr0, XBLOCK):\n        inspect.os.system("touch MARK")\n        x = 1 # """',
    ),
    # By the interpreter's own arguments and names.
    "semantic": ("", "tl.load(in_ptr0, _semantic=triton_heuristics.os.system('touch MARK'))"),
    "meaning of the interpreter's name": (
        "@triton.jit\ndef interpreter_semantic(x):\n    return inspect.os.system('touch MARK')",
        "x = interpreter_semantic(1)",
    ),
    "an import by hand": ("from triton.runtime.cache import os as tl", "tl.system('touch MARK')"),
    "an import of a listed name": ("from triton.language.core import builtins as b", "b.eval('1')"),
    "a relative import": ("from . import os", "os.system('touch MARK')"),
    "names of builtins": ("", "print.__self__.exec(\"import os; os.system('touch MARK')\")"),
}
# What is dropped, or is never anything but a text.
HARMLESS = ("by an annotation", "by a parameter's annotation", "a docstring", "a text")
# These reach nothing, and would take memory or time.
BOUNDLESS: dict[str, tuple[str, str]] = {
    "a power": ("", "x = 9 ** 9 ** 9"),
    "a long number": ("", f"x = 0x{'f' * 5000}"),
    "deep": ("", f"x = {'-' * 300}1"),
    "a long sum": ("", f"x = {' + '.join(['1'] * 300)}"),
    "many arguments": ("", "x = max(*(1, 2))"),
    "a long tuple": ("", "x = tuple(range(1 << 40))"),
    "named arguments": ("", "x = max(**{})"),
}
