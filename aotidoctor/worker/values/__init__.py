"""Values of each call of a loaded package, seen while it runs: no second compile, no printer.

``follow_values`` follows a run, ``match_values`` compares what was written with the values of a reference program.
"""
