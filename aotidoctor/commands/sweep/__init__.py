"""Call a package at the boundary of its contract (``aotidoctor sweep``)."""
