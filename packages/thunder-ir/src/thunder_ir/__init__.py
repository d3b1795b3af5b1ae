"""Traces that are programs: dtypes, proxies, symbols, traces and the passes that know no operation."""

from thunder_ir import devices, dtypes
from thunder_ir._version import __version__
from thunder_ir.builder import Builder, Constraint, current_builder, find_builder, recording, speaking
from thunder_ir.codegen import Source, print_function
from thunder_ir.collector import collector_paused
from thunder_ir.devices import Device, DeviceType, device
from thunder_ir.dtypes import DType, dtype
from thunder_ir.errors import (
    DeviceError,
    DimensionError,
    DTypeError,
    DuplicateRuleError,
    MissingRuleError,
    OutsideTraceError,
    ShapeError,
    ThunderError,
    TraceFormatError,
    UnknownNumberError,
    VerificationError,
)
from thunder_ir.execution_file import is_edited, set_execution_callback_file
from thunder_ir.frozen import quickly_made
from thunder_ir.languages import Language
from thunder_ir.literals import Context, literal, register_literal
from thunder_ir.locations import Location
from thunder_ir.names import Names
from thunder_ir.number_proxies import (
    BoolProxy,
    ComplexProxy,
    FloatProxy,
    IntegerProxy,
    NumberProxy,
    are_one_number,
    is_one,
    number_proxy,
    same_shape,
    value_of,
)
from thunder_ir.proxies import AnyProxy, CollectionProxy, Proxy, StringProxy
from thunder_ir.reachability import reached
from thunder_ir.rules import REVISION, RuleTable
from thunder_ir.saving import load_trace, register_codec, save_trace
from thunder_ir.symbols import BoundSymbol, Namespace, OpTags, Symbol, bind
from thunder_ir.tensor_proxies import Tensor, TensorProxy
from thunder_ir.trace import Provenance, Trace, provide_default_language, record, trace_of
from thunder_ir.trees import flat_proxies, map_values, substitute, tree_map, values_in
from thunder_ir.unknown import Unknown, is_unknown
from thunder_ir.verifier import verify

__all__ = [
    "REVISION", "AnyProxy", "BoolProxy", "BoundSymbol", "Builder", "CollectionProxy", "ComplexProxy", "Constraint",
    "Context", "DType", "DTypeError", "Device", "DeviceError", "DeviceType", "DimensionError", "DuplicateRuleError",
    "FloatProxy", "IntegerProxy", "Language", "Location", "MissingRuleError", "Names", "Namespace", "NumberProxy",
    "OpTags", "OutsideTraceError", "Provenance", "Proxy", "RuleTable", "ShapeError", "Source", "StringProxy",
    "Symbol", "Tensor", "TensorProxy", "ThunderError", "Trace", "TraceFormatError", "Unknown", "UnknownNumberError",
    "VerificationError", "__version__", "are_one_number", "bind", "collector_paused", "current_builder", "device",
    "devices", "dtype", "dtypes", "find_builder", "flat_proxies", "is_edited", "is_one", "is_unknown", "literal",
    "load_trace", "map_values", "number_proxy", "print_function", "provide_default_language", "quickly_made",
    "reached", "record", "recording", "register_codec", "register_literal", "same_shape", "save_trace",
    "set_execution_callback_file", "speaking", "substitute", "trace_of", "tree_map", "value_of", "values_in",
    "verify",
]  # fmt: skip
