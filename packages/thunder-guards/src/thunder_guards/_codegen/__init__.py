"""The code of a specialisation: prologue, epilogue and results as Python, and the choice of the right one."""
