"""The native code of writes to slices of a tensor at indices, such as a token's keys in a cache, as LLVM's text.

PyTorch's operator takes several times as long as the few rows that are copied.
"""

from thunder_native.machine_text import attempt, function, loop, step

_DECLARATIONS = """
declare void @_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE(ptr)
"""

# whether all sizes but that of dimension %dim are those of another tensor
_ALIKE_BUT = function(
    "i1 @alike_but(ptr %a, ptr %b, i64 %dims, i64 %dim)",
    f"""
{loop("i", "%dims", "one", "yes", back="one")}
  %size_a = call i64 @word(ptr %a, i64 %i)
  %size_b = call i64 @word(ptr %b, i64 %i)
  %same = icmp eq i64 %size_a, %size_b
  %excepted = icmp eq i64 %i, %dim
  %fits = or i1 %same, %excepted
  br i1 %fits, label %each_i, label %no
yes:
  ret i1 true
no:
  ret i1 false
""",
)

# so many elements of %size bytes, each so far from the one before it, to where they are as far as that from each other
_COPIED = function(
    "void @copied(ptr %to, ptr %from, i64 %count, i64 %size, i64 %step_to, i64 %step_from)",
    f"""
  %rows_to = icmp eq i64 %step_to, %size
  %rows_from = icmp eq i64 %step_from, %size
  %in_rows = and i1 %rows_to, %rows_from
  br i1 %in_rows, label %whole, label %single
whole:
  %bytes = mul i64 %count, %size
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  ret void
single:
{loop("i", "%count", "element", "end", enter="single")}
  %far_to = mul i64 %i, %step_to
  %far_from = mul i64 %i, %step_from
  %at_to = getelementptr i8, ptr %to, i64 %far_to
  %at_from = getelementptr i8, ptr %from, i64 %far_from
  call void @llvm.memcpy.p0.p0.i64(ptr %at_to, ptr %at_from, i64 %size, i1 false)
  br label %each_i
end:
  ret void
""",
)

# slices of %source at indices of a dimension of %a, which is not the last one; both have so many dimensions, and
# elements of %size bytes. It fails, before anything is written, where sizes do not fit, an index is out of range, both
# lie in one storage, or %a has other dispatch keys than %keys.
_SLICES_WRITTEN = step(
    "slices_written",
    "tensor a, tensor index, tensor source, slot out, word dims, word dim, word size, word index_dims, "
    "word key_offset, word keys, word storage_offset",
    f"""
  %shape_at = alloca ptr
  %strides_at = alloca ptr
  %source_shape_at = alloca ptr
  %source_strides_at = alloca ptr
  %index_shape_at = alloca ptr
  %index_strides_at = alloca ptr
  %data_at = alloca ptr
  %source_at = alloca ptr
  %index_at = alloca ptr
{
        attempt(
            "look",
            "lies(ptr %a, i64 %dims, ptr %shape_at, ptr %strides_at)",
            "lies(ptr %source, i64 %dims, ptr %source_shape_at, ptr %source_strides_at)",
            "lies(ptr %index, i64 %index_dims, ptr %index_shape_at, ptr %index_strides_at)",
            "aoti_torch_get_data_ptr(ptr %a, ptr %data_at)",
            "aoti_torch_get_data_ptr(ptr %source, ptr %source_at)",
            "aoti_torch_get_data_ptr(ptr %index, ptr %index_at)",
        )
    }
  %tensor = load ptr, ptr %a
  %other = load ptr, ptr %source
  %plain = call i1 @plain(ptr %tensor, i64 %key_offset, i64 %keys, i64 %keys)
  %storage_at = getelementptr i8, ptr %tensor, i64 %storage_offset
  %storage = load ptr, ptr %storage_at
  %other_storage_at = getelementptr i8, ptr %other, i64 %storage_offset
  %other_storage = load ptr, ptr %other_storage_at
  %apart = icmp ne ptr %storage, %other_storage
  %shape = load ptr, ptr %shape_at
  %strides = load ptr, ptr %strides_at
  %source_shape = load ptr, ptr %source_shape_at
  %source_strides = load ptr, ptr %source_strides_at
  %alike = call i1 @alike_but(ptr %shape, ptr %source_shape, i64 %dims, i64 %dim)
  %is_plain = and i1 %plain, %apart
  %may = and i1 %is_plain, %alike
  br i1 %may, label %measure, label %fail
measure:
  %single = icmp eq i64 %index_dims, 0
  br i1 %single, label %counted, label %several
several:
  %index_shape = load ptr, ptr %index_shape_at
  %index_strides = load ptr, ptr %index_strides_at
  %length = call i64 @word(ptr %index_shape, i64 0)
  %its_stride = call i64 @word(ptr %index_strides, i64 0)
  br label %counted
counted:
  %count = phi i64 [ 1, %measure ], [ %length, %several ]
  %index_stride = phi i64 [ 0, %measure ], [ %its_stride, %several ]
  %slices = call i64 @word(ptr %source_shape, i64 %dim)
  %indices = load ptr, ptr %index_at
  %limit = call i64 @word(ptr %shape, i64 %dim)
  %as_many = icmp eq i64 %slices, %count
  br i1 %as_many, label %check, label %fail
check:
{loop("k", "%count", "checked", "begin", enter="check")}
  %checked_at = mul i64 %k, %index_stride
  %checked_index = call i64 @word(ptr %indices, i64 %checked_at)
  %inside = icmp ult i64 %checked_index, %limit
  br i1 %inside, label %each_k, label %fail
begin:
  %outer = sub i64 %dims, 1
  %row = call i64 @word(ptr %source_shape, i64 %outer)
  %row_step_to = call i64 @word(ptr %strides, i64 %outer)
  %row_step_from = call i64 @word(ptr %source_strides, i64 %outer)
  %bytes_to = mul i64 %row_step_to, %size
  %bytes_from = mul i64 %row_step_from, %size
  %data = load ptr, ptr %data_at
  %given = load ptr, ptr %source_at
{loop("d", "%outer", "multiply", "walk", enter="begin", carried={"i64 rows": ("1", "%rows_next")})}
  %extent = call i64 @word(ptr %source_shape, i64 %d)
  %rows_next = mul i64 %rows, %extent
  br label %each_d
walk:
{loop("r", "%rows", "place", "written", enter="walk", back="copy")}
  br label %each
each:
  %rest = phi i64 [ %r, %place ], [ %rest_next, %along ]
  %left = phi i64 [ %outer, %place ], [ %e, %along ]
  %to = phi i64 [ 0, %place ], [ %to_next, %along ]
  %from = phi i64 [ 0, %place ], [ %from_next, %along ]
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %divide, label %copy
divide:
  %e = sub i64 %left, 1
  %n = call i64 @word(ptr %source_shape, i64 %e)
  %c = srem i64 %rest, %n
  %rest_next = sdiv i64 %rest, %n
  %is_dim = icmp eq i64 %e, %dim
  br i1 %is_dim, label %indexed, label %along
indexed:
  %index_place = mul i64 %c, %index_stride
  %found = call i64 @word(ptr %indices, i64 %index_place)
  br label %along
along:
  %slice = phi i64 [ %c, %divide ], [ %found, %indexed ]
  %stride_to = call i64 @word(ptr %strides, i64 %e)
  %stride_from = call i64 @word(ptr %source_strides, i64 %e)
  %further_to = mul i64 %slice, %stride_to
  %further_from = mul i64 %c, %stride_from
  %to_next = add i64 %to, %further_to
  %from_next = add i64 %from, %further_from
  br label %each
copy:
  %offset_to = mul i64 %to, %size
  %offset_from = mul i64 %from, %size
  %target = getelementptr i8, ptr %data, i64 %offset_to
  %read = getelementptr i8, ptr %given, i64 %offset_from
  call void @copied(ptr %target, ptr %read, i64 %row, i64 %size, i64 %bytes_to, i64 %bytes_from)
  br label %each_r
written:
  call void @_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE(ptr %a)
  %error = call i32 @aoti_torch_new_tensor_handle(ptr %a, ptr %out)
  ret i32 %error
fail:
  ret i32 1
""",
)

SLICES = _DECLARATIONS + _ALIKE_BUT + _COPIED + _SLICES_WRITTEN
