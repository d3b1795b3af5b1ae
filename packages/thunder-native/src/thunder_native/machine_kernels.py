"""The native code of calls of fused kernels, as LLVM's text.

Tensors that lie in memory as a layout says are given to kernels as they are; others are handed to Python, which makes
the call and gets to know the layout.
"""

EXPORTS = ("fused",)
"""The kinds of steps."""

IMPORTS = ("torch_get_num_threads",)
"""What is called of PyTorch's C interface."""

PYTHON = (
    "PyGILState_Ensure", "PyGILState_Release", "PyList_Append", "PyLong_FromLongLong",
    "PyObject_CallFunctionObjArgs", "PyList_Size", "PyList_GetItem", "Py_DecRef",
)  # fmt: skip
"""What is called of Python's stable C interface."""

KERNELS = """
declare i32 @torch_get_num_threads(ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyList_Append(ptr, ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare void @Py_DecRef(ptr)

define internal ptr @address(ptr %words, i64 %index) alwaysinline {
  %address = call i64 @word(ptr %words, i64 %index)
  %found = inttoptr i64 %address to ptr
  ret ptr %found
}

define internal i1 @alike(ptr %a, ptr %b, i64 %count) alwaysinline {
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %end
body:
  %next = add i64 %i, 1
  %one = call i64 @word(ptr %a, i64 %i)
  %other = call i64 @word(ptr %b, i64 %i)
  %same = icmp eq i64 %one, %other
  br i1 %same, label %loop, label %end
end:
  %found = phi i1 [ true, %loop ], [ false, %body ]
  ret i1 %found
}

; whether tensors lie as a layout says: dimensions, sizes and strides of one after the other; those at hand are three
; words each, dimensions (-1 for an integer) and addresses
define internal i1 @fits(ptr %layout, ptr %given, i64 %count) {
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %passed ]
  %expected = phi ptr [ %layout, %start ], [ %expected_next, %passed ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %end
look:
  %next = add i64 %i, 1
  %place = mul i64 %i, 3
  %one = getelementptr i64, ptr %given, i64 %place
  %dim = load i64, ptr %one
  %is_number = icmp slt i64 %dim, 0
  br i1 %is_number, label %passed, label %tensor
tensor:
  %wanted = load i64, ptr %expected
  %as_many = icmp eq i64 %dim, %wanted
  br i1 %as_many, label %sizes, label %end
sizes:
  %shape = call ptr @address(ptr %one, i64 1)
  %strides = call ptr @address(ptr %one, i64 2)
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
  br label %loop
end:
  %found = phi i1 [ true, %loop ], [ false, %tensor ], [ false, %sizes ], [ false, %lying ]
  ret i1 %found
}

; run kernels: steps (address of the kernel, address of its numbers, tasks, most threads, buffers, their places) one
; after the other, on the buffers at addresses; returns where it ended
define internal ptr @run(ptr %launch, ptr %steps, i64 %count, ptr %addresses, ptr %pointers, i64 %available) {
start:
  br label %loop
loop:
  %n = phi i64 [ 0, %start ], [ %n_next, %go ]
  %at = phi ptr [ %steps, %start ], [ %at_next, %go ]
  %more = icmp ult i64 %n, %count
  br i1 %more, label %do, label %end
do:
  %n_next = add i64 %n, 1
  %kernel = call ptr @address(ptr %at, i64 0)
  %numbers = call ptr @address(ptr %at, i64 1)
  %tasks = call i64 @word(ptr %at, i64 2)
  %most = call i64 @word(ptr %at, i64 3)
  %buffers = call i64 @word(ptr %at, i64 4)
  %places = getelementptr i64, ptr %at, i64 5
  %at_next = getelementptr i64, ptr %places, i64 %buffers
  br label %buffer
buffer:
  %b = phi i64 [ 0, %do ], [ %b_next, %put ]
  %b_more = icmp ult i64 %b, %buffers
  br i1 %b_more, label %put, label %go
put:
  %b_next = add i64 %b, 1
  %place = call i64 @word(ptr %places, i64 %b)
  %address = call i64 @word(ptr %addresses, i64 %place)
  %to = getelementptr i64, ptr %pointers, i64 %b
  store i64 %address, ptr %to
  br label %buffer
go:
  %fewer = icmp slt i64 %most, %available
  %threads = select i1 %fewer, i64 %most, i64 %available
  %threads_word = trunc i64 %threads to i32
  call void %launch(ptr %kernel, ptr %pointers, ptr %numbers, i64 %tasks, i32 %threads_word)
  br label %loop
end:
  ret ptr %at
}

; what Python makes of the call: capsules that own the outputs, none where it failed; null with an exception set. Python
; handles no signal while nobody owns a tensor
define internal ptr @in_python(ptr %slots, ptr %places, i64 %inputs, ptr %words) {
start:
  %handle_at = alloca ptr
  %tensors = call ptr @PyList_New(i64 0)
  %numbers = call ptr @PyList_New(i64 0)
  %steal = call ptr @address(ptr %words, i64 7)
  %callable = call ptr @address(ptr %words, i64 8)
  %hand_over = call ptr @address(ptr %words, i64 9)
  %no_tensors = icmp eq ptr %tensors, null
  %no_numbers = icmp eq ptr %numbers, null
  %no_lists = or i1 %no_tensors, %no_numbers
  br i1 %no_lists, label %lost, label %next
next:
  %i = phi i64 [ 0, %start ], [ %i_next, %appended ]
  %more = icmp ult i64 %i, %inputs
  br i1 %more, label %one, label %call
one:
  %i_next = add i64 %i, 1
  %twice = mul i64 %i, 2
  %pair = getelementptr i64, ptr %places, i64 %twice
  %kind = call i64 @word(ptr %pair, i64 0)
  %from = call ptr @slot(ptr %slots, ptr %pair, i64 1)
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
  br i1 %appended_it, label %appended, label %lost
appended:
  br label %next
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
}

; address of layouts (their number, the address of each), launcher, offset of the dispatch keys, the keys allowed (2),
; inputs, outputs, functions of Python (one that takes handles over, the call, one that hands them over), two words for
; each input (whether it is an integer, its slot), the outputs' slots.
; A layout: that of the inputs (address), tensors that are made, how many of these are checks, their addresses of
; (dtype, dimensions, sizes, strides), steps that write checks, all others, address of both
define i32 @fused(ptr %slots, ptr %words) {
start:
  %threads_at = alloca i32
  %layouts = call ptr @address(ptr %words, i64 0)
  %launch = call ptr @address(ptr %words, i64 1)
  %key_offset = call i64 @word(ptr %words, i64 2)
  %key_one = call i64 @word(ptr %words, i64 3)
  %key_two = call i64 @word(ptr %words, i64 4)
  %inputs = call i64 @word(ptr %words, i64 5)
  %outputs = call i64 @word(ptr %words, i64 6)
  %places = getelementptr i64, ptr %words, i64 10
  %twice = mul i64 %inputs, 2
  %outputs_at = getelementptr i64, ptr %places, i64 %twice
  %three = mul i64 %inputs, 3
  %given = alloca i64, i64 %three
  br label %input

input:
  %i = phi i64 [ 0, %start ], [ %i_next, %described ]
  %more = icmp ult i64 %i, %inputs
  br i1 %more, label %look, label %choose
look:
  %i_next = add i64 %i, 1
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
  br label %described
tensor:
  %from = call ptr @handle(ptr %slots, ptr %pair, i64 1)
  %itself = load ptr, ptr %from
  %keys_at = getelementptr i8, ptr %itself, i64 %key_offset
  %keys = load i64, ptr %keys_at
  %is_one = icmp eq i64 %keys, %key_one
  %is_two = icmp eq i64 %keys, %key_two
  %plain = or i1 %is_one, %is_two
  br i1 %plain, label %describe, label %python
describe:
  %e1 = call i32 @aoti_torch_get_dim(ptr %from, ptr %one)
  %e2 = call i32 @aoti_torch_get_sizes(ptr %from, ptr %one_shape)
  %e3 = call i32 @aoti_torch_get_strides(ptr %from, ptr %one_strides)
  %e12 = or i32 %e1, %e2
  %e123 = or i32 %e12, %e3
  %known = icmp eq i32 %e123, 0
  br i1 %known, label %described, label %python
described:
  br label %input

choose:
  %count = call i64 @word(ptr %layouts, i64 0)
  br label %try
try:
  %n = phi i64 [ 0, %choose ], [ %n_next, %compare ]
  %n_next = add i64 %n, 1
  %trying = icmp ult i64 %n, %count
  br i1 %trying, label %compare, label %python
compare:
  %layout = call ptr @address(ptr %layouts, i64 %n_next)
  %lying = call ptr @address(ptr %layout, i64 0)
  %fitting = call i1 @fits(ptr %lying, ptr %given, i64 %inputs)
  br i1 %fitting, label %prepare, label %try

prepare:
  %made_count = call i64 @word(ptr %layout, i64 1)
  %checks = call i64 @word(ptr %layout, i64 2)
  %made_like = call ptr @address(ptr %layout, i64 3)
  %checking = call i64 @word(ptr %layout, i64 4)
  %computing = call i64 @word(ptr %layout, i64 5)
  %steps = call ptr @address(ptr %layout, i64 6)
  %buffers = add i64 %inputs, %made_count
  %addresses = alloca i64, i64 %buffers
  %pointers = alloca ptr, i64 %buffers
  %made = alloca ptr, i64 %made_count
  %made_bytes = mul i64 %made_count, 8
  call void @llvm.memset.p0.i64(ptr %made, i8 0, i64 %made_bytes, i1 false)
  br label %read
read:
  %r = phi i64 [ 0, %prepare ], [ %r_next, %reading ], [ %r_next, %read_number ]
  %r_more = icmp ult i64 %r, %inputs
  br i1 %r_more, label %find, label %make
find:
  %r_next = add i64 %r, 1
  %r_twice = mul i64 %r, 2
  %r_pair = getelementptr i64, ptr %places, i64 %r_twice
  %r_kind = call i64 @word(ptr %r_pair, i64 0)
  %r_to = getelementptr i64, ptr %addresses, i64 %r
  %r_is_number = icmp ne i64 %r_kind, 0
  br i1 %r_is_number, label %read_number, label %reading
read_number:
  %r_slot = call ptr @slot(ptr %slots, ptr %r_pair, i64 1)
  store ptr %r_slot, ptr %r_to
  br label %read
reading:
  %r_from = call ptr @handle(ptr %slots, ptr %r_pair, i64 1)
  %e4 = call i32 @aoti_torch_get_data_ptr(ptr %r_from, ptr %r_to)
  %r_known = icmp eq i32 %e4, 0
  br i1 %r_known, label %read, label %fail

make:
  %m = phi i64 [ 0, %read ], [ %m_next, %locate ]
  %like = phi ptr [ %made_like, %read ], [ %like_next, %locate ]
  %m_more = icmp ult i64 %m, %made_count
  br i1 %m_more, label %allocate, label %ready
allocate:
  %m_next = add i64 %m, 1
  %dtype_word = call i64 @word(ptr %like, i64 0)
  %dtype = trunc i64 %dtype_word to i32
  %m_dim = call i64 @word(ptr %like, i64 1)
  %m_sizes = getelementptr i64, ptr %like, i64 2
  %m_strides = getelementptr i64, ptr %m_sizes, i64 %m_dim
  %like_next = getelementptr i64, ptr %m_strides, i64 %m_dim
  %m_to = getelementptr ptr, ptr %made, i64 %m
  %e5 = call i32 @aoti_torch_empty_strided(i64 %m_dim, ptr %m_sizes, ptr %m_strides, i32 %dtype, i32 0, i32 0,
                                           ptr %m_to)
  %allocated = icmp eq i32 %e5, 0
  br i1 %allocated, label %locate, label %fail
locate:
  %m_handle = load ptr, ptr %m_to
  %m_place = add i64 %inputs, %m
  %m_address = getelementptr i64, ptr %addresses, i64 %m_place
  %e6 = call i32 @aoti_torch_get_data_ptr(ptr %m_handle, ptr %m_address)
  br label %make

ready:
  %e7 = call i32 @torch_get_num_threads(ptr %threads_at)
  %threads = load i32, ptr %threads_at
  %available = zext i32 %threads to i64
  %rest = call ptr @run(ptr %launch, ptr %steps, i64 %checking, ptr %addresses, ptr %pointers, i64 %available)
  %first_check = sub i64 %buffers, %checks
  br label %check
check:
  %c = phi i64 [ %first_check, %ready ], [ %c_next, %checked ]
  %c_more = icmp ult i64 %c, %buffers
  br i1 %c_more, label %checked, label %compute
checked:
  %c_next = add i64 %c, 1
  %c_at = call ptr @address(ptr %addresses, i64 %c)
  %outside = load i8, ptr %c_at
  %inside = icmp eq i8 %outside, 0
  br i1 %inside, label %check, label %refuse
compute:
  %end = call ptr @run(ptr %launch, ptr %rest, i64 %computing, ptr %addresses, ptr %pointers, i64 %available)
  br label %give
give:
  %o = phi i64 [ 0, %compute ], [ %o_next, %giving ]
  %o_more = icmp ult i64 %o, %outputs
  br i1 %o_more, label %giving, label %given_all
giving:
  %o_next = add i64 %o, 1
  %o_from = getelementptr ptr, ptr %made, i64 %o
  %o_handle = load ptr, ptr %o_from
  %o_to = call ptr @slot(ptr %slots, ptr %outputs_at, i64 %o)
  store ptr %o_handle, ptr %o_to
  store ptr null, ptr %o_from
  br label %give
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
  %t = phi i64 [ 0, %answered ], [ %t_next, %taking ]
  %t_more = icmp ult i64 %t, %outputs
  br i1 %t_more, label %taking, label %taken
taking:
  %t_next = add i64 %t, 1
  %t_capsule = call ptr @PyList_GetItem(ptr %answer, i64 %t)
  %t_handle = call ptr @PyCapsule_GetPointer(ptr %t_capsule, ptr null)
  %t_to = call ptr @slot(ptr %slots, ptr %outputs_at, i64 %t)
  store ptr %t_handle, ptr %t_to
  br label %take
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
}
"""
