"""``aotidoctor map``: one call of a package from inside."""
