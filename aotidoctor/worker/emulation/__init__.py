"""Emulate a CUDA package on the CPU: the wrapper's statements replayed, its Triton kernels interpreted.

``emulate`` is the entry point and chooses the passes, ``wrapper`` replays ``run_impl`` statement by statement,
``shims`` has the operators that it calls, ``engine`` its launches, ``storage`` emulates device memory. A launch is run
lane by lane (``launch``, in Triton's ``interpreter``, with ``checked_memory``), or its addresses alone are checked for
the whole grid at once (``address_check``, on the ``index_nodes`` that ``address_slices`` extracts). Neither timing nor
warps are emulated: programs run one after the other.

Why the wrapper is replayed and not compiled: tried on five packages, both ways give the same outputs. Compiled for the
CPU, with launches as callbacks, the control flow is that of C++, and 130 lines are enough; but the first launch takes
fifty times as long because of the compiler, one unknown function costs the whole package, only the address of a buffer
is known, and no operator can be deferred until its values are needed. In a replay each tensor has the wrapper's name,
and a statement that cannot be carried out costs only what depends on it.
"""
