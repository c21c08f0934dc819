/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Defines a function that returns a property of an object:
 * DEFINE_GETTER_OF(txn_id, uint64_t, const struct txn *t, t->id). */
#define DEFINE_GETTER_OF(name, type, object, ...)                                                  \
	type name(object)                                                                          \
	{                                                                                          \
		return __VA_ARGS__;                                                                \
	}
