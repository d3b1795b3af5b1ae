"""The native code of calls by PyTorch's dispatcher, as LLVM's text."""

from thunder_native.machine_text import loop, reads, step

STACK = 32
"""Most arguments and results of one call: the size of ``%stack`` below."""

# after these words, two for each argument (kind, value), then the results' slots. Kinds: 0 the word itself, 1 a tensor,
# 2 an optional tensor, 3 an optional word, 4 a list of words (address of their number and them), 5 an optional one, 6 a
# list of tensors (the same), 7 a text (address of 2, its length, its address), 8 an integer of the program (its slot),
# 9 an optional one, 10 a list of words and integers (address of their number, and of each whether it is the program's,
# and it or its slot), 11 an optional one. %listed: whether the one result is a list
DISPATCHED = step(
    "dispatched",
    "address name, address overload, word version, word arguments, word results, word listed",
    f"""
  %stack = alloca i64, i64 {STACK}
  %handle_at = alloca ptr
  %list_at = alloca ptr
{loop("i", "%arguments", "encode", "call", back="store", carried={"i64 kind_index": ("6", "%kind_next")})}
  %kind_next = add i64 %kind_index, 2
  %value_index = add i64 %kind_index, 1
  %kind = call i64 @word(ptr %words, i64 %kind_index)
  %value = call i64 @word(ptr %words, i64 %value_index)
  switch i64 %kind, label %store_word [ i64 1, label %tensor
                                        i64 2, label %tensor
                                        i64 3, label %box
                                        i64 4, label %listing
                                        i64 5, label %listing
                                        i64 6, label %listing
                                        i64 7, label %text
                                        i64 8, label %number
                                        i64 9, label %number
                                        i64 10, label %listing
                                        i64 11, label %listing ]
store_word:
  br label %store

tensor:
  %from_at = getelementptr ptr, ptr %slots, i64 %value
  %from = load ptr, ptr %from_at
  %e_handle = call i32 @aoti_torch_new_tensor_handle(ptr %from, ptr %handle_at)
  %handle_word = load i64, ptr %handle_at
  %is_optional = icmp eq i64 %kind, 2
  br i1 %is_optional, label %box, label %store

number:
  %number_at = getelementptr i64, ptr %slots, i64 %value
  %number_word = load i64, ptr %number_at
  %is_optional_number = icmp eq i64 %kind, 9
  br i1 %is_optional_number, label %box, label %store

text:
  %text_words = inttoptr i64 %value to ptr
{reads("word length, address letters", "%text_words", first=1)}
  %e_text = call i32 @torch_new_string_handle(ptr %letters, i64 %length, ptr %handle_at)
  %text_word = load i64, ptr %handle_at
  br label %store

listing:
  %numbers = inttoptr i64 %value to ptr
  %count = call i64 @word(ptr %numbers, i64 0)
  %e_list = call i32 @torch_new_list_reserve_size(i64 %count, ptr %list_at)
  %list = load ptr, ptr %list_at
{loop("k", "%count", "item_word", "item_end", enter="listing", back="push")}
  %is_mixed = icmp uge i64 %kind, 10
  br i1 %is_mixed, label %item_mixed, label %item_plain
item_mixed:
  %item_twice = mul i64 %k, 2
  %flag_index = add i64 %item_twice, 1
  %literal_index = add i64 %item_twice, 2
  %flag = call i64 @word(ptr %numbers, i64 %flag_index)
  %literal = call i64 @word(ptr %numbers, i64 %literal_index)
  %is_literal = icmp eq i64 %flag, 0
  br i1 %is_literal, label %push, label %item_number
item_number:
  %item_number_at = getelementptr i64, ptr %slots, i64 %literal
  %item_number_word = load i64, ptr %item_number_at
  br label %push
item_plain:
  %one = call i64 @word(ptr %numbers, i64 %k_next)
  %of_tensors = icmp eq i64 %kind, 6
  br i1 %of_tensors, label %item_tensor, label %push
item_tensor:
  %item_at = getelementptr ptr, ptr %slots, i64 %one
  %item_from = load ptr, ptr %item_at
  %e_item = call i32 @aoti_torch_new_tensor_handle(ptr %item_from, ptr %handle_at)
  %item_handle = load i64, ptr %handle_at
  br label %push
push:
  %item_value = phi i64 [ %one, %item_plain ], [ %item_handle, %item_tensor ], [ %literal, %item_mixed ],
                      [ %item_number_word, %item_number ]
  %e_push = call i32 @torch_list_push_back(ptr %list, i64 %item_value)
  br label %each_k
item_end:
  %list_word = ptrtoint ptr %list to i64
  %is_optional_words = icmp eq i64 %kind, 5
  %is_optional_mixed = icmp eq i64 %kind, 11
  %is_optional_list = or i1 %is_optional_words, %is_optional_mixed
  br i1 %is_optional_list, label %box, label %store

box:
  %boxed = phi i64 [ %value, %encode ], [ %handle_word, %tensor ], [ %list_word, %item_end ],
                   [ %number_word, %number ]
  %the_box = call ptr @box()
  store i64 %boxed, ptr %the_box
  %box_word = ptrtoint ptr %the_box to i64
  br label %store

store:
  %encoded = phi i64 [ %value, %store_word ], [ %handle_word, %tensor ], [ %list_word, %item_end ], [ %box_word, %box ],
                     [ %text_word, %text ], [ %number_word, %number ]
  %to = getelementptr i64, ptr %stack, i64 %i
  store i64 %encoded, ptr %to
  br label %each_i

call:
  %error = call i32 @torch_call_dispatcher(ptr %name, ptr %overload, ptr %stack, i64 %version)
  %worked = icmp eq i32 %error, 0
  br i1 %worked, label %unpack, label %failed
failed:
  ret i32 1

unpack:
  %is_list = icmp ne i64 %listed, 0
  %first_word = load i64, ptr %stack
  %first = inttoptr i64 %first_word to ptr
{loop("r", "%results", "get", "free", enter="unpack", back="get_item get_result")}
  %slot_index = add i64 %kind_index, %r
  %into = call ptr @slot(ptr %slots, ptr %words, i64 %slot_index)
  br i1 %is_list, label %get_item, label %get_result
get_item:
  %e_get = call i32 @torch_list_get_item(ptr %first, i64 %r, ptr %into)
  br label %each_r
get_result:
  %result_at = getelementptr i64, ptr %stack, i64 %r
  %result_word = load i64, ptr %result_at
  store i64 %result_word, ptr %into
  br label %each_r
free:
  br i1 %is_list, label %free_list, label %end
free_list:
  %e_free = call i32 @torch_delete_list(ptr %first)
  br label %end
end:
  ret i32 0
""",
)
