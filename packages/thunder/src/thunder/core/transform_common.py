"""What transforms are derived from, and passes that know no operation."""

from thunder_frontend import Transform
from thunder_ir.passes import common_subexpressions, dead_code_elimination

cse, dce = common_subexpressions, dead_code_elimination

__all__ = ["Transform", "cse", "dce"]
