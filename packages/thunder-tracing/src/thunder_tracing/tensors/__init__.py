"""Traced tensors: what torch functions make of them, their views and memory, and writes made functional."""
