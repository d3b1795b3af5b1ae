"""Opcodes that Python 3.12 brought."""
