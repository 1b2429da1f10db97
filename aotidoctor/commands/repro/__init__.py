"""Write a short script that fails as the user's call does, with torch alone (``aotidoctor repro``)."""
