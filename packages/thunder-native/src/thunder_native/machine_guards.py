"""The native code that looks whether tensors, and what held objects are made of, are as they were, as LLVM's text."""

from thunder_native.machine_text import attempt, function, loop, reads

_DECLARATIONS = """
declare i32 @aoti_torch_get_dtype(ptr, ptr)
declare i32 @aoti_torch_get_device_index(ptr, ptr)
declare i1 @_ZNK3c1010TensorImpl13requires_gradEv(ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyBool_FromLong(i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare i64 @PyDict_Size(ptr)
declare ptr @_PyType_Lookup(ptr, ptr)
declare i64 @_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv()
declare i64 @_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv()
declare ptr @_ZN2at9functorch20getDynamicLayerStackEv()
declare ptr @_ZN5torch3jit6tracer15getTracingStateEv()
declare ptr @PyObject_GenericGetDict(ptr, ptr)
"""

_ANSWERS = """yes:
  %true = call ptr @PyBool_FromLong(i64 1)
  ret ptr %true
no:
  %false = call ptr @PyBool_FromLong(i64 0)
  ret ptr %false
"""
"""The last blocks of what Python calls to be told whether something is so."""

# a table of so many words, a power of two and at least twice as many as are put into it, all of them zero
_TABLE = function(
    "i64 @bits_for(i64 %count) alwaysinline",
    """
  %twice = shl i64 %count, 1
  %some = or i64 %twice, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %some, i1 true)
  %bits = sub i64 64, %zeros
  ret i64 %bits
""",
)

# whether a word, none of them zero, is not yet in a table of 2 ** %bits words; it is put there
_FRESH = function(
    "i1 @fresh(ptr %table, i64 %bits, i64 %word)",
    """
  %mixed = mul i64 %word, -7046029254386353131
  %shift = sub i64 64, %bits
  %first = lshr i64 %mixed, %shift
  %size = shl i64 1, %bits
  %mask = sub i64 %size, 1
  br label %probe
probe:
  %place = phi i64 [ %first, %start ], [ %place_next, %taken ]
  %at = getelementptr i64, ptr %table, i64 %place
  %there = load i64, ptr %at
  %is_free = icmp eq i64 %there, 0
  br i1 %is_free, label %put, label %compare
compare:
  %is_same = icmp eq i64 %there, %word
  br i1 %is_same, label %known, label %taken
taken:
  %after = add i64 %place, 1
  %place_next = and i64 %after, %mask
  br label %probe
put:
  store i64 %word, ptr %at
  ret i1 true
known:
  ret i1 false
""",
)

_EMPTY = """
  %bits = call i64 @bits_for(i64 {count})
  %size = shl i64 1, %bits
  %bytes = shl i64 %size, 3
  %table = alloca i64, i64 %size
  call void @llvm.memset.p0.i64(ptr %table, i8 0, i64 %bytes, i1 false)
"""
"""An empty table for so many words, of ``%bits``."""

# What Python calls with a tuple, by METH_FASTCALL: whether its items, but for the first ones, are the same objects as
# the rows say, and tensors as they say; and whether none of the first ones is another item.
_UNCHANGED = function(
    "ptr @unchanged(ptr %self, ptr %args, i64 %given)",
    f"""
  %dtype_at = alloca i32
  %device_at = alloca i32
  %shape_at = alloca ptr
  %strides_at = alloca ptr
  store i32 0, ptr %dtype_at
  store i32 0, ptr %device_at
  %program = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
{reads("word count, word others, word tensor_offset, word key_offset", "%program")}
  %rows = getelementptr i64, ptr %program, i64 4
  %all = add i64 %count, %others
  %tuple = load ptr, ptr %args
  %length = call i64 @PyTuple_Size(ptr %tuple)
  %fits = icmp eq i64 %length, %all
  br i1 %fits, label %held, label %no
held:
{loop("i", "%count", "look", "apart", enter="held", back="compare", carried={"ptr at": ("%rows", "%at_next")})}
{reads("word other, word class, word keys, word device, word dtype, word requires, word dims", "%at")}
  %sizes = getelementptr i64, ptr %at, i64 7
  %strides = getelementptr i64, ptr %sizes, i64 %dims
  %at_next = getelementptr i64, ptr %strides, i64 %dims
  %place = add i64 %i, %others
  %object = call ptr @PyTuple_GetItem(ptr %tuple, i64 %place)
  %identity = ptrtoint ptr %object to i64
  %is_same = icmp eq i64 %identity, %other
  br i1 %is_same, label %typed, label %no
typed:
  %class_now = call i64 @word(ptr %object, i64 1)
  %is_class = icmp eq i64 %class_now, %class
  br i1 %is_class, label %keyed, label %no
keyed:
  %handle = getelementptr i8, ptr %object, i64 %tensor_offset
  %tensor = load ptr, ptr %handle
  %plain = call i1 @plain(ptr %tensor, i64 %key_offset, i64 %keys, i64 %keys)
  br i1 %plain, label %asked, label %no
asked:
  %requires_now = call i1 @_ZNK3c1010TensorImpl13requires_gradEv(ptr %tensor)
  %requires_word = zext i1 %requires_now to i64
  %is_requiring = icmp eq i64 %requires_word, %requires
  br i1 %is_requiring, label %described, label %no
described:
{
        attempt(
            "known",
            "aoti_torch_get_dtype(ptr %handle, ptr %dtype_at)",
            "aoti_torch_get_device_index(ptr %handle, ptr %device_at)",
            "lies(ptr %handle, i64 %dims, ptr %shape_at, ptr %strides_at)",
            otherwise="no",
        )
    }
  %dtype_now = load i32, ptr %dtype_at
  %dtype_word = sext i32 %dtype_now to i64
  %is_dtype = icmp eq i64 %dtype_word, %dtype
  %device_now = load i32, ptr %device_at
  %device_word = sext i32 %device_now to i64
  %is_device = icmp eq i64 %device_word, %device
  %shape = load ptr, ptr %shape_at
  %lying = load ptr, ptr %strides_at
  %is_shape = call i1 @alike(ptr %shape, ptr %sizes, i64 %dims)
  %is_lying = call i1 @alike(ptr %lying, ptr %strides, i64 %dims)
  %is_both = and i1 %is_shape, %is_lying
  %is_kind = and i1 %is_device, %is_dtype
  %is_all = and i1 %is_both, %is_kind
  br i1 %is_all, label %compare, label %no
compare:
  br label %each_i
apart:
  %has_others = icmp sgt i64 %others, 0
  br i1 %has_others, label %among, label %yes
among:{_EMPTY.format(count="%all")}
{loop("j", "%all", "one", "yes", enter="among")}
  %first = call ptr @PyTuple_GetItem(ptr %tuple, i64 %j)
  %first_word = ptrtoint ptr %first to i64
  %is_apart = call i1 @fresh(ptr %table, i64 %bits, i64 %first_word)
  br i1 %is_apart, label %each_j, label %no
{_ANSWERS}""",
    linkage="",
)

FACTS = (
    "word found, address containers, address keys, address expected, word lacking, address without, address names, "
    "word empties, address holders, address empty, word typed, address objects, address types, "
    "word owned, address owners, address dicts, word asked, address classes, address attributes, address values, "
    "word dict_type, word ordered_type, word modes, word tensor_offset, word key_offset, word tensors, address kinds"
)
"""The words of facts: rows of objects, each kind behind their number, and the types that a dictionary may have."""

# whether just so many modes are there that functions are dispatched to, none for operators, no transform of functorch,
# which are in a vector, and no tracing, whose state is owned by a pointer
_UNWATCHED = function(
    "i1 @unwatched(i64 %modes)",
    """
  %modes_now = call i64 @_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv()
  %is_modes = icmp eq i64 %modes_now, %modes
  %dispatching = call i64 @_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv()
  %no_dispatching = icmp eq i64 %dispatching, 0
  %layers = call ptr @_ZN2at9functorch20getDynamicLayerStackEv()
  %begin = call i64 @word(ptr %layers, i64 0)
  %end = call i64 @word(ptr %layers, i64 1)
  %no_layer = icmp eq i64 %begin, %end
  %tracing = call ptr @_ZN5torch3jit6tracer15getTracingStateEv()
  %state = call i64 @word(ptr %tracing, i64 0)
  %no_tracing = icmp eq i64 %state, 0
  %no_modes = and i1 %is_modes, %no_dispatching
  %no_other = and i1 %no_layer, %no_tracing
  %unwatched = and i1 %no_modes, %no_other
  ret i1 %unwatched
""",
)

# What Python calls with tensors, by METH_FASTCALL: whether these are of their classes and have their dispatch keys;
# dictionaries have the very objects at their keys, lack names, and have empty dictionaries at keys; objects have their
# types and dictionaries; classes find what they found; and nobody else sees operations.
_AS_FOUND = function(
    "ptr @as_found(ptr %self, ptr %args, i64 %given)",
    f"""
  %program = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
{reads(FACTS, "%program")}
  %unwatched = call i1 @unwatched(i64 %modes)
  %fits = icmp eq i64 %given, %tensors
  %may = and i1 %unwatched, %fits
  br i1 %may, label %begin, label %no
begin:
{loop("n", "%tensors", "tensor_of", "alike", enter="begin", back="keyed")}
  %seen = call ptr @address(ptr %args, i64 %n)
  %row = getelementptr i64, ptr %kinds, i64 %n
  %class_now = call i64 @word(ptr %seen, i64 1)
  %class_then = call i64 @word(ptr %row, i64 %n)
  %is_class = icmp eq i64 %class_now, %class_then
  br i1 %is_class, label %keyed, label %no
keyed:
  %handle = getelementptr i8, ptr %seen, i64 %tensor_offset
  %tensor = load ptr, ptr %handle
  %next = add i64 %n, 1
  %keys_then = call i64 @word(ptr %row, i64 %next)
  %plain = call i1 @plain(ptr %tensor, i64 %key_offset, i64 %keys_then, i64 %keys_then)
  br i1 %plain, label %each_n, label %no
alike:
{loop("t", "%typed", "type", "of_types", enter="alike")}
  %object = call ptr @address(ptr %objects, i64 %t)
  %type_now = call i64 @word(ptr %object, i64 1)
  %type_then = call i64 @word(ptr %types, i64 %t)
  %is_type = icmp eq i64 %type_now, %type_then
  br i1 %is_type, label %each_t, label %no
of_types:
{loop("d", "%owned", "dict", "with_dicts", enter="of_types", back="compare_dict")}
  %owner = call ptr @address(ptr %owners, i64 %d)
  %dict_then = call ptr @address(ptr %dicts, i64 %d)
  %dict_now = call ptr @PyObject_GenericGetDict(ptr %owner, ptr null)
  %no_dict = icmp eq ptr %dict_now, null
  br i1 %no_dict, label %no, label %compare_dict
compare_dict:
  call void @Py_DecRef(ptr %dict_now)
  %is_dict = icmp eq ptr %dict_now, %dict_then
  br i1 %is_dict, label %each_d, label %no
with_dicts:
{loop("c", "%asked", "attribute_of", "giving", enter="with_dicts")}
  %class = call ptr @address(ptr %classes, i64 %c)
  %attribute = call ptr @address(ptr %attributes, i64 %c)
  %value = call ptr @address(ptr %values, i64 %c)
  %value_now = call ptr @_PyType_Lookup(ptr %class, ptr %attribute)
  %is_value = icmp eq ptr %value_now, %value
  br i1 %is_value, label %each_c, label %no
giving:
{loop("i", "%found", "slot", "having", enter="giving")}
  %container = call ptr @address(ptr %containers, i64 %i)
  %key = call ptr @address(ptr %keys, i64 %i)
  %wanted = call ptr @address(ptr %expected, i64 %i)
  %item = call ptr @PyDict_GetItemWithError(ptr %container, ptr %key)
  %is_item = icmp eq ptr %item, %wanted
  br i1 %is_item, label %each_i, label %no
having:
{loop("l", "%lacking", "lack", "lacks", enter="having")}
  %poor = call ptr @address(ptr %without, i64 %l)
  %name = call ptr @address(ptr %names, i64 %l)
  %named = call ptr @PyDict_GetItemWithError(ptr %poor, ptr %name)
  %is_absent = icmp eq ptr %named, null
  br i1 %is_absent, label %each_l, label %no
lacks:
{loop("e", "%empties", "hollow", "all", enter="lacks", back="sized")}
  %holder = call ptr @address(ptr %holders, i64 %e)
  %at = call ptr @address(ptr %empty, i64 %e)
  %inner = call ptr @PyDict_GetItemWithError(ptr %holder, ptr %at)
  %no_inner = icmp eq ptr %inner, null
  br i1 %no_inner, label %no, label %kind
kind:
  %inner_type = call i64 @word(ptr %inner, i64 1)
  %is_plain = icmp eq i64 %inner_type, %dict_type
  %is_ordered = icmp eq i64 %inner_type, %ordered_type
  %is_known = or i1 %is_plain, %is_ordered
  br i1 %is_known, label %sized, label %no
sized:
  %size = call i64 @PyDict_Size(ptr %inner)
  %is_empty = icmp eq i64 %size, 0
  br i1 %is_empty, label %each_e, label %no
all:
  %error = call ptr @PyErr_Occurred()
  %no_error = icmp eq ptr %error, null
  br i1 %no_error, label %yes, label %no
yes:
  br label %tell
no:
  call void @PyErr_Clear()
  br label %tell
tell:
  %holds = phi i64 [ 1, %yes ], [ 0, %no ]
  %answer = call ptr @PyBool_FromLong(i64 %holds)
  ret ptr %answer
""",
    linkage="",
)

MOST = 16_384
"""How many tensors may be compared: a table for them is on the stack."""

# What Python calls with tensors, by METH_FASTCALL: whether no two have one storage; false where one is of another class
# or has none.
_APART = function(
    "ptr @apart(ptr %self, ptr %args, i64 %given)",
    f"""
  %program = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
{reads("word tensor_offset, word storage_offset, word first, word second", "%program")}
  %fits = icmp ult i64 %given, {MOST}
  br i1 %fits, label %begin, label %no
begin:{_EMPTY.format(count="%given")}
{loop("i", "%given", "one", "yes", enter="begin", back="hash")}
  %object = call ptr @address(ptr %args, i64 %i)
  %class = call i64 @word(ptr %object, i64 1)
  %is_first = icmp eq i64 %class, %first
  %is_second = icmp eq i64 %class, %second
  %is_tensor = or i1 %is_first, %is_second
  br i1 %is_tensor, label %look, label %no
look:
  %handle = getelementptr i8, ptr %object, i64 %tensor_offset
  %tensor = load ptr, ptr %handle
  %storage_at = getelementptr i8, ptr %tensor, i64 %storage_offset
  %storage = load i64, ptr %storage_at
  %no_storage = icmp eq i64 %storage, 0
  br i1 %no_storage, label %no, label %hash
hash:
  %is_apart = call i1 @fresh(ptr %table, i64 %bits, i64 %storage)
  br i1 %is_apart, label %each_i, label %no
{_ANSWERS}""",
    linkage="",
)

GUARDS = _DECLARATIONS + _TABLE + _FRESH + _UNCHANGED + _UNWATCHED + _AS_FOUND + _APART
