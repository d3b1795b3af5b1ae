"""The native code of views that nobody outside of a region can see, as LLVM's text: no dispatcher, no record of a base.

Each asks the tensor at hand for its sizes and strides, and reports an error where it has other dimensions than
expected.
"""

from thunder_native.machine_text import attempt, function, loop, reads, step

_DECLARATIONS = """
declare i32 @aoti_torch_is_contiguous(ptr, ptr)
declare i32 @aoti_torch_get_numel(ptr, ptr)

; sizes and strides of a tensor of so many dimensions; 1 if it has others"""

_LIES = function(
    "i32 @lies(ptr %tensor, i64 %expected, ptr %shape_at, ptr %strides_at)",
    f"""
  %dim_at = alloca i64
{
        attempt(
            "known",
            "aoti_torch_get_dim(ptr %tensor, ptr %dim_at)",
            "aoti_torch_get_sizes(ptr %tensor, ptr %shape_at)",
            "aoti_torch_get_strides(ptr %tensor, ptr %strides_at)",
        )
    }
  %dim = load i64, ptr %dim_at
  %other = icmp ne i64 %dim, %expected
  %error = zext i1 %other to i32
  ret i32 %error
fail:
  ret i32 1
""",
)

_LAYOUT = f"""
  %shape_at = alloca ptr
  %strides_at = alloca ptr
  %new_shape = alloca i64, i64 %dim
  %new_strides = alloca i64, i64 %dim
{attempt("lying", "lies(ptr %a, i64 %dim, ptr %shape_at, ptr %strides_at)")}
  %shape = load ptr, ptr %shape_at
  %strides = load ptr, ptr %strides_at
"""
"""Where tensor ``a`` of ``dim`` dimensions has its sizes and strides, and where those of a view go."""

# which: the dimension of which a part is taken; dropped: whether it is no dimension of the view
_PART = step(
    "part",
    "tensor a, slot out, word dim, word which, word first, word length, word dropped",
    f"""{_LAYOUT}
  %have = call i64 @word(ptr %shape, i64 %which)
  %end = add i64 %first, %length
  %inside = icmp sle i64 %end, %have
  br i1 %inside, label %bounded, label %fail
bounded:
{loop("i", "%dim", "copy", "make", enter="bounded", carried={"i64 to": ("0", "%to_next")})}
  %here = icmp eq i64 %i, %which
  %size = call i64 @word(ptr %shape, i64 %i)
  %stride = call i64 @word(ptr %strides, i64 %i)
  %new_size = select i1 %here, i64 %length, i64 %size
  %size_to = getelementptr i64, ptr %new_shape, i64 %to
  %stride_to = getelementptr i64, ptr %new_strides, i64 %to
  store i64 %new_size, ptr %size_to
  store i64 %stride, ptr %stride_to
  %back = select i1 %here, i64 %dropped, i64 0
  %kept = sub i64 1, %back
  %to_next = add i64 %to, %kept
  br label %each_i
make:
  %its_stride = call i64 @word(ptr %strides, i64 %which)
  %moved = mul i64 %its_stride, %first
  %made = call i32 @aoti_torch__reinterpret_tensor(ptr %a, i64 %to, ptr %new_shape, ptr %new_strides, i64 %moved,
                                                   ptr %out)
  ret i32 %made
fail:
  ret i32 1
""",
)

# and then which dimension comes at each place
_PERMUTED = step(
    "permuted",
    "tensor a, slot out, word dim",
    f"""{_LAYOUT}
{loop("i", "%dim", "copy", "make", enter="lying")}
  %index = add i64 %i, 3
  %from = call i64 @word(ptr %words, i64 %index)
  %size = call i64 @word(ptr %shape, i64 %from)
  %stride = call i64 @word(ptr %strides, i64 %from)
  %size_to = getelementptr i64, ptr %new_shape, i64 %i
  %stride_to = getelementptr i64, ptr %new_strides, i64 %i
  store i64 %size, ptr %size_to
  store i64 %stride, ptr %stride_to
  br label %each_i
make:
  %made = call i32 @aoti_torch__reinterpret_tensor(ptr %a, i64 %dim, ptr %new_shape, ptr %new_strides, i64 0,
                                                   ptr %out)
  ret i32 %made
fail:
  ret i32 1
""",
)

# whether a tensor lies in memory in order, and has so many elements
_IN_ORDER = function(
    "i1 @in_order(ptr %a, i64 %expected)",
    """
  %in_order_at = alloca i8
  %elements_at = alloca i64
  store i8 0, ptr %in_order_at
  %e1 = call i32 @aoti_torch_is_contiguous(ptr %a, ptr %in_order_at)
  %e2 = call i32 @aoti_torch_get_numel(ptr %a, ptr %elements_at)
  %in_order = load i8, ptr %in_order_at
  %elements = load i64, ptr %elements_at
  %is_in_order = icmp ne i8 %in_order, 0
  %as_many = icmp eq i64 %elements, %expected
  %plain = and i1 %is_in_order, %as_many
  ret i1 %plain
""",
)

# another shape of a tensor that lies in memory in order; of others by the dispatcher, whose words come last
_SHAPED = step(
    "shaped",
    "tensor a, slot out, word dim, word expected, address sizes, address strides, address call",
    """
  %plain = call i1 @in_order(ptr %a, i64 %expected)
  br i1 %plain, label %make, label %dispatch
make:
  %made = call i32 @aoti_torch__reinterpret_tensor(ptr %a, i64 %dim, ptr %sizes, ptr %strides, i64 0, ptr %out)
  ret i32 %made
dispatch:
  %error = call i32 @dispatched(ptr %slots, ptr %call)
  ret i32 %error
""",
)

# whether oneDNN is switched on, and a matrix lies in memory row by row, or column by column, and is so given to it;
# fails if not
_DENSE = step(
    "for_onednn",
    "tensor a, address context_of, address is_enabled",
    f"""
  %context = call ptr %context_of()
  %enabled = call zeroext i1 %is_enabled(ptr %context)
  br i1 %enabled, label %on, label %fail
on:
  %shape_at = alloca ptr
  %strides_at = alloca ptr
{attempt("look", "lies(ptr %a, i64 2, ptr %shape_at, ptr %strides_at)")}
  %shape = load ptr, ptr %shape_at
  %strides = load ptr, ptr %strides_at
{reads("word rows, word columns", "%shape")}
{reads("word row_stride, word column_stride", "%strides")}
  %by_one = icmp eq i64 %column_stride, 1
  %by_row = icmp eq i64 %row_stride, %columns
  %in_rows = and i1 %by_one, %by_row
  %one_by = icmp eq i64 %row_stride, 1
  %by_column = icmp eq i64 %column_stride, %rows
  %in_columns = and i1 %one_by, %by_column
  %dense = or i1 %in_rows, %in_columns
  br i1 %dense, label %yes, label %fail
yes:
  ret i32 0
fail:
  ret i32 1
""",
)

VIEWS = _DECLARATIONS + _LIES + _PART + _PERMUTED + _IN_ORDER + _SHAPED + _DENSE
