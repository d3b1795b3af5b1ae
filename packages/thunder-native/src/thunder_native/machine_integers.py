"""The native code of arithmetic on few integers, such as places in a cache, as LLVM's text.

PyTorch's C interface takes no integer beside tensors of integers, so these sums are computed here.
"""

from thunder_native.machine_text import attempt, function, loop, step

_DECLARATIONS = """
declare i32 @aoti_torch_get_data_ptr(ptr, ptr)

; how far it is from one element to the next along dimension %d of %all, in a tensor of %dims that is broadcast to them;
; -1 if it has other sizes there"""

_STEP_ALONG = function(
    "i64 @step_along(ptr %shape, ptr %strides, i64 %dims, i64 %all, i64 %d, i64 %wanted)",
    """
  %missing = sub i64 %all, %dims
  %own = sub i64 %d, %missing
  %absent = icmp slt i64 %own, 0
  br i1 %absent, label %same, label %look
look:
  %size = call i64 @word(ptr %shape, i64 %own)
  %stride = call i64 @word(ptr %strides, i64 %own)
  %fits = icmp eq i64 %size, %wanted
  %one = icmp eq i64 %size, 1
  %otherwise = select i1 %one, i64 0, i64 -1
  %found = select i1 %fits, i64 %stride, i64 %otherwise
  ret i64 %found
same:
  ret i64 0
""",
)

# the sum of tensors of int64, broadcast, or of one (given as both) and a number
_INTEGER_SUM = step(
    "integer_sum",
    "tensor a, tensor b, word of_tensors, word number, slot out, word dtype_word, word all, word elements, "
    "address sizes, address strides, word dims_a, word dims_b",
    f"""
  %shape_a_at = alloca ptr
  %strides_a_at = alloca ptr
  %shape_b_at = alloca ptr
  %strides_b_at = alloca ptr
  %data_a_at = alloca ptr
  %data_b_at = alloca ptr
  %data_at = alloca ptr
  %dtype = trunc i64 %dtype_word to i32
{
        attempt(
            "make",
            "lies(ptr %a, i64 %dims_a, ptr %shape_a_at, ptr %strides_a_at)",
            "lies(ptr %b, i64 %dims_b, ptr %shape_b_at, ptr %strides_b_at)",
            "aoti_torch_get_data_ptr(ptr %a, ptr %data_a_at)",
            "aoti_torch_get_data_ptr(ptr %b, ptr %data_b_at)",
        )
    }
{attempt("find", "aoti_torch_empty_strided(i64 %all, ptr %sizes, ptr %strides, i32 %dtype, i32 0, i32 0, ptr %out)")}
  %result = load ptr, ptr %out
{attempt("found", "aoti_torch_get_data_ptr(ptr %result, ptr %data_at)")}
  %data = load ptr, ptr %data_at
  %data_a = load ptr, ptr %data_a_at
  %data_b = load ptr, ptr %data_b_at
  %shape_a = load ptr, ptr %shape_a_at
  %strides_a = load ptr, ptr %strides_a_at
  %shape_b = load ptr, ptr %shape_b_at
  %strides_b = load ptr, ptr %strides_b_at
{loop("i", "%elements", "element", "done", enter="found", back="add")}
  br label %place
place:
  %rest = phi i64 [ %i, %element ], [ %rest_next, %along ]
  %d = phi i64 [ %all, %element ], [ %d_next, %along ]
  %at_a = phi i64 [ 0, %element ], [ %at_a_next, %along ]
  %at_b = phi i64 [ 0, %element ], [ %at_b_next, %along ]
  %d_more = icmp sgt i64 %d, 0
  br i1 %d_more, label %dimension, label %add
dimension:
  %d_next = sub i64 %d, 1
  %size = call i64 @word(ptr %sizes, i64 %d_next)
  %index = srem i64 %rest, %size
  %rest_next = sdiv i64 %rest, %size
  %step_a = call i64 @step_along(ptr %shape_a, ptr %strides_a, i64 %dims_a, i64 %all, i64 %d_next, i64 %size)
  %step_b = call i64 @step_along(ptr %shape_b, ptr %strides_b, i64 %dims_b, i64 %all, i64 %d_next, i64 %size)
  %both = or i64 %step_a, %step_b
  %other = icmp slt i64 %both, 0
  br i1 %other, label %fail, label %along
along:
  %far_a = mul i64 %index, %step_a
  %far_b = mul i64 %index, %step_b
  %at_a_next = add i64 %at_a, %far_a
  %at_b_next = add i64 %at_b, %far_b
  br label %place
add:
  %x = call i64 @word(ptr %data_a, i64 %at_a)
  %read = call i64 @word(ptr %data_b, i64 %at_b)
  %is_tensor = icmp ne i64 %of_tensors, 0
  %y = select i1 %is_tensor, i64 %read, i64 %number
  %sum = add i64 %x, %y
  %to = getelementptr i64, ptr %data, i64 %i
  store i64 %sum, ptr %to
  br label %each_i
done:
  ret i32 0
fail:
  ret i32 1
""",
)

# whether all elements of a tensor of int64, of at most one dimension, are indices below the size
_WITHIN = step(
    "within",
    "tensor a, word dims, word size",
    f"""
  %shape_at = alloca ptr
  %strides_at = alloca ptr
  %data_at = alloca ptr
{
        attempt(
            "look",
            "lies(ptr %a, i64 %dims, ptr %shape_at, ptr %strides_at)",
            "aoti_torch_get_data_ptr(ptr %a, ptr %data_at)",
        )
    }
  %shape = load ptr, ptr %shape_at
  %strides = load ptr, ptr %strides_at
  %data = load ptr, ptr %data_at
  %single = icmp eq i64 %dims, 0
  br i1 %single, label %begin, label %several
several:
  %length = call i64 @word(ptr %shape, i64 0)
  %its_stride = call i64 @word(ptr %strides, i64 0)
  br label %begin
begin:
  %count = phi i64 [ 1, %look ], [ %length, %several ]
  %stride = phi i64 [ 0, %look ], [ %its_stride, %several ]
{loop("i", "%count", "element", "done", enter="begin")}
  %at = mul i64 %i, %stride
  %index = call i64 @word(ptr %data, i64 %at)
  %there = icmp ult i64 %index, %size
  br i1 %there, label %each_i, label %fail
done:
  ret i32 0
fail:
  ret i32 1
""",
)

INTEGERS = _DECLARATIONS + _STEP_ALONG + _INTEGER_SUM + _WITHIN
