"""The native code of calls of fused kernels, as LLVM's text.

Tensors that lie in memory as a layout says are given to kernels as they are; others are handed to Python, which makes
the call and gets to know the layout.
"""

from thunder_native.machine_text import attempt, function, loop, reads, step

_DECLARATIONS = """
declare i32 @torch_get_num_threads(ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyList_Append(ptr, ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
"""

_ALIKE = function(
    "i1 @alike(ptr %a, ptr %b, i64 %count) alwaysinline",
    f"""
{loop("i", "%count", "body", "end")}
  %one = call i64 @word(ptr %a, i64 %i)
  %other = call i64 @word(ptr %b, i64 %i)
  %same = icmp eq i64 %one, %other
  br i1 %same, label %each_i, label %end
end:
  %found = phi i1 [ true, %each_i ], [ false, %body ]
  ret i1 %found
""",
)

# whether tensors lie as a layout says: dimensions, sizes and strides of one after the other; those at hand are three
# words each, dimensions (-1 for an integer) and addresses
_FITS = function(
    "i1 @fits(ptr %layout, ptr %given, i64 %count)",
    f"""
{loop("i", "%count", "look", "end", back="passed", carried={"ptr expected": ("%layout", "%expected_next")})}
  %place = mul i64 %i, 3
  %one = getelementptr i64, ptr %given, i64 %place
{reads("word dim, address shape, address strides", "%one")}
  %is_number = icmp slt i64 %dim, 0
  br i1 %is_number, label %passed, label %tensor
tensor:
  %wanted = load i64, ptr %expected
  %as_many = icmp eq i64 %dim, %wanted
  br i1 %as_many, label %sizes, label %end
sizes:
  %shape_expected = getelementptr i64, ptr %expected, i64 1
  %strides_expected = getelementptr i64, ptr %shape_expected, i64 %dim
  %after = getelementptr i64, ptr %strides_expected, i64 %dim
  %shape_fits = call i1 @alike(ptr %shape, ptr %shape_expected, i64 %dim)
  br i1 %shape_fits, label %lying, label %end
lying:
  %strides_fit = call i1 @alike(ptr %strides, ptr %strides_expected, i64 %dim)
  br i1 %strides_fit, label %passed, label %end
passed:
  %expected_next = phi ptr [ %expected, %look ], [ %after, %lying ]
  br label %each_i
end:
  %found = phi i1 [ true, %each_i ], [ false, %tensor ], [ false, %sizes ], [ false, %lying ]
  ret i1 %found
""",
)

# run kernels: steps (address of the kernel, address of its numbers, tasks, most threads, buffers, their places) one
# after the other, on the buffers at addresses; returns where it ended
_RUN = function(
    "ptr @launched(ptr %launch, ptr %steps, i64 %count, ptr %addresses, ptr %pointers, i64 %available)",
    f"""
{loop("n", "%count", "do", "end", back="go", carried={"ptr at": ("%steps", "%at_next")})}
{reads("address kernel, address numbers, word tasks, word most, word buffers", "%at")}
  %places = getelementptr i64, ptr %at, i64 5
  %at_next = getelementptr i64, ptr %places, i64 %buffers
{loop("b", "%buffers", "put", "go", enter="do")}
  %place = call i64 @word(ptr %places, i64 %b)
  %address = call i64 @word(ptr %addresses, i64 %place)
  %to = getelementptr i64, ptr %pointers, i64 %b
  store i64 %address, ptr %to
  br label %each_b
go:
  %fewer = icmp slt i64 %most, %available
  %threads = select i1 %fewer, i64 %most, i64 %available
  %threads_word = trunc i64 %threads to i32
  call void %launch(ptr %kernel, ptr %pointers, ptr %numbers, i64 %tasks, i32 %threads_word)
  br label %each_n
end:
  ret ptr %at
""",
)

# what Python makes of the call: capsules that own the outputs, none where it failed; null with an exception set. Python
# handles no signal while nobody owns a tensor
_IN_PYTHON = function(
    "ptr @in_python(ptr %slots, ptr %places, i64 %inputs, ptr %words)",
    f"""
  %handle_at = alloca ptr
  %tensors = call ptr @PyList_New(i64 0)
  %numbers = call ptr @PyList_New(i64 0)
{reads("address steal, address callable, address hand_over", first=7)}
  %no_tensors = icmp eq ptr %tensors, null
  %no_numbers = icmp eq ptr %numbers, null
  %no_lists = or i1 %no_tensors, %no_numbers
  br i1 %no_lists, label %lost, label %next
next:
{loop("i", "%inputs", "one", "call", enter="next", back="appending")}
  %twice = mul i64 %i, 2
  %pair = getelementptr i64, ptr %places, i64 %twice
{reads("word kind, slot from", "%pair")}
  %is_number = icmp ne i64 %kind, 0
  br i1 %is_number, label %number, label %tensor
number:
  %value = load i64, ptr %from
  %integer = call ptr @PyLong_FromLongLong(i64 %value)
  br label %append
tensor:
  %borrowed = load ptr, ptr %from
  %e_handle = call i32 @aoti_torch_new_tensor_handle(ptr %borrowed, ptr %handle_at)
  %handle = load ptr, ptr %handle_at
  %capsule = call ptr @PyCapsule_New(ptr %handle, ptr null, ptr null)
  br label %append
append:
  %object = phi ptr [ %integer, %number ], [ %capsule, %tensor ]
  %list = phi ptr [ %numbers, %number ], [ %tensors, %tensor ]
  %no_object = icmp eq ptr %object, null
  br i1 %no_object, label %lost, label %appending
appending:
  %e_append = call i32 @PyList_Append(ptr %list, ptr %object)
  call void @Py_DecRef(ptr %object)
  %appended_it = icmp eq i32 %e_append, 0
  br i1 %appended_it, label %each_i, label %lost
call:
  %given = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %steal, ptr %tensors, ptr null)
  %not_given = icmp eq ptr %given, null
  br i1 %not_given, label %lost, label %compute
compute:
  %made = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %callable, ptr %given, ptr %numbers, ptr null)
  call void @Py_DecRef(ptr %given)
  %not_made = icmp eq ptr %made, null
  br i1 %not_made, label %lost, label %hand
hand:
  %capsules = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %hand_over, ptr %made, ptr null)
  call void @Py_DecRef(ptr %made)
  br label %end
lost:
  br label %end
end:
  %found = phi ptr [ %capsules, %hand ], [ null, %lost ]
  br i1 %no_lists, label %ret, label %forget
forget:
  call void @Py_DecRef(ptr %tensors)
  call void @Py_DecRef(ptr %numbers)
  br label %ret
ret:
  ret ptr %found
""",
)

_OF_LAYOUT = (
    "address lying, word made_count, word checks, address made_like, word checking, word computing, address steps"
)
"""The words of a layout: that of the inputs, how many tensors are made and are checks, their dtypes, dimensions, sizes
and strides, how many steps write checks and how many do not."""

# address of layouts (their number, the address of each), launcher, offset of the dispatch keys, the keys allowed (2),
# inputs, outputs, functions of Python (one that takes handles over, the call, one that hands them over), two words for
# each input (whether it is an integer, its slot), the outputs' slots.
_FUSED = step(
    "fused",
    "address layouts, address launch, word key_offset, word key_one, word key_two, word inputs, word outputs",
    f"""
  %threads_at = alloca i32
  %places = getelementptr i64, ptr %words, i64 10
  %twice = mul i64 %inputs, 2
  %outputs_at = getelementptr i64, ptr %places, i64 %twice
  %three = mul i64 %inputs, 3
  %given = alloca i64, i64 %three
{loop("i", "%inputs", "look", "choose", back="number known")}
  %i_twice = mul i64 %i, 2
  %i_three = mul i64 %i, 3
  %pair = getelementptr i64, ptr %places, i64 %i_twice
  %is_number_word = call i64 @word(ptr %pair, i64 0)
  %is_number = icmp ne i64 %is_number_word, 0
  %one = getelementptr i64, ptr %given, i64 %i_three
  %one_shape = getelementptr i64, ptr %one, i64 1
  %one_strides = getelementptr i64, ptr %one, i64 2
  br i1 %is_number, label %number, label %tensor
number:
  store i64 -1, ptr %one
  br label %each_i
tensor:
  %from = call ptr @handle(ptr %slots, ptr %pair, i64 1)
  %itself = load ptr, ptr %from
  %plain = call i1 @plain(ptr %itself, i64 %key_offset, i64 %key_one, i64 %key_two)
  br i1 %plain, label %describe, label %python
describe:
{
        attempt(
            "known",
            "aoti_torch_get_dim(ptr %from, ptr %one)",
            "aoti_torch_get_sizes(ptr %from, ptr %one_shape)",
            "aoti_torch_get_strides(ptr %from, ptr %one_strides)",
            otherwise="python",
        )
    }
  br label %each_i

choose:
  %count = call i64 @word(ptr %layouts, i64 0)
{loop("n", "%count", "compare", "python", enter="choose")}
  %layout = call ptr @address(ptr %layouts, i64 %n_next)
{reads(_OF_LAYOUT, "%layout")}
  %fitting = call i1 @fits(ptr %lying, ptr %given, i64 %inputs)
  br i1 %fitting, label %prepare, label %each_n

prepare:
  %buffers = add i64 %inputs, %made_count
  %addresses = alloca i64, i64 %buffers
  %pointers = alloca ptr, i64 %buffers
  %made = alloca ptr, i64 %made_count
  %made_bytes = mul i64 %made_count, 8
  call void @llvm.memset.p0.i64(ptr %made, i8 0, i64 %made_bytes, i1 false)
{loop("r", "%inputs", "find", "make", enter="prepare", back="read_number read")}
  %r_twice = mul i64 %r, 2
  %r_pair = getelementptr i64, ptr %places, i64 %r_twice
{reads("word r_kind, slot r_slot", "%r_pair")}
  %r_to = getelementptr i64, ptr %addresses, i64 %r
  %r_is_number = icmp ne i64 %r_kind, 0
  br i1 %r_is_number, label %read_number, label %reading
read_number:
  store ptr %r_slot, ptr %r_to
  br label %each_r
reading:
  %r_from = load ptr, ptr %r_slot
{attempt("read", "aoti_torch_get_data_ptr(ptr %r_from, ptr %r_to)")}
  br label %each_r

make:
{
        loop(
            "m",
            "%made_count",
            "allocate",
            "ready",
            enter="make",
            back="locate",
            carried={"ptr like": ("%made_like", "%like_next")},
        )
    }
{reads("word dtype_word, word m_dim", "%like")}
  %dtype = trunc i64 %dtype_word to i32
  %m_sizes = getelementptr i64, ptr %like, i64 2
  %m_strides = getelementptr i64, ptr %m_sizes, i64 %m_dim
  %like_next = getelementptr i64, ptr %m_strides, i64 %m_dim
  %m_to = getelementptr ptr, ptr %made, i64 %m
{
        attempt(
            "locate",
            "aoti_torch_empty_strided(i64 %m_dim, ptr %m_sizes, ptr %m_strides, i32 %dtype, i32 0, i32 0, ptr %m_to)",
        )
    }
  %m_handle = load ptr, ptr %m_to
  %m_place = add i64 %inputs, %m
  %m_address = getelementptr i64, ptr %addresses, i64 %m_place
  %e_data = call i32 @aoti_torch_get_data_ptr(ptr %m_handle, ptr %m_address)
  br label %each_m

ready:
  %e_threads = call i32 @torch_get_num_threads(ptr %threads_at)
  %threads = load i32, ptr %threads_at
  %available = zext i32 %threads to i64
  %rest = call ptr @launched(ptr %launch, ptr %steps, i64 %checking, ptr %addresses, ptr %pointers, i64 %available)
  %first_check = sub i64 %buffers, %checks
{loop("c", "%buffers", "checked", "compute", enter="ready", first="%first_check")}
  %c_at = call ptr @address(ptr %addresses, i64 %c)
  %outside = load i8, ptr %c_at
  %inside = icmp eq i8 %outside, 0
  br i1 %inside, label %each_c, label %refuse
compute:
  %end = call ptr @launched(ptr %launch, ptr %rest, i64 %computing, ptr %addresses, ptr %pointers, i64 %available)
{loop("o", "%outputs", "giving", "given_all", enter="compute")}
  %o_from = getelementptr ptr, ptr %made, i64 %o
  %o_handle = load ptr, ptr %o_from
  %o_to = call ptr @slot(ptr %slots, ptr %outputs_at, i64 %o)
  store ptr %o_handle, ptr %o_to
  store ptr null, ptr %o_from
  br label %each_o
given_all:
  call void @clear(ptr %made, i64 %made_count)
  ret i32 0
refuse:
  call void @clear(ptr %made, i64 %made_count)
  br label %python
fail:
  call void @clear(ptr %made, i64 %made_count)
  ret i32 1

python:
  %lock = call i32 @PyGILState_Ensure()
  %answer = call ptr @in_python(ptr %slots, ptr %places, i64 %inputs, ptr %words)
  %none = icmp eq ptr %answer, null
  br i1 %none, label %lost, label %answered
answered:
  %answers = call i64 @PyList_Size(ptr %answer)
  %all = icmp eq i64 %answers, %outputs
  br i1 %all, label %take, label %drop
take:
{loop("t", "%outputs", "taking", "taken", enter="take")}
  %t_capsule = call ptr @PyList_GetItem(ptr %answer, i64 %t)
  %t_handle = call ptr @PyCapsule_GetPointer(ptr %t_capsule, ptr null)
  %t_to = call ptr @slot(ptr %slots, ptr %outputs_at, i64 %t)
  store ptr %t_handle, ptr %t_to
  br label %each_t
taken:
  call void @Py_DecRef(ptr %answer)
  call void @PyGILState_Release(i32 %lock)
  ret i32 0
drop:
  call void @Py_DecRef(ptr %answer)
  br label %lost
lost:
  call void @PyGILState_Release(i32 %lock)
  ret i32 1
""",
)

KERNELS = _DECLARATIONS + _ALIKE + _FITS + _RUN + _IN_PYTHON + _FUSED
