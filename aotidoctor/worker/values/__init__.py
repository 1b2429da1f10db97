"""Observe the values of each call of a loaded package while it runs, without a second compile or a printer.

``follow_values`` follows a run, ``match_values`` compares the results of its calls with a reference program,
``varied_calls`` those of calls that differ in one thing.
"""
