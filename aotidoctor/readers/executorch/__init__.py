"""Readers of ExecuTorch programs and data files."""
