"""``aotidoctor sweep``: what a package does at the boundary of its contract.

``points`` plans the calls, ``ask`` makes them in children, ``judge`` says what a row means.
"""
