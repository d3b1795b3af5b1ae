"""The native code of products of matrices, with a bias and without, and of columns times rows, as LLVM's text."""

from thunder_native.machine_text import attempt, function, loop, reads, step

_DECLARATIONS = """
declare i32 @aoti_torch_cpu_addmm_out(ptr, ptr, ptr, ptr, double, double)
declare i32 @aoti_torch_cpu_mm_out(ptr, ptr, ptr)
"""

# whether it worked: a matrix with its dimensions exchanged, in its own memory
_EXCHANGE = function(
    "i32 @exchange(ptr %matrix, ptr %out)",
    f"""
  %shape_at = alloca ptr
  %strides_at = alloca ptr
  %new_shape = alloca i64, i64 2
  %new_strides = alloca i64, i64 2
{attempt("go", "lies(ptr %matrix, i64 2, ptr %shape_at, ptr %strides_at)")}
  %shape = load ptr, ptr %shape_at
  %strides = load ptr, ptr %strides_at
{reads("word rows, word columns", "%shape")}
{reads("word row_stride, word column_stride", "%strides")}
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
""",
)

# whether it worked: memory for the product of two matrices, the second with its dimensions exchanged if %exchanged
_ROOM = function(
    "i32 @room(ptr %a, ptr %b, i64 %exchanged, i64 %dtype, ptr %out)",
    f"""
  %a_at = alloca ptr
  %b_at = alloca ptr
  %unread = alloca ptr
  %shape = alloca i64, i64 2
  %strides = alloca i64, i64 2
{attempt("go", "lies(ptr %a, i64 2, ptr %a_at, ptr %unread)", "lies(ptr %b, i64 2, ptr %b_at, ptr %unread)")}
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
""",
)

# whether every row of a matrix that lies in order is now a bias, which lies in a row; of %size bytes an element
_SPREAD = function(
    "i1 @spread(ptr %bias, ptr %matrix, i64 %size)",
    f"""
  %length_at = alloca ptr
  %stride_at = alloca ptr
  %shape_at = alloca ptr
  %unread = alloca ptr
  %from = alloca ptr
  %to = alloca ptr
{
        attempt(
            "lying",
            "lies(ptr %bias, i64 1, ptr %length_at, ptr %stride_at)",
            "lies(ptr %matrix, i64 2, ptr %shape_at, ptr %unread)",
        )
    }
  %lengths = load ptr, ptr %length_at
  %strides = load ptr, ptr %stride_at
  %shape = load ptr, ptr %shape_at
{reads("word length", "%lengths")}
{reads("word stride", "%strides")}
{reads("word rows, word columns", "%shape")}
  %fits = icmp eq i64 %length, %columns
  %in_order = icmp eq i64 %stride, 1
  %plain = and i1 %fits, %in_order
  br i1 %plain, label %find, label %fail
find:
{attempt("copy", "aoti_torch_get_data_ptr(ptr %bias, ptr %from)", "aoti_torch_get_data_ptr(ptr %matrix, ptr %to)")}
  %source = load ptr, ptr %from
  %target = load ptr, ptr %to
  %bytes = mul i64 %length, %size
{loop("i", "%rows", "row", "end", enter="copy")}
  %offset = mul i64 %i, %bytes
  %at = getelementptr i8, ptr %target, i64 %offset
  call void @llvm.memcpy.p0.p0.i64(ptr %at, ptr %source, i64 %bytes, i1 false)
  br label %each_i
end:
  ret i1 true
fail:
  ret i1 false
""",
)

# whether it worked: a product and a bias added, put into a room; a small bias of the dtype of the result, of which the
# bytes of an element are told, is spread out here, so that PyTorch adds to what is there
_BIASED = function(
    "i32 @biased(ptr %room, ptr %a, ptr %b, ptr %bias, i64 %size)",
    """
  %is_small = icmp ne i64 %size, 0
  br i1 %is_small, label %try, label %compute
try:
  %is_there = call i1 @spread(ptr %bias, ptr %room, i64 %size)
  br label %compute
compute:
  %there = phi i1 [ false, %start ], [ %is_there, %try ]
  %added = select i1 %there, ptr %room, ptr %bias
  %error = call i32 @aoti_torch_cpu_addmm_out(ptr %room, ptr %added, ptr %a, ptr %b, double 1.0, double 1.0)
  ret i32 %error
""",
)

# bias + a @ b of matrices, b with its dimensions exchanged if that is said
_AFFINE = step(
    "affine",
    "tensor a, tensor b, tensor bias, slot out, word dtype, word exchanged, word size",
    f"""
  %turned_at = alloca ptr
  store ptr null, ptr %turned_at
  %as_is = icmp eq i64 %exchanged, 0
{attempt("made", "room(ptr %a, ptr %b, i64 %exchanged, i64 %dtype, ptr %out)")}
  %room = load ptr, ptr %out
  br i1 %as_is, label %compute, label %turn
turn:
{attempt("turned", "exchange(ptr %b, ptr %turned_at)")}
  br label %compute
compute:
  %turned_b = load ptr, ptr %turned_at
  %factor = select i1 %as_is, ptr %b, ptr %turned_b
{attempt("done", "biased(ptr %room, ptr %a, ptr %factor, ptr %bias, i64 %size)")}
  call void @drop(ptr %turned_at)
  ret i32 0
fail:
  call void @drop(ptr %turned_at)
  ret i32 1
""",
)  # fmt: skip

_PRODUCT = step(
    "product",
    "tensor a, tensor b, slot out, word dtype",
    f"""
{attempt("compute", "room(ptr %a, ptr %b, i64 0, i64 %dtype, ptr %out)")}
  %room = load ptr, ptr %out
  %error = call i32 @aoti_torch_cpu_mm_out(ptr %room, ptr %a, ptr %b)
  ret i32 %error
fail:
  ret i32 1
""",
)

# whether PyTorch multiplies the rows of a tensor as a matrix: strides count here for dimensions of one element, too
_FOLDS = function(
    "i1 @folds(ptr %a, i64 %dims)",
    f"""
  %sizes_at = alloca ptr
  %strides_at = alloca ptr
{attempt("look", "lies(ptr %a, i64 %dims, ptr %sizes_at, ptr %strides_at)")}
  %sizes = load ptr, ptr %sizes_at
  %strides = load ptr, ptr %strides_at
  %pairs = sub i64 %dims, 2
{loop("i", "%pairs", "compare", "fold", enter="look", back="as_far")}
  %size = call i64 @word(ptr %sizes, i64 %i_next)
  %next_stride = call i64 @word(ptr %strides, i64 %i_next)
  %stride = call i64 @word(ptr %strides, i64 %i)
  %wanted = mul i64 %size, %next_stride
  %same = icmp eq i64 %stride, %wanted
  br i1 %same, label %as_far, label %fail
as_far:
  br label %each_i
fold:
  ret i1 true
fail:
  ret i1 false
""",
)

# a @ weight.T, and a bias if there is one, of a tensor of more dimensions that lies in order, as a matrix of its rows;
# of others by the dispatcher, whose words come last
_LINEAR = step(
    "linear",
    "tensor a, tensor weight, tensor bias, slot out, word dtype, word biased, word size, word expected, "
    "address flat_sizes, address flat_strides, word dims, address sizes, address strides, address call",
    f"""
  %flat_at = alloca ptr
  %room_at = alloca ptr
  %turned_at = alloca ptr
  store ptr null, ptr %flat_at
  store ptr null, ptr %room_at
  store ptr null, ptr %turned_at
  %has_bias = icmp ne i64 %biased, 0
  %is_plain = call i1 @in_order(ptr %a, i64 %expected)
  br i1 %is_plain, label %ask, label %dispatch
ask:
  %is_folded = call i1 @folds(ptr %a, i64 %dims)
  %flattens = or i1 %has_bias, %is_folded
  br i1 %flattens, label %flatten, label %dispatch
dispatch:
  %error = call i32 @dispatched(ptr %slots, ptr %call)
  ret i32 %error
flatten:
{
        attempt(
            "flat",
            "aoti_torch__reinterpret_tensor(ptr %a, i64 2, ptr %flat_sizes, ptr %flat_strides, i64 0, ptr %flat_at)",
            "exchange(ptr %weight, ptr %turned_at)",
        )
    }
  %matrix = load ptr, ptr %flat_at
  %factor = load ptr, ptr %turned_at
{attempt("made", "room(ptr %matrix, ptr %factor, i64 0, i64 %dtype, ptr %room_at)")}
  %room = load ptr, ptr %room_at
  br i1 %has_bias, label %add, label %multiply
multiply:
  %multiplied = call i32 @aoti_torch_cpu_mm_out(ptr %room, ptr %matrix, ptr %factor)
  br label %computed
add:
  %added = call i32 @biased(ptr %room, ptr %matrix, ptr %factor, ptr %bias, i64 %size)
  br label %computed
computed:
  %result = phi i32 [ %multiplied, %multiply ], [ %added, %add ]
  %worked = icmp eq i32 %result, 0
  br i1 %worked, label %give, label %fail
give:
{
        attempt(
            "done", "aoti_torch__reinterpret_tensor(ptr %room, i64 %dims, ptr %sizes, ptr %strides, i64 0, ptr %out)"
        )
    }
  br label %fail
fail:
  %status = phi i32 [ 0, %done ], [ 1, %flatten ], [ 1, %flat ], [ 1, %computed ], [ 1, %give ]
  call void @drop(ptr %flat_at)
  call void @drop(ptr %room_at)
  call void @drop(ptr %turned_at)
  ret i32 %status
""",
)  # fmt: skip


def _scaled(name: str, kind: str) -> str:
    """Return the function that writes a row times a number; elements of the row are %step of them apart."""
    return function(
        f"void @scaled_{name}(ptr %to, ptr %number_at, ptr %row, i64 %count, i64 %step)",
        f"""
  %number = load {kind}, ptr %number_at
  %one = insertelement <8 x {kind}> poison, {kind} %number, i32 0
  %eight = shufflevector <8 x {kind}> %one, <8 x {kind}> poison, <8 x i32> zeroinitializer
  %in_row = icmp eq i64 %step, 1
  %eights = lshr i64 %count, 3
  %blocks = select i1 %in_row, i64 %eights, i64 0
  %done = shl i64 %blocks, 3
{loop("k", "%blocks", "block", "rest")}
  %k_at = shl i64 %k, 3
  %k_from = getelementptr {kind}, ptr %row, i64 %k_at
  %k_to = getelementptr {kind}, ptr %to, i64 %k_at
  %k_row = load <8 x {kind}>, ptr %k_from, align 4
  %k_made = fmul <8 x {kind}> %eight, %k_row
  store <8 x {kind}> %k_made, ptr %k_to, align 4
  br label %each_k
rest:
{loop("j", "%count", "element", "end", enter="rest", first="%done")}
  %j_at = mul i64 %j, %step
  %j_from = getelementptr {kind}, ptr %row, i64 %j_at
  %j_to = getelementptr {kind}, ptr %to, i64 %j
  %j_row = load {kind}, ptr %j_from
  %j_made = fmul {kind} %number, %j_row
  store {kind} %j_made, ptr %j_to
  br label %each_j
end:
  ret void
""",
    )


# columns times rows, of matrices or of batches of them, of float or double: each pair of elements multiplied once. It
# fails before anything is asked for where operands have other sizes or dtypes.
_OUTER = step(
    "outer",
    "tensor a, tensor b, slot out, word dims, word dtype, word size, "
    "address sizes_a, address sizes_b, address sizes, address strides",
    f"""
  %a_shape_at = alloca ptr
  %b_shape_at = alloca ptr
  %a_strides_at = alloca ptr
  %b_strides_at = alloca ptr
  %a_dtype_at = alloca i32
  %b_dtype_at = alloca i32
  %a_data_at = alloca ptr
  %b_data_at = alloca ptr
  %data_at = alloca ptr
{
        attempt(
            "look",
            "lies(ptr %a, i64 %dims, ptr %a_shape_at, ptr %a_strides_at)",
            "lies(ptr %b, i64 %dims, ptr %b_shape_at, ptr %b_strides_at)",
            "aoti_torch_get_dtype(ptr %a, ptr %a_dtype_at)",
            "aoti_torch_get_dtype(ptr %b, ptr %b_dtype_at)",
            "aoti_torch_get_data_ptr(ptr %a, ptr %a_data_at)",
            "aoti_torch_get_data_ptr(ptr %b, ptr %b_data_at)",
        )
    }
  %a_shape = load ptr, ptr %a_shape_at
  %b_shape = load ptr, ptr %b_shape_at
  %a_strides = load ptr, ptr %a_strides_at
  %b_strides = load ptr, ptr %b_strides_at
  %a_dtype = load i32, ptr %a_dtype_at
  %b_dtype = load i32, ptr %b_dtype_at
  %code = trunc i64 %dtype to i32
  %fits_a = call i1 @alike(ptr %a_shape, ptr %sizes_a, i64 %dims)
  %fits_b = call i1 @alike(ptr %b_shape, ptr %sizes_b, i64 %dims)
  %is_a = icmp eq i32 %a_dtype, %code
  %is_b = icmp eq i32 %b_dtype, %code
  %fit = and i1 %fits_a, %fits_b
  %are = and i1 %is_a, %is_b
  %may = and i1 %fit, %are
  br i1 %may, label %ask, label %fail
ask:
{
        attempt(
            "find",
            "aoti_torch_empty_strided(i64 %dims, ptr %sizes, ptr %strides, i32 %code, i32 0, i32 0, ptr %out)",
        )
    }
  %made = load ptr, ptr %out
{attempt("measure", "aoti_torch_get_data_ptr(ptr %made, ptr %data_at)")}
  %a_data = load ptr, ptr %a_data_at
  %b_data = load ptr, ptr %b_data_at
  %data = load ptr, ptr %data_at
  %of_rows = sub i64 %dims, 2
  %of_columns = sub i64 %dims, 1
  %rows = call i64 @word(ptr %sizes, i64 %of_rows)
  %columns = call i64 @word(ptr %sizes, i64 %of_columns)
  %a_step = call i64 @word(ptr %a_strides, i64 %of_rows)
  %b_step = call i64 @word(ptr %b_strides, i64 %of_columns)
  %batched = icmp eq i64 %dims, 3
  br i1 %batched, label %several, label %begin
several:
  %count = call i64 @word(ptr %sizes, i64 0)
  %a_stride = call i64 @word(ptr %a_strides, i64 0)
  %b_stride = call i64 @word(ptr %b_strides, i64 0)
  br label %begin
begin:
  %matrices = phi i64 [ 1, %measure ], [ %count, %several ]
  %a_further = phi i64 [ 0, %measure ], [ %a_stride, %several ]
  %b_further = phi i64 [ 0, %measure ], [ %b_stride, %several ]
  %row_bytes = mul i64 %columns, %size
  %is_float = icmp eq i64 %size, 4
{loop("m", "%matrices", "matrix", "end", enter="begin", back="each_r", carried={"ptr at": ("%data", "%to")})}
  %a_first = mul i64 %m, %a_further
  %b_first = mul i64 %m, %b_further
  %b_bytes = mul i64 %b_first, %size
  %row = getelementptr i8, ptr %b_data, i64 %b_bytes
{loop("r", "%rows", "write", "each_m", enter="matrix", back="written", carried={"ptr to": ("%at", "%to_next")})}
  %a_along = mul i64 %r, %a_step
  %a_place = add i64 %a_first, %a_along
  %a_bytes = mul i64 %a_place, %size
  %number_at = getelementptr i8, ptr %a_data, i64 %a_bytes
  %to_next = getelementptr i8, ptr %to, i64 %row_bytes
  br i1 %is_float, label %single, label %double
single:
  call void @scaled_single(ptr %to, ptr %number_at, ptr %row, i64 %columns, i64 %b_step)
  br label %written
double:
  call void @scaled_double(ptr %to, ptr %number_at, ptr %row, i64 %columns, i64 %b_step)
  br label %written
written:
  br label %each_r
end:
  ret i32 0
fail:
  ret i32 1
""",
)

PRODUCTS = "".join(
    [_DECLARATIONS, _EXCHANGE, _ROOM, _SPREAD, _BIASED, _AFFINE, _PRODUCT, _FOLDS, _LINEAR]
    + [_scaled("single", "float"), _scaled("double", "double"), _OUTER]
)
