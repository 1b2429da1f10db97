"""A CUDA package carried out on the CPU: the wrapper's statements replayed, its Triton kernels interpreted.

``job`` is the entrance, ``passes`` choose the way, ``wrapper`` replays ``run_impl`` statement by statement with
``variables``, ``shims`` are the operators that it calls, ``engine`` its launches: ``lanes`` carry out a launch lane by
lane with checked memory, ``addresses`` look at where it goes alone, and ``look`` takes the one or the other.
``pending`` is what that leaves out, ``storage`` stands for device memory. Nothing here times anything or imitates
warps: programs run one after the other.

Why the wrapper is replayed and not compiled: its statements are few and regular, each tensor keeps the wrapper's name,
a statement that cannot be carried out costs only what depends on it, and no compiler is needed. Compiled for the CPU,
one unknown function would cost the whole package, and a pointer would be all that is known of a buffer.
"""
