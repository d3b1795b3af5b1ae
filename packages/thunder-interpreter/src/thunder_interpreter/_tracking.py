"""Which handler keeps the shadow for which instruction."""

import dis
from typing import Any, TypeAlias

from thunder_interpreter._decode import TRACKERS, Instruction
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._provenance import NO_VALUE
from thunder_interpreter._shadow import (
    begin,
    begin_loop,
    calling,
    copying,
    iterating,
    load_cell,
    load_fast,
    load_global,
    load_two,
    make_cell,
    one_result,
    padding,
    plain_operands,
    push_constant,
    pushing,
    returning,
    several_results,
    store_and_load,
    store_cell,
    store_fast,
    store_two,
    swapping,
    two_operands,
    value_and_null,
)

keep_builtins(globals())


PLAIN_OPERATORS: set[Any] = set()


PLAIN_CONSTANTS: set[Any] = set()


UNTRACKED = frozenset(
    """
    POP_TOP STORE_ATTR STORE_SUBSCR STORE_SLICE STORE_GLOBAL STORE_NAME DELETE_ATTR DELETE_SUBSCR DELETE_FAST
    DELETE_NAME DELETE_GLOBAL DELETE_DEREF LIST_APPEND LIST_EXTEND SET_ADD SET_UPDATE MAP_ADD DICT_UPDATE DICT_MERGE
    JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT POP_EXCEPT RAISE_VARARGS RERAISE COPY_FREE_VARS
    SETUP_ANNOTATIONS END_FOR JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP RETURN_GENERATOR TO_BOOL
    """.split()
)


RESULTS = {  # the number of operands of what pushes one result
    "BINARY_SUBSCR": (2, "item"),
    "BINARY_SLICE": (3, "slice"),
    "UNARY_NEGATIVE": (1, "operator"),
    "UNARY_POSITIVE": (1, "operator"),
    "UNARY_INVERT": (1, "operator"),
    "UNARY_NOT": (1, "operator"),
    "LIST_TO_TUPLE": (1, "other"),
    "CALL_INTRINSIC_1": (1, "other"),
    "CALL_INTRINSIC_2": (2, "other"),
    "FORMAT_SIMPLE": (1, "other"),
    "FORMAT_WITH_SPEC": (2, "other"),
    "CONVERT_VALUE": (1, "other"),
    "YIELD_VALUE": (1, "other"),
    "GET_YIELD_FROM_ITER": (1, "other"),
    "GET_AWAITABLE": (1, "other"),
}


BUILDS = {f"BUILD_{name.upper()}": name for name in ("tuple", "list", "set", "slice")} | {"BUILD_STRING": "str"}


SYMBOLS = {"UNARY_NEGATIVE": "-", "UNARY_POSITIVE": "+", "UNARY_INVERT": "~", "UNARY_NOT": "not "}


PAIRS = {
    "LOAD_FAST_LOAD_FAST": load_two,
    "STORE_FAST_LOAD_FAST": store_and_load,
    "STORE_FAST_STORE_FAST": store_two,
}


Tracked: TypeAlias = tuple[Any, Any]


def tracked(instruction: Instruction, step: Tracked) -> Tracked:
    """The step that does ``step`` and keeps the shadow."""
    return tracked_variable(instruction, step) or tracked_access(instruction, step) or tracked_rest(instruction, step)


def tracked_variable(instruction: Instruction, step: Tracked) -> Tracked | None:
    """As ``tracked``, for variables, constants and what moves values on the stack."""
    name, arg = instruction.name, instruction.arg
    handler, argument = step
    if name in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_CLOSURE"):
        return load_fast, (handler, argument, arg)
    if name == "STORE_FAST":
        return store_fast, arg
    if name in PAIRS:
        return PAIRS[name], argument
    if name in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
        return load_cell, (handler, argument, 0, arg)
    if name == "LOAD_FROM_DICT_OR_DEREF":
        return load_cell, (handler, argument, 1, arg)
    if name == "STORE_DEREF":
        return store_cell, (handler, argument, arg)
    if name == "MAKE_CELL":
        return make_cell, (handler, argument, arg)
    if name == "LOAD_CONST":
        record = ("constant", argument)
        if handler in PLAIN_CONSTANTS:
            return push_constant, (argument, record)
        return pushing, (handler, argument, record)
    if name == "PUSH_NULL":
        return pushing, (handler, argument, NO_VALUE)
    if name == "COPY":
        return copying, (handler, arg)
    if name == "SWAP":
        return swapping, (handler, arg)
    return None


def tracked_access(instruction: Instruction, step: Tracked) -> Tracked | None:
    """As ``tracked``, for globals, attributes, calls, loops and returns."""
    name, arg = instruction.name, instruction.arg
    handler, argument = step
    above = "CALL_KW" in dis.opmap  # since then, NULL lies above the callable
    if name == "LOAD_GLOBAL":
        if argument[1]:
            record = ("global", argument[0])
            return load_global, (handler, argument, [record, NO_VALUE] if above else [NO_VALUE, record])
        return pushing, (handler, argument, ("global", argument[0]))
    if name == "LOAD_NAME":
        return pushing, (handler, argument, ("global", argument))
    if name == "LOAD_METHOD":
        return value_and_null, (handler, argument, 1, "attribute", argument, above)
    if name in ("LOAD_ATTR", "LOAD_SUPER_ATTR"):
        pops = 1 if name == "LOAD_ATTR" else 3
        key, method = (argument, False) if isinstance(argument, str) else argument[:2]
        if method:
            return value_and_null, (handler, argument, pops, "attribute", key, above)
        return one_result, (handler, argument, pops, "attribute", key)
    if name == "GET_ITER":
        return begin_loop, step
    if name == "FOR_ITER":
        return iterating, step
    if name == "CALL":
        return calling, (handler, argument, arg + 2, instruction.keywords)
    if name == "CALL_KW":
        return calling, (handler, argument, arg + 3, None)
    if name == "RETURN_VALUE":
        return returning, (handler, argument, None)
    if name == "RETURN_CONST":
        return returning, (handler, argument, ("constant", argument))
    return None


def tracked_rest(instruction: Instruction, step: Tracked) -> Tracked:
    """As ``tracked``, for operators, containers and everything else."""
    name, arg = instruction.name, instruction.arg
    handler, argument = step
    if name in UNTRACKED or name.startswith("POP_JUMP"):
        return step
    if name in ("BINARY_OP", "COMPARE_OP"):
        at_once = handler in PLAIN_OPERATORS and len(argument) == 2
        return plain_operands if at_once else two_operands, (handler, argument, argument[0])
    if name == "CONTAINS_OP":
        return two_operands, (handler, argument, "not in" if arg else "in")
    if name == "IS_OP":
        return two_operands, (handler, argument, "is not" if arg else "is")
    if name in BUILDS:
        return one_result, (handler, argument, arg, "container", BUILDS[name])
    if name in ("BUILD_MAP", "BUILD_CONST_KEY_MAP"):
        return one_result, (handler, argument, 2 * arg if name == "BUILD_MAP" else arg + 1, "container", "dict")
    if name in RESULTS:
        pops, kind = RESULTS[name]
        return one_result, (handler, argument, pops, kind, SYMBOLS.get(name, name))
    if name == "UNPACK_SEQUENCE":
        return several_results, (handler, argument, 1, arg, name)
    if name == "UNPACK_EX":
        return several_results, (handler, argument, 1, sum(argument) + 1, name)
    opcode = dis.opmap[name]
    effect = dis.stack_effect(opcode, arg if opcode >= dis.HAVE_ARGUMENT else None, jump=False)
    return padding, (handler, argument, effect, name)


TRACKERS.update(first=begin, step=tracked)
