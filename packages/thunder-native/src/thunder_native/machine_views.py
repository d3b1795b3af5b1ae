"""The native code of views that nobody outside of a region can see, as LLVM's text: no dispatcher, no record of a base.

Each asks the tensor at hand for its sizes and strides, and reports an error where it has other dimensions than
expected.
"""

EXPORTS = ("part", "permuted", "shaped")
"""The kinds of steps."""

VIEWS = """
declare i32 @aoti_torch_is_contiguous(ptr, ptr)
declare i32 @aoti_torch_get_numel(ptr, ptr)

; sizes and strides of a tensor of so many dimensions; 1 if it has others
define internal i32 @lies(ptr %tensor, i64 %expected, ptr %shape_at, ptr %strides_at) {
  %dim_at = alloca i64
  %e0 = call i32 @aoti_torch_get_dim(ptr %tensor, ptr %dim_at)
  %dim = load i64, ptr %dim_at
  %e1 = call i32 @aoti_torch_get_sizes(ptr %tensor, ptr %shape_at)
  %e2 = call i32 @aoti_torch_get_strides(ptr %tensor, ptr %strides_at)
  %other = icmp ne i64 %dim, %expected
  %e3 = zext i1 %other to i32
  %e01 = or i32 %e0, %e1
  %e23 = or i32 %e2, %e3
  %error = or i32 %e01, %e23
  ret i32 %error
}

; tensor, out, dimensions, which one, start, length, whether that one is dropped
define i32 @part(ptr %slots, ptr %words) {
start:
  %shape_at = alloca ptr
  %strides_at = alloca ptr
  %a = call ptr @handle(ptr %slots, ptr %words, i64 0)
  %out = call ptr @slot(ptr %slots, ptr %words, i64 1)
  %dim = call i64 @word(ptr %words, i64 2)
  %which = call i64 @word(ptr %words, i64 3)
  %first = call i64 @word(ptr %words, i64 4)
  %length = call i64 @word(ptr %words, i64 5)
  %dropped = call i64 @word(ptr %words, i64 6)
  %new_shape = alloca i64, i64 %dim
  %new_strides = alloca i64, i64 %dim
  %error = call i32 @lies(ptr %a, i64 %dim, ptr %shape_at, ptr %strides_at)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %bounded, label %fail
bounded:
  %shape = load ptr, ptr %shape_at
  %strides = load ptr, ptr %strides_at
  %have = call i64 @word(ptr %shape, i64 %which)
  %end = add i64 %first, %length
  %inside = icmp sle i64 %end, %have
  br i1 %inside, label %loop, label %fail
loop:
  %i = phi i64 [ 0, %bounded ], [ %i_next, %next ]
  %to = phi i64 [ 0, %bounded ], [ %to_next, %next ]
  %more = icmp slt i64 %i, %dim
  br i1 %more, label %copy, label %make
copy:
  %here = icmp eq i64 %i, %which
  %size = call i64 @word(ptr %shape, i64 %i)
  %stride = call i64 @word(ptr %strides, i64 %i)
  %new_size = select i1 %here, i64 %length, i64 %size
  %size_to = getelementptr i64, ptr %new_shape, i64 %to
  %stride_to = getelementptr i64, ptr %new_strides, i64 %to
  store i64 %new_size, ptr %size_to
  store i64 %stride, ptr %stride_to
  br label %next
next:
  %i_next = add i64 %i, 1
  %back = select i1 %here, i64 %dropped, i64 0
  %kept = sub i64 1, %back
  %to_next = add i64 %to, %kept
  br label %loop
make:
  %its_stride = call i64 @word(ptr %strides, i64 %which)
  %moved = mul i64 %its_stride, %first
  %made = call i32 @aoti_torch__reinterpret_tensor(ptr %a, i64 %to, ptr %new_shape, ptr %new_strides, i64 %moved,
                                                   ptr %out)
  ret i32 %made
fail:
  ret i32 1
}

; tensor, out, dimensions, which dimension comes at each place
define i32 @permuted(ptr %slots, ptr %words) {
start:
  %shape_at = alloca ptr
  %strides_at = alloca ptr
  %a = call ptr @handle(ptr %slots, ptr %words, i64 0)
  %out = call ptr @slot(ptr %slots, ptr %words, i64 1)
  %dim = call i64 @word(ptr %words, i64 2)
  %new_shape = alloca i64, i64 %dim
  %new_strides = alloca i64, i64 %dim
  %error = call i32 @lies(ptr %a, i64 %dim, ptr %shape_at, ptr %strides_at)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %begin, label %fail
begin:
  %shape = load ptr, ptr %shape_at
  %strides = load ptr, ptr %strides_at
  br label %loop
loop:
  %i = phi i64 [ 0, %begin ], [ %i_next, %copy ]
  %more = icmp slt i64 %i, %dim
  br i1 %more, label %copy, label %make
copy:
  %index = add i64 %i, 3
  %from = call i64 @word(ptr %words, i64 %index)
  %size = call i64 @word(ptr %shape, i64 %from)
  %stride = call i64 @word(ptr %strides, i64 %from)
  %size_to = getelementptr i64, ptr %new_shape, i64 %i
  %stride_to = getelementptr i64, ptr %new_strides, i64 %i
  store i64 %size, ptr %size_to
  store i64 %stride, ptr %stride_to
  %i_next = add i64 %i, 1
  br label %loop
make:
  %made = call i32 @aoti_torch__reinterpret_tensor(ptr %a, i64 %dim, ptr %new_shape, ptr %new_strides, i64 0,
                                                   ptr %out)
  ret i32 %made
fail:
  ret i32 1
}

; tensor, out, dimensions, elements, address of sizes, address of strides, address of the words of a dispatched call:
; another shape of a tensor that lies in memory in order; of others by the dispatcher
define i32 @shaped(ptr %slots, ptr %words) {
  %in_order_at = alloca i8
  %elements_at = alloca i64
  store i8 0, ptr %in_order_at
  %a = call ptr @handle(ptr %slots, ptr %words, i64 0)
  %out = call ptr @slot(ptr %slots, ptr %words, i64 1)
  %dim = call i64 @word(ptr %words, i64 2)
  %expected = call i64 @word(ptr %words, i64 3)
  %sizes_word = call i64 @word(ptr %words, i64 4)
  %strides_word = call i64 @word(ptr %words, i64 5)
  %sizes = inttoptr i64 %sizes_word to ptr
  %strides = inttoptr i64 %strides_word to ptr
  %e1 = call i32 @aoti_torch_is_contiguous(ptr %a, ptr %in_order_at)
  %e2 = call i32 @aoti_torch_get_numel(ptr %a, ptr %elements_at)
  %in_order = load i8, ptr %in_order_at
  %elements = load i64, ptr %elements_at
  %is_in_order = icmp ne i8 %in_order, 0
  %as_many = icmp eq i64 %elements, %expected
  %plain = and i1 %is_in_order, %as_many
  br i1 %plain, label %make, label %dispatch
make:
  %made = call i32 @aoti_torch__reinterpret_tensor(ptr %a, i64 %dim, ptr %sizes, ptr %strides, i64 0, ptr %out)
  ret i32 %made
dispatch:
  %other_word = call i64 @word(ptr %words, i64 6)
  %other = inttoptr i64 %other_word to ptr
  %error = call i32 @dispatched(ptr %slots, ptr %other)
  ret i32 %error
}
"""
