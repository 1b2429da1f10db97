"""The code that Inductor writes, read as text: expressions, and what the statements of a kernel compute."""
