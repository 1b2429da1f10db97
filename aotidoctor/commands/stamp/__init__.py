"""``aotidoctor stamp``: the origin of a package, written into its metadata."""
