"""Emulate a CUDA package on the CPU: the wrapper's statements replayed, its Triton kernels interpreted.

``emulate`` is the entrance and chooses the passes, ``wrapper`` replays ``run_impl`` statement by statement, ``shims``
are the operators that it calls, ``engine`` its launches, ``storage`` stands for device memory. A launch is carried
out lane by lane (``launch``, in Triton's ``interpreter``, with ``checked_memory``), or its addresses alone are looked
at for the whole grid at once (``address_slices`` of ``index_nodes``, which ``address_check`` looks at). Nothing here
times anything or imitates warps: programs run one after the other.

Why the wrapper is replayed and not compiled: tried on five packages, both ways give the same outputs. Compiled for the
CPU, with launches as callbacks, the control flow is that of C++, and 130 lines do it; but the compiler takes fifty
times as long to the first launch, one function that it does not know costs the whole package, an address is all that
is known of a buffer, and no operator can be left out until its values are needed. Replayed, each tensor keeps the
wrapper's name, and a statement that cannot be carried out costs only what depends on it.
"""
