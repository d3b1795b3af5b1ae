"""The native code that looks whether tensors are as they were, as LLVM's text."""

from thunder_native.machine_text import attempt, function, loop, reads

_DECLARATIONS = """
declare i32 @aoti_torch_get_dtype(ptr, ptr)
declare i1 @_ZNK3c1010TensorImpl13requires_gradEv(ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyBool_FromLong(i64)
"""

# whether an object is none of those in a row, whose words begin with the object
_ELSEWHERE = function(
    "i1 @elsewhere(i64 %object, ptr %rows, i64 %count)",
    f"""
{loop("i", "%count", "row", "end", carried={"ptr at": ("%rows", "%at_next")})}
{reads("word other, word class, word keys, word dtype, word requires, word dims", "%at")}
  %twice = mul i64 %dims, 2
  %length = add i64 %twice, 6
  %at_next = getelementptr i64, ptr %at, i64 %length
  %same = icmp eq i64 %object, %other
  br i1 %same, label %found, label %each_i
found:
  ret i1 false
end:
  ret i1 true
""",
)

# What Python calls with a tuple, by METH_FASTCALL: whether its items, but for the first ones, are the same objects as
# the rows say, and tensors as they say; and whether none of the first ones is another item.
_UNCHANGED = function(
    "ptr @unchanged(ptr %self, ptr %args, i64 %given)",
    f"""
  %dtype_at = alloca i32
  %shape_at = alloca ptr
  %strides_at = alloca ptr
  store i32 0, ptr %dtype_at
  %program = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
{reads("word count, word others, word tensor_offset, word key_offset", "%program")}
  %rows = getelementptr i64, ptr %program, i64 4
  %all = add i64 %count, %others
  %tuple = load ptr, ptr %args
  %size = call i64 @PyTuple_Size(ptr %tuple)
  %fits = icmp eq i64 %size, %all
  br i1 %fits, label %held, label %no
held:
{loop("i", "%count", "look", "apart", enter="held", back="compare", carried={"ptr at": ("%rows", "%at_next")})}
{reads("word other, word class, word keys, word dtype, word requires, word dims", "%at")}
  %sizes = getelementptr i64, ptr %at, i64 6
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
            "lies(ptr %handle, i64 %dims, ptr %shape_at, ptr %strides_at)",
            otherwise="no",
        )
    }
  %dtype_now = load i32, ptr %dtype_at
  %dtype_word = sext i32 %dtype_now to i64
  %is_dtype = icmp eq i64 %dtype_word, %dtype
  %shape = load ptr, ptr %shape_at
  %lying = load ptr, ptr %strides_at
  %is_shape = call i1 @alike(ptr %shape, ptr %sizes, i64 %dims)
  %is_lying = call i1 @alike(ptr %lying, ptr %strides, i64 %dims)
  %is_both = and i1 %is_shape, %is_lying
  %is_all = and i1 %is_both, %is_dtype
  br i1 %is_all, label %compare, label %no
compare:
  br label %each_i
apart:
{loop("j", "%others", "one", "yes", enter="apart", back="among")}
  %first = call ptr @PyTuple_GetItem(ptr %tuple, i64 %j)
  %first_word = ptrtoint ptr %first to i64
  %is_apart = call i1 @elsewhere(i64 %first_word, ptr %rows, i64 %count)
  br i1 %is_apart, label %between, label %no
between:
{loop("k", "%others", "pair", "among", enter="between", back="pair", first="%j_next")}
  %second = call ptr @PyTuple_GetItem(ptr %tuple, i64 %k)
  %is_one = icmp eq ptr %first, %second
  br i1 %is_one, label %no, label %each_k
among:
  br label %each_j
yes:
  %true = call ptr @PyBool_FromLong(i64 1)
  ret ptr %true
no:
  %false = call ptr @PyBool_FromLong(i64 0)
  ret ptr %false
""",
    linkage="",
)

GUARDS = _DECLARATIONS + _ELSEWHERE + _UNCHANGED
