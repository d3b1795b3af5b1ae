"""Kernels in Triton, and the plain functions that launch them. Imported when the first of them is called."""
