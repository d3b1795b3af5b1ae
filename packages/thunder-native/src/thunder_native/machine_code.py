"""The native code, as LLVM's text: one loop over a program's table of steps, and what steps are made of.

A step is the address of a function, the number of its words (``i64``), and them. The function gets the program's slots,
each a handle of a tensor or null, and the words; it returns 0, or another number where PyTorch reported an error.
"""

from thunder_native.machine_dispatch import DISPATCHED
from thunder_native.machine_integers import EXPORTS as OF_INTEGERS
from thunder_native.machine_integers import INTEGERS
from thunder_native.machine_kernels import EXPORTS as OF_KERNELS
from thunder_native.machine_kernels import IMPORTS as BY_KERNELS
from thunder_native.machine_kernels import KERNELS
from thunder_native.machine_kernels import PYTHON as PYTHON_BY_KERNELS
from thunder_native.machine_views import EXPORTS as OF_VIEWS
from thunder_native.machine_views import VIEWS

IMPORTS = (
    "aoti_torch_new_tensor_handle", "aoti_torch_delete_tensor_object", "aoti_torch_empty_strided",
    "aoti_torch__reinterpret_tensor", "aoti_torch_get_sizes", "aoti_torch_get_strides", "aoti_torch_get_dim",
    "aoti_torch_cpu_addmm_out", "aoti_torch_cpu_mm_out", "aoti_torch_cpu_cat",
    "torch_call_dispatcher", "torch_new_stable_ivalue", "torch_new_list_reserve_size", "torch_list_push_back",
    "torch_list_get_item", "torch_delete_list", "torch_new_string_handle",
    "aoti_torch_is_contiguous", "aoti_torch_get_numel", "aoti_torch_get_data_ptr", *BY_KERNELS,
)  # fmt: skip
"""What is called of PyTorch's C interface, besides the functions that tables name."""

PYTHON = (
    "PyCapsule_GetPointer", "PyCapsule_New", "PyList_New", "PyList_SetItem", "PyEval_SaveThread",
    "PyEval_RestoreThread", "PyLong_FromLong", "PyLong_AsLongLong", "PyErr_Occurred", "PyErr_Clear",
    *PYTHON_BY_KERNELS,
)  # fmt: skip
"""What is called of Python's stable C interface."""

EXPORTS = (
    "enter", "release", "constant", "binary", "binary_alpha", "scalar", "scalar_alpha", "affine", "product",
    "joined", "dispatched", *OF_VIEWS, *OF_INTEGERS, *OF_KERNELS,
)  # fmt: skip
"""The functions of the module: the entry, and the kinds of steps."""

DECLARATIONS = """
declare i32 @aoti_torch_new_tensor_handle(ptr, ptr)
declare i32 @aoti_torch_delete_tensor_object(ptr)
declare i32 @aoti_torch_empty_strided(i64, ptr, ptr, i32, i32, i32, ptr)
declare i32 @aoti_torch__reinterpret_tensor(ptr, i64, ptr, ptr, i64, ptr)
declare i32 @aoti_torch_get_sizes(ptr, ptr)
declare i32 @aoti_torch_get_strides(ptr, ptr)
declare i32 @aoti_torch_get_dim(ptr, ptr)
declare i32 @aoti_torch_cpu_addmm_out(ptr, ptr, ptr, ptr, double, double)
declare i32 @aoti_torch_cpu_mm_out(ptr, ptr, ptr)
declare i32 @aoti_torch_cpu_cat(ptr, i64, i64, ptr)
declare i32 @torch_call_dispatcher(ptr, ptr, ptr, i64)
declare i32 @torch_new_stable_ivalue(ptr)
declare i32 @torch_new_list_reserve_size(i64, ptr)
declare i32 @torch_list_push_back(ptr, i64)
declare i32 @torch_list_get_item(ptr, i64, ptr)
declare i32 @torch_delete_list(ptr)
declare i32 @torch_new_string_handle(ptr, i64, ptr)
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

define internal i64 @word(ptr %words, i64 %index) alwaysinline {
  %at = getelementptr i64, ptr %words, i64 %index
  %value = load i64, ptr %at
  ret i64 %value
}

define internal ptr @slot(ptr %slots, ptr %words, i64 %index) alwaysinline {
  %number = call i64 @word(ptr %words, i64 %index)
  %at = getelementptr ptr, ptr %slots, i64 %number
  ret ptr %at
}

define internal ptr @handle(ptr %slots, ptr %words, i64 %index) alwaysinline {
  %at = call ptr @slot(ptr %slots, ptr %words, i64 %index)
  %value = load ptr, ptr %at
  ret ptr %value
}

define internal ptr @function(ptr %words) alwaysinline {
  %address = call i64 @word(ptr %words, i64 0)
  %found = inttoptr i64 %address to ptr
  ret ptr %found
}

define internal double @number(ptr %words, i64 %index) alwaysinline {
  %bits = call i64 @word(ptr %words, i64 %index)
  %value = bitcast i64 %bits to double
  ret double %value
}
"""

ENTRY = """
; What Python calls, by METH_FASTCALL: a list of capsules that own the outputs, or an integer that says why it did not
; run: -1 where an input is none that the program is for, else the step that failed; null where Python was interrupted
; in a step. Words of the program: inputs that are tensors, slots, steps, address of the steps, outputs, address of the
; outputs' slots, classes of tensors (2), offset of the dispatch keys, the keys allowed (2), offset of the tensor in
; Python's object, inputs that are integers, their class. The slot of the first integer is in front of that of the first
; tensor, the second one's in front of it.
define ptr @enter(ptr %self, ptr %args, i64 %given) {
start:
  %program = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
  %inputs = call i64 @word(ptr %program, i64 0)
  %count = call i64 @word(ptr %program, i64 1)
  %steps = call i64 @word(ptr %program, i64 2)
  %code_at = call i64 @word(ptr %program, i64 3)
  %code = inttoptr i64 %code_at to ptr
  %numbers = call i64 @word(ptr %program, i64 12)
  %integer = call i64 @word(ptr %program, i64 13)
  %all = add i64 %count, %numbers
  %room = alloca ptr, i64 %all
  %slots = getelementptr ptr, ptr %room, i64 %numbers
  %bytes = mul i64 %count, 8
  call void @llvm.memset.p0.i64(ptr %slots, i8 0, i64 %bytes, i1 false)
  %first = call i64 @word(ptr %program, i64 6)
  %second = call i64 @word(ptr %program, i64 7)
  %key_offset = call i64 @word(ptr %program, i64 8)
  %key_one = call i64 @word(ptr %program, i64 9)
  %key_two = call i64 @word(ptr %program, i64 10)
  %offset = call i64 @word(ptr %program, i64 11)
  %wanted = add i64 %inputs, %numbers
  %fits = icmp eq i64 %given, %wanted
  br i1 %fits, label %take, label %refuse

take:
  %i = phi i64 [ 0, %start ], [ %i_next, %taken ]
  %more = icmp ult i64 %i, %inputs
  br i1 %more, label %look, label %take_number

look:
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
  %keys_at = getelementptr i8, ptr %tensor, i64 %key_offset
  %keys = load i64, ptr %keys_at
  %is_one = icmp eq i64 %keys, %key_one
  %is_two = icmp eq i64 %keys, %key_two
  %plain = or i1 %is_one, %is_two
  br i1 %plain, label %own, label %refuse

own:
  %into = getelementptr ptr, ptr %slots, i64 %i
  %own_error = call i32 @aoti_torch_new_tensor_handle(ptr %borrowed, ptr %into)
  %owned = icmp eq i32 %own_error, 0
  br i1 %owned, label %taken, label %refuse

taken:
  %i_next = add i64 %i, 1
  br label %take

take_number:
  %j = phi i64 [ 0, %take ], [ %j_next, %store_number ]
  %more_numbers = icmp ult i64 %j, %numbers
  br i1 %more_numbers, label %look_number, label %run

look_number:
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
  %j_next = add i64 %j, 1
  %back = sub i64 0, %j_next
  %number_slot = getelementptr i64, ptr %slots, i64 %back
  store i64 %value, ptr %number_slot
  br label %take_number

refuse:
  call void @clear(ptr %slots, i64 %count)
  %refusal = call ptr @PyLong_FromLong(i64 -1)
  ret ptr %refusal

run:
  %thread = call ptr @PyEval_SaveThread()
  br label %step

step:
  %n = phi i64 [ 0, %run ], [ %n_next, %stepped ]
  %at = phi ptr [ %code, %run ], [ %at_next, %stepped ]
  %going = icmp ult i64 %n, %steps
  br i1 %going, label %do, label %done

do:
  %function_address = call i64 @word(ptr %at, i64 0)
  %length = call i64 @word(ptr %at, i64 1)
  %words = getelementptr i64, ptr %at, i64 2
  %at_next = getelementptr i64, ptr %words, i64 %length
  %function = inttoptr i64 %function_address to ptr
  %error = call i32 %function(ptr %slots, ptr %words)
  %worked = icmp eq i32 %error, 0
  br i1 %worked, label %stepped, label %failed

stepped:
  %n_next = add i64 %n, 1
  br label %step

failed:
  call void @clear(ptr %slots, i64 %count)
  call void @PyEval_RestoreThread(ptr %thread)
  %interrupted = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %interrupted, null
  br i1 %raised, label %raise, label %tell
raise:
  ret ptr null
tell:
  %failure = call ptr @PyLong_FromLong(i64 %n)
  ret ptr %failure

done:
  call void @PyEval_RestoreThread(ptr %thread)
  %outputs = call i64 @word(ptr %program, i64 4)
  %list = call ptr @PyList_New(i64 %outputs)
  %no_list = icmp eq ptr %list, null
  br i1 %no_list, label %finish, label %give

give:
  %o = phi i64 [ 0, %done ], [ %o_next, %given_one ]
  %giving = icmp ult i64 %o, %outputs
  br i1 %giving, label %wrap, label %finish

wrap:
  %outputs_address = call i64 @word(ptr %program, i64 5)
  %outputs_at = inttoptr i64 %outputs_address to ptr
  %result = call ptr @handle(ptr %slots, ptr %outputs_at, i64 %o)
  %capsule = call ptr @PyCapsule_New(ptr %result, ptr null, ptr null)
  %no_capsule = icmp eq ptr %capsule, null
  br i1 %no_capsule, label %finish, label %given_one

given_one:
  %result_at = call ptr @slot(ptr %slots, ptr %outputs_at, i64 %o)
  store ptr null, ptr %result_at
  %set = call i32 @PyList_SetItem(ptr %list, i64 %o, ptr %capsule)
  %o_next = add i64 %o, 1
  br label %give

finish:
  %answer = phi ptr [ null, %done ], [ %list, %give ], [ null, %wrap ]
  call void @clear(ptr %slots, i64 %count)
  ret ptr %answer
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal void @drop(ptr %at) {
  %value = load ptr, ptr %at
  %empty = icmp eq ptr %value, null
  br i1 %empty, label %end, label %full
full:
  %error = call i32 @aoti_torch_delete_tensor_object(ptr %value)
  store ptr null, ptr %at
  br label %end
end:
  ret void
}

define internal void @clear(ptr %slots, i64 %count) {
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %end
body:
  %at = getelementptr ptr, ptr %slots, i64 %i
  call void @drop(ptr %at)
  %next = add i64 %i, 1
  br label %loop
end:
  ret void
}
"""

STEPS = """
; how many, slots: forget tensors
define i32 @release(ptr %slots, ptr %words) {
start:
  %count = call i64 @word(ptr %words, i64 0)
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %end
body:
  %next = add i64 %i, 1
  %at = call ptr @slot(ptr %slots, ptr %words, i64 %next)
  call void @drop(ptr %at)
  br label %loop
end:
  ret i32 0
}

; address of a tensor, to: a handle of a tensor that the program holds
define i32 @constant(ptr %slots, ptr %words) {
  %from = call ptr @function(ptr %words)
  %to = call ptr @slot(ptr %slots, ptr %words, i64 1)
  %error = call i32 @aoti_torch_new_tensor_handle(ptr %from, ptr %to)
  ret i32 %error
}

; function, a, b, out
define i32 @binary(ptr %slots, ptr %words) {
  %function = call ptr @function(ptr %words)
  %a = call ptr @handle(ptr %slots, ptr %words, i64 1)
  %b = call ptr @handle(ptr %slots, ptr %words, i64 2)
  %out = call ptr @slot(ptr %slots, ptr %words, i64 3)
  %error = call i32 %function(ptr %a, ptr %b, ptr %out)
  ret i32 %error
}

; function, a, b, out, alpha
define i32 @binary_alpha(ptr %slots, ptr %words) {
  %function = call ptr @function(ptr %words)
  %a = call ptr @handle(ptr %slots, ptr %words, i64 1)
  %b = call ptr @handle(ptr %slots, ptr %words, i64 2)
  %out = call ptr @slot(ptr %slots, ptr %words, i64 3)
  %alpha = call double @number(ptr %words, i64 4)
  %error = call i32 %function(ptr %a, ptr %b, double %alpha, ptr %out)
  ret i32 %error
}

; function, a, out, number
define i32 @scalar(ptr %slots, ptr %words) {
  %function = call ptr @function(ptr %words)
  %a = call ptr @handle(ptr %slots, ptr %words, i64 1)
  %out = call ptr @slot(ptr %slots, ptr %words, i64 2)
  %value = call double @number(ptr %words, i64 3)
  %error = call i32 %function(ptr %a, double %value, ptr %out)
  ret i32 %error
}

; function, a, out, number, alpha
define i32 @scalar_alpha(ptr %slots, ptr %words) {
  %function = call ptr @function(ptr %words)
  %a = call ptr @handle(ptr %slots, ptr %words, i64 1)
  %out = call ptr @slot(ptr %slots, ptr %words, i64 2)
  %value = call double @number(ptr %words, i64 3)
  %alpha = call double @number(ptr %words, i64 4)
  %error = call i32 %function(ptr %a, double %value, double %alpha, ptr %out)
  ret i32 %error
}

; a matrix with its dimensions exchanged, in its own memory; the caller knows that it is a matrix
define internal i32 @exchange(ptr %matrix, ptr %out) {
  %shape_at = alloca ptr
  %strides_at = alloca ptr
  %new_shape = alloca i64, i64 2
  %new_strides = alloca i64, i64 2
  %e1 = call i32 @aoti_torch_get_sizes(ptr %matrix, ptr %shape_at)
  %e2 = call i32 @aoti_torch_get_strides(ptr %matrix, ptr %strides_at)
  %e12 = or i32 %e1, %e2
  %ok = icmp eq i32 %e12, 0
  br i1 %ok, label %go, label %fail
go:
  %shape = load ptr, ptr %shape_at
  %strides = load ptr, ptr %strides_at
  %rows = call i64 @word(ptr %shape, i64 0)
  %columns = call i64 @word(ptr %shape, i64 1)
  %row_stride = call i64 @word(ptr %strides, i64 0)
  %column_stride = call i64 @word(ptr %strides, i64 1)
  %shape_1 = getelementptr i64, ptr %new_shape, i64 1
  %strides_1 = getelementptr i64, ptr %new_strides, i64 1
  store i64 %columns, ptr %new_shape
  store i64 %rows, ptr %shape_1
  store i64 %column_stride, ptr %new_strides
  store i64 %row_stride, ptr %strides_1
  %error = call i32 @aoti_torch__reinterpret_tensor(ptr %matrix, i64 2, ptr %new_shape, ptr %new_strides, i64 0,
                                                    ptr %out)
  ret i32 %error
fail:
  ret i32 1
}

; memory for the product of two matrices, the second one given with its dimensions exchanged if %exchanged
define internal i32 @room(ptr %a, ptr %b, i64 %exchanged, i64 %dtype, ptr %out) {
  %dim_a = alloca i64
  %dim_b = alloca i64
  %a_at = alloca ptr
  %b_at = alloca ptr
  %shape = alloca i64, i64 2
  %strides = alloca i64, i64 2
  %e1 = call i32 @aoti_torch_get_dim(ptr %a, ptr %dim_a)
  %e2 = call i32 @aoti_torch_get_dim(ptr %b, ptr %dim_b)
  %e3 = call i32 @aoti_torch_get_sizes(ptr %a, ptr %a_at)
  %e4 = call i32 @aoti_torch_get_sizes(ptr %b, ptr %b_at)
  %na = load i64, ptr %dim_a
  %nb = load i64, ptr %dim_b
  %a_flat = icmp eq i64 %na, 2
  %b_flat = icmp eq i64 %nb, 2
  %flat = and i1 %a_flat, %b_flat
  br i1 %flat, label %go, label %fail
go:
  %sizes_a = load ptr, ptr %a_at
  %sizes_b = load ptr, ptr %b_at
  %rows = call i64 @word(ptr %sizes_a, i64 0)
  %last = sub i64 1, %exchanged
  %columns = call i64 @word(ptr %sizes_b, i64 %last)
  %small = icmp slt i64 %columns, 1
  %row_stride = select i1 %small, i64 1, i64 %columns
  %shape_1 = getelementptr i64, ptr %shape, i64 1
  %strides_1 = getelementptr i64, ptr %strides, i64 1
  store i64 %rows, ptr %shape
  store i64 %columns, ptr %shape_1
  store i64 %row_stride, ptr %strides
  store i64 1, ptr %strides_1
  %dtype_code = trunc i64 %dtype to i32
  %error = call i32 @aoti_torch_empty_strided(i64 2, ptr %shape, ptr %strides, i32 %dtype_code, i32 0, i32 0, ptr %out)
  ret i32 %error
fail:
  ret i32 1
}

; a, b, bias, out, dtype, whether b is to be taken with its dimensions exchanged: bias + a @ b of matrices
define i32 @affine(ptr %slots, ptr %words) {
  %weight = alloca ptr
  %made = alloca ptr
  store ptr null, ptr %weight
  store ptr null, ptr %made
  %a = call ptr @handle(ptr %slots, ptr %words, i64 0)
  %w = call ptr @handle(ptr %slots, ptr %words, i64 1)
  %bias = call ptr @handle(ptr %slots, ptr %words, i64 2)
  %out = call ptr @slot(ptr %slots, ptr %words, i64 3)
  %dtype = call i64 @word(ptr %words, i64 4)
  %exchanged = call i64 @word(ptr %words, i64 5)
  %as_is = icmp eq i64 %exchanged, 0
  %e1 = call i32 @room(ptr %a, ptr %w, i64 %exchanged, i64 %dtype, ptr %made)
  %ok1 = icmp eq i32 %e1, 0
  br i1 %ok1, label %choose, label %fail
choose:
  br i1 %as_is, label %compute, label %turn
turn:
  %e2 = call i32 @exchange(ptr %w, ptr %weight)
  %ok2 = icmp eq i32 %e2, 0
  br i1 %ok2, label %compute, label %fail
compute:
  %room = load ptr, ptr %made
  %exchanged_b = load ptr, ptr %weight
  %turned = select i1 %as_is, ptr %w, ptr %exchanged_b
  %e3 = call i32 @aoti_torch_cpu_addmm_out(ptr %room, ptr %bias, ptr %a, ptr %turned, double 1.0, double 1.0)
  %ok3 = icmp eq i32 %e3, 0
  br i1 %ok3, label %done, label %fail
done:
  call void @drop(ptr %weight)
  store ptr %room, ptr %out
  ret i32 0
fail:
  call void @drop(ptr %weight)
  call void @drop(ptr %made)
  ret i32 1
}

; a, b, out, dtype: the product of matrices
define i32 @product(ptr %slots, ptr %words) {
  %made = alloca ptr
  store ptr null, ptr %made
  %a = call ptr @handle(ptr %slots, ptr %words, i64 0)
  %b = call ptr @handle(ptr %slots, ptr %words, i64 1)
  %out = call ptr @slot(ptr %slots, ptr %words, i64 2)
  %dtype = call i64 @word(ptr %words, i64 3)
  %e1 = call i32 @room(ptr %a, ptr %b, i64 0, i64 %dtype, ptr %made)
  %ok1 = icmp eq i32 %e1, 0
  br i1 %ok1, label %compute, label %fail
compute:
  %room = load ptr, ptr %made
  %e2 = call i32 @aoti_torch_cpu_mm_out(ptr %room, ptr %a, ptr %b)
  %ok2 = icmp eq i32 %e2, 0
  br i1 %ok2, label %done, label %fail
done:
  store ptr %room, ptr %out
  ret i32 0
fail:
  call void @drop(ptr %made)
  ret i32 1
}

; out, dimension, how many, slots
define i32 @joined(ptr %slots, ptr %words) {
start:
  %out = call ptr @slot(ptr %slots, ptr %words, i64 0)
  %dimension = call i64 @word(ptr %words, i64 1)
  %count = call i64 @word(ptr %words, i64 2)
  %handles = alloca ptr, i64 %count
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %end
body:
  %from = add i64 %i, 3
  %next = add i64 %i, 1
  %one = call ptr @handle(ptr %slots, ptr %words, i64 %from)
  %to = getelementptr ptr, ptr %handles, i64 %i
  store ptr %one, ptr %to
  br label %loop
end:
  %error = call i32 @aoti_torch_cpu_cat(ptr %handles, i64 %count, i64 %dimension, ptr %out)
  ret i32 %error
}
"""


def module() -> str:
    """Return the text of the module."""
    return DECLARATIONS + ENTRY + STEPS + DISPATCHED + VIEWS + INTEGERS + KERNELS
