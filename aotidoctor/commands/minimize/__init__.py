"""``aotidoctor minimize``: the smallest part of a program that still fails in the same way.

``search`` decides what to try next, ``attempt`` tries it in children, ``folder`` keeps what was answered.
"""
