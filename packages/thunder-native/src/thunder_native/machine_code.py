"""The native code, as LLVM's text: one loop over a program's table of steps, and what steps are made of.

A step is the address of a function, the number of its words (``i64``), whether autograd is asked, and the words. The
function gets the program's slots, each a handle of a tensor or null, and the words; it returns 0, or another number
where PyTorch reported an error.
"""

from thunder_native.machine_dispatch import DISPATCHED
from thunder_native.machine_guards import GUARDS
from thunder_native.machine_integers import INTEGERS
from thunder_native.machine_kernels import KERNELS
from thunder_native.machine_products import PRODUCTS
from thunder_native.machine_slices import SLICES
from thunder_native.machine_text import declared, exported, function, loop, reads, step
from thunder_native.machine_views import VIEWS

_DECLARATIONS = """
declare i32 @aoti_torch_new_tensor_handle(ptr, ptr)
declare i32 @aoti_torch_delete_tensor_object(ptr)
declare i32 @aoti_torch_empty_strided(i64, ptr, ptr, i32, i32, i32, ptr)
declare i32 @aoti_torch__reinterpret_tensor(ptr, i64, ptr, ptr, i64, ptr)
declare i32 @aoti_torch_get_sizes(ptr, ptr)
declare i32 @aoti_torch_get_strides(ptr, ptr)
declare i32 @aoti_torch_get_dim(ptr, ptr)
declare i32 @aoti_torch_cpu_cat(ptr, i64, i64, ptr)
declare i32 @torch_call_dispatcher(ptr, ptr, ptr, i64)
declare i32 @torch_new_list_reserve_size(i64, ptr)
declare i32 @torch_list_push_back(ptr, i64)
declare i32 @torch_list_get_item(ptr, i64, ptr)
declare i32 @torch_delete_list(ptr)
declare i32 @torch_new_string_handle(ptr, i64, ptr)
declare i1 @_ZN3c104impl28tls_is_dispatch_key_excludedENS_11DispatchKeyE(i16 zeroext)
declare void @_ZN3c104impl29tls_set_dispatch_key_excludedENS_11DispatchKeyEb(i16 zeroext, i1 zeroext)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @PyCapsule_New(ptr, ptr, ptr)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_FromLong(i64)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @_Z16THPVariable_WrapON2at10TensorBaseE(ptr)
declare void @Py_DecRef(ptr)
declare i1 @_ZN3c108GradMode10is_enabledEv()
declare i1 @_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE(i8 zeroext)
declare i1 @_ZN5torch8profiler4impl15profilerEnabledEv()

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

_WORDS = (
    function("i64 @word(ptr %words, i64 %index) alwaysinline", """
  %at = getelementptr i64, ptr %words, i64 %index
  %value = load i64, ptr %at
  ret i64 %value
""")
    + function("ptr @address(ptr %words, i64 %index) alwaysinline", """
  %address = call i64 @word(ptr %words, i64 %index)
  %found = inttoptr i64 %address to ptr
  ret ptr %found
""")
    + function("double @number(ptr %words, i64 %index) alwaysinline", """
  %bits = call i64 @word(ptr %words, i64 %index)
  %value = bitcast i64 %bits to double
  ret double %value
""")
    + function("ptr @slot(ptr %slots, ptr %words, i64 %index) alwaysinline", """
  %number = call i64 @word(ptr %words, i64 %index)
  %at = getelementptr ptr, ptr %slots, i64 %number
  ret ptr %at
""")
    + function("ptr @handle(ptr %slots, ptr %words, i64 %index) alwaysinline", """
  %at = call ptr @slot(ptr %slots, ptr %words, i64 %index)
  %value = load ptr, ptr %at
  ret ptr %value
""")
)  # fmt: skip
"""How words are read; see :func:`thunder_native.machine_text.reads`."""

_TENSORS = (
    function("i1 @plain(ptr %tensor, i64 %offset, i64 %key_one, i64 %key_two) alwaysinline", """
  %keys_at = getelementptr i8, ptr %tensor, i64 %offset
  %keys = load i64, ptr %keys_at
  %is_one = icmp eq i64 %keys, %key_one
  %is_two = icmp eq i64 %keys, %key_two
  %plain = or i1 %is_one, %is_two
  ret i1 %plain
""")
    + function("void @drop(ptr %at)", """
  %value = load ptr, ptr %at
  %empty = icmp eq ptr %value, null
  br i1 %empty, label %end, label %full
full:
  %error = call i32 @aoti_torch_delete_tensor_object(ptr %value)
  store ptr null, ptr %at
  br label %end
end:
  ret void
""")
    + function("void @clear(ptr %slots, i64 %count)", f"""
{loop("i", "%count", "body", "end")}
  %at = getelementptr ptr, ptr %slots, i64 %i
  call void @drop(ptr %at)
  br label %each_i
end:
  ret void
""")
)  # fmt: skip
"""Whether a tensor has dispatch keys that are allowed; what forgets tensors."""

_AUTOGRAD = function("void @passed_over(ptr %program, i1 %records, i1 %views)", f"""
{reads("word records_key, word views_key", "%program")}
  %records_word = trunc i64 %records_key to i16
  %views_word = trunc i64 %views_key to i16
  call void @_ZN3c104impl29tls_set_dispatch_key_excludedENS_11DispatchKeyEb(i16 %records_word, i1 %records)
  call void @_ZN3c104impl29tls_set_dispatch_key_excludedENS_11DispatchKeyEb(i16 %views_word, i1 %views)
  ret void
""")  # fmt: skip
"""Whether this thread's calls pass over what records them for autograd, and over what notes views and writes."""

PROGRAM = (
    "word records_key, word views_key, "
    "word inputs, word count, word steps, address code, word outputs, address outputs_at, word first, word second, "
    "word key_offset, word key_one, word key_two, word offset, word numbers, word integer, "
    "word held, address held_at, address levels, address level, word no_level, word long, "
    "address owner, address when_refused, address when_failed"
)
"""The words of a program.

Autograd's dispatch keys (2), inputs that are tensors, slots, steps and where they are, outputs and where their slots
are, classes of tensors (2), offset of the dispatch keys, the keys allowed (2), offset of the tensor in Python's object,
inputs that are integers, their class, inputs that are held and where their slots are, the dictionary with the level of
derivatives in forward mode, its key and the integer that says that there is none, whether other threads of Python may
run meanwhile, the program's owner and what Python does in its place where it refuses to run or fails. The slot of the
first integer is in front of that of the first tensor, the second one's in front of it. The last slots are handles of
what is held.
"""

_REACQUIRE = function("void @reacquire(ptr %thread)", """
  %kept = icmp eq ptr %thread, null
  br i1 %kept, label %end, label %restore
restore:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %end
end:
  ret void
""")  # fmt: skip
"""Python's lock, where it was released."""

INPUTS = PROGRAM.split(", ").index("word inputs")
"""Which of the words tells the number of inputs."""

_OBSERVED = function("i1 @observed(ptr %levels, ptr %level, i64 %no_level)", """
  %unwatched = call i1 @unwatched(i64 0)
  %casts = call i1 @_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE(i8 0)
  %profiled = call i1 @_ZN5torch8profiler4impl15profilerEnabledEv()
  %now = call ptr @PyDict_GetItemWithError(ptr %levels, ptr %level)
  %level_now = ptrtoint ptr %now to i64
  %has_level = icmp ne i64 %level_now, %no_level
  %watched = xor i1 %unwatched, true
  %one = or i1 %casts, %profiled
  %other = or i1 %has_level, %watched
  %observed = or i1 %one, %other
  ret i1 %observed
""")  # fmt: skip
"""Whether somebody has to see each call of PyTorch: a mode, a transform, autocast, a profiler, forward mode."""

_WALKED = {"ptr at": ("%code", "%at_next"), "i64 asked": ("1", "%asks")}

# Inputs are the handles in Python's objects, which the caller holds meanwhile: for hundreds of parameters, own handles
# would cost a tenth of a call, and more where several threads count uses of the same tensors. Those that operators copy
# are held by one more: for the first copy of a tensor of Python's, PyTorch takes Python's lock, in each operator, and
# other threads would wait for that.
#
# Returns a tuple of the outputs, or an integer that says why it did not run: -1 where an input is none that the
# program is for, or somebody has to see PyTorch's calls, else the step that failed; null where Python was interrupted
# in a step.
_ENTERED = function(
    "ptr @entered(ptr %program, ptr %args, i64 %given)",
    f"""
{reads(PROGRAM, "%program")}
  %all = add i64 %count, %numbers
  %room = alloca ptr, i64 %all
  %slots = getelementptr ptr, ptr %room, i64 %numbers
  %bytes = mul i64 %count, 8
  call void @llvm.memset.p0.i64(ptr %slots, i8 0, i64 %bytes, i1 false)
  %own = getelementptr ptr, ptr %slots, i64 %inputs
  %owned = sub i64 %count, %inputs
  %wanted = add i64 %inputs, %numbers
  %fits = icmp eq i64 %given, %wanted
  %observed = call i1 @observed(ptr %levels, ptr %level, i64 %no_level)
  %alone = xor i1 %observed, true
  %may = and i1 %fits, %alone
  %graded = call i1 @_ZN3c108GradMode10is_enabledEv()
  br i1 %may, label %take, label %refuse

take:
{loop("i", "%inputs", "look", "take_number", enter="take", back="taken")}
  %object_at = getelementptr ptr, ptr %args, i64 %i
  %object = load ptr, ptr %object_at
  %class_at = getelementptr i8, ptr %object, i64 8
  %class = load i64, ptr %class_at
  %is_first = icmp eq i64 %class, %first
  %is_second = icmp eq i64 %class, %second
  %is_tensor = or i1 %is_first, %is_second
  br i1 %is_tensor, label %keyed, label %refuse

keyed:
  %borrowed = getelementptr i8, ptr %object, i64 %offset
  %tensor = load ptr, ptr %borrowed
  %plain = call i1 @plain(ptr %tensor, i64 %key_offset, i64 %key_one, i64 %key_two)
  br i1 %plain, label %followed, label %refuse

followed:
  br i1 %graded, label %differentiable, label %taken

differentiable:
  %requires = call i1 @_ZNK3c1010TensorImpl13requires_gradEv(ptr %tensor)
  br i1 %requires, label %refuse, label %taken

taken:
  %into = getelementptr ptr, ptr %slots, i64 %i
  store ptr %borrowed, ptr %into
  br label %each_i

take_number:
{loop("j", "%numbers", "look_number", "run", enter="take_number", back="store_number")}
  %number_index = add i64 %inputs, %j
  %number_at = getelementptr ptr, ptr %args, i64 %number_index
  %number = load ptr, ptr %number_at
  %number_class_at = getelementptr i8, ptr %number, i64 8
  %number_class = load i64, ptr %number_class_at
  %is_integer = icmp eq i64 %number_class, %integer
  br i1 %is_integer, label %convert, label %refuse

convert:
  %value = call i64 @PyLong_AsLongLong(ptr %number)
  %maybe_error = icmp eq i64 %value, -1
  br i1 %maybe_error, label %doubt, label %store_number

doubt:
  %error_set = call ptr @PyErr_Occurred()
  %no_error = icmp eq ptr %error_set, null
  br i1 %no_error, label %store_number, label %too_large

too_large:
  call void @PyErr_Clear()
  br label %refuse

store_number:
  %back = sub i64 0, %j_next
  %number_slot = getelementptr i64, ptr %slots, i64 %back
  store i64 %value, ptr %number_slot
  br label %each_j

refuse:
  %refusal = call ptr @PyLong_FromLong(i64 -1)
  ret ptr %refusal

run:
  %first_held = sub i64 %count, %held
{loop("h", "%held", "take_hold", "leave", enter="run")}
  %copied = call ptr @handle(ptr %slots, ptr %held_at, i64 %h)
  %hold_index = add i64 %first_held, %h
  %hold_at = getelementptr ptr, ptr %slots, i64 %hold_index
  %e_hold = call i32 @aoti_torch_new_tensor_handle(ptr %copied, ptr %hold_at)
  br label %each_h

leave:
  %is_long = icmp ne i64 %long, 0
  br i1 %is_long, label %release, label %prepare
release:
  %saved = call ptr @PyEval_SaveThread()
  br label %prepare
prepare:
  %thread = phi ptr [ null, %leave ], [ %saved, %release ]
  %records_word = trunc i64 %records_key to i16
  %views_word = trunc i64 %views_key to i16
  %records = call i1 @_ZN3c104impl28tls_is_dispatch_key_excludedENS_11DispatchKeyE(i16 %records_word)
  %views = call i1 @_ZN3c104impl28tls_is_dispatch_key_excludedENS_11DispatchKeyE(i16 %views_word)
{loop("n", "%steps", "do", "done", "prepare", "walk", carried=_WALKED)}
{reads("address function, word length, word asks", "%at")}
  %words = getelementptr i64, ptr %at, i64 3
  %at_next = getelementptr i64, ptr %words, i64 %length
  %same = icmp eq i64 %asked, %asks
  br i1 %same, label %walk, label %change
change:
  %passes = icmp eq i64 %asks, 0
  %over_records = or i1 %records, %passes
  %over_views = or i1 %views, %passes
  call void @passed_over(ptr %program, i1 %over_records, i1 %over_views)
  br label %walk
walk:
  %error = call i32 %function(ptr %slots, ptr %words)
  %worked = icmp eq i32 %error, 0
  br i1 %worked, label %each_n, label %failed

failed:
  call void @passed_over(ptr %program, i1 %records, i1 %views)
  call void @reacquire(ptr %thread)
  call void @clear(ptr %own, i64 %owned)
  %interrupted = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %interrupted, null
  br i1 %raised, label %raise, label %tell
raise:
  ret ptr null
tell:
  %failure = call ptr @PyLong_FromLong(i64 %n)
  ret ptr %failure

done:
  call void @passed_over(ptr %program, i1 %records, i1 %views)
  call void @reacquire(ptr %thread)
  %tuple = call ptr @PyTuple_New(i64 %outputs)
  %no_tuple = icmp eq ptr %tuple, null
  br i1 %no_tuple, label %finish, label %give

give:
{loop("o", "%outputs", "wrap", "finish", enter="give", back="given_one")}
  %result = call ptr @handle(ptr %slots, ptr %outputs_at, i64 %o)
  %object_of = call ptr @_Z16THPVariable_WrapON2at10TensorBaseE(ptr %result)
  %no_object = icmp eq ptr %object_of, null
  br i1 %no_object, label %lost, label %given_one

lost:
  call void @Py_DecRef(ptr %tuple)
  br label %finish

given_one:
  %set = call i32 @PyTuple_SetItem(ptr %tuple, i64 %o, ptr %object_of)
  br label %each_o

finish:
  %answer = phi ptr [ null, %done ], [ %tuple, %each_o ], [ null, %lost ]
  call void @clear(ptr %own, i64 %owned)
  ret ptr %answer
""",
)

# What Python calls, by METH_FASTCALL: what @entered returns.
_ENTER = function(
    "ptr @enter(ptr %self, ptr %args, i64 %given)",
    """
  %program = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
  %answer = call ptr @entered(ptr %program, ptr %args, i64 %given)
  ret ptr %answer
""",
    linkage="",
)

# What Python calls, by METH_FASTCALL: the outputs; where native code did not run, what a function of Python returns,
# which gets the program's owner and the arguments.
_RUN = function(
    "ptr @run(ptr %self, ptr %args, i64 %given)",
    f"""
  %program = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
{reads(PROGRAM, "%program")}
  %answer = call ptr @entered(ptr %program, ptr %args, i64 %given)
  %none = icmp eq ptr %answer, null
  br i1 %none, label %end, label %look
look:
  %class_at = getelementptr i8, ptr %answer, i64 8
  %class = load i64, ptr %class_at
  %is_reason = icmp eq i64 %class, %integer
  br i1 %is_reason, label %otherwise, label %end
otherwise:
  %reason = call i64 @PyLong_AsLongLong(ptr %answer)
  call void @Py_DecRef(ptr %answer)
  %is_refused = icmp slt i64 %reason, 0
  %fallback = select i1 %is_refused, ptr %when_refused, ptr %when_failed
  %all = add i64 %given, 1
  %passed = alloca ptr, i64 %all
  store ptr %owner, ptr %passed
  %rest = getelementptr ptr, ptr %passed, i64 1
  %bytes = mul i64 %given, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %args, i64 %bytes, i1 false)
  %found = call ptr @PyObject_Vectorcall(ptr %fallback, ptr %passed, i64 %all, ptr null)
  ret ptr %found
end:
  ret ptr %answer
""",
    linkage="",
)

_CALLS = (
    step("constant", "address from, slot out", """
  %error = call i32 @aoti_torch_new_tensor_handle(ptr %from, ptr %out)
  ret i32 %error
""")
    + step("binary", "address function, tensor a, tensor b, slot out", """
  %error = call i32 %function(ptr %a, ptr %b, ptr %out)
  ret i32 %error
""")
    + step("binary_alpha", "address function, tensor a, tensor b, slot out, number alpha", """
  %error = call i32 %function(ptr %a, ptr %b, double %alpha, ptr %out)
  ret i32 %error
""")
    + step("scalar", "address function, tensor a, slot out, number value", """
  %error = call i32 %function(ptr %a, double %value, ptr %out)
  ret i32 %error
""")
    + step("scalar_alpha", "address function, tensor a, slot out, number value, number alpha", """
  %error = call i32 %function(ptr %a, double %value, double %alpha, ptr %out)
  ret i32 %error
""")
)  # fmt: skip
"""A handle of a tensor that the program holds, by its address; functions of tensors and numbers."""

_LISTS = (
    step("release", "word count", f"""
{loop("i", "%count", "body", "end")}
  %at = call ptr @slot(ptr %slots, ptr %words, i64 %i_next)
  call void @drop(ptr %at)
  br label %each_i
end:
  ret i32 0
""")
    + step("joined", "slot out, word dimension, word count", f"""
  %handles = alloca ptr, i64 %count
{loop("i", "%count", "body", "end")}
  %from = add i64 %i, 3
  %one = call ptr @handle(ptr %slots, ptr %words, i64 %from)
  %to = getelementptr ptr, ptr %handles, i64 %i
  store ptr %one, ptr %to
  br label %each_i
end:
  %error = call i32 @aoti_torch_cpu_cat(ptr %handles, i64 %count, i64 %dimension, ptr %out)
  ret i32 %error
""")
)  # fmt: skip
"""What forgets tensors, and what joins them: slots come last."""

_BOX = "declare i32 @torch_new_stable_ivalue(ptr)" + function("ptr @box() alwaysinline", """
  %at = alloca ptr
  %error = call i32 @torch_new_stable_ivalue(ptr %at)
  %made = load ptr, ptr %at
  ret ptr %made
""")  # fmt: skip
"""Memory for an optional argument, which PyTorch deletes."""

_BOX_BY_CPP = "declare ptr @_Znwm(i64)" + function("ptr @box() alwaysinline", """
  %made = call ptr @_Znwm(i64 8)
  ret ptr %made
""")  # fmt: skip
"""The same before PyTorch 2.13, of which headers do it by C++'s ``new``."""


def text(has_boxes: bool) -> str:
    """Return the module.

    Args:
        has_boxes: whether PyTorch exports what makes memory for optional arguments.
    """
    boxes = _BOX if has_boxes else _BOX_BY_CPP
    return "".join(
        [_DECLARATIONS, boxes, _WORDS, _TENSORS, _AUTOGRAD, _REACQUIRE, _OBSERVED, _ENTERED, _ENTER, _RUN]
        + [_CALLS, _LISTS, PRODUCTS, DISPATCHED, VIEWS, INTEGERS, SLICES, KERNELS, GUARDS]
    )


def imports(module: str) -> tuple[str, ...]:
    """Return what a module calls of PyTorch, besides the functions that tables name, and of C++."""
    return declared(module, "aoti_torch_|torch_|_ZNK?3c10|_ZN2at|_ZN5torch|_Zn|_Z16THP")


PYTHON = declared(text(has_boxes=True), "_?Py")
"""What is called of Python's C interface."""

EXPORTS = exported(text(has_boxes=True))
"""The functions of the module: the entry, and the kinds of steps."""
