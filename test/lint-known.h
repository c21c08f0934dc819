/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares a fact that checkers of one file at a time cannot know: a function that makes an error
 * returns the code passed to it, which is negative. Only test/lint includes this file, in front of
 * every source.
 */
static inline int known_negative(int code)
{
	if (code >= 0)
		__builtin_unreachable();
	return code;
}

#define err_set(e, code, ...) ((void)err_set(e, code, __VA_ARGS__), known_negative(code))
#define err_errno(e, code, ...) ((void)err_errno(e, code, __VA_ARGS__), known_negative(code))
#define modhost_fail(h, code, ...) ((void)modhost_fail(h, code, __VA_ARGS__), known_negative(code))
#define modhost_fail_at(h, node, code, ...)                                                        \
	((void)modhost_fail_at(h, node, code, __VA_ARGS__), known_negative(code))
#define modhost_no_memory(h) ((void)modhost_no_memory(h), known_negative(-RP_ENOMEM))
