/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/pb.h"

#include <assert.h>
#include <string.h>

#define LIST_FIRST 8u /* initial capacity of a list */

/* Returns true if messages of both types have the same fields at the same places. */
static bool pb_alike(const ProtobufCMessageDescriptor *a, const ProtobufCMessageDescriptor *b)
{
	bool alike = a->sizeof_message == b->sizeof_message && a->n_fields == b->n_fields;
	for (unsigned i = 0; alike && i < a->n_fields; i++)
		alike = a->fields[i].type == b->fields[i].type &&
			a->fields[i].label == b->fields[i].label &&
			a->fields[i].offset == b->fields[i].offset;
	return alike;
}

void pb_copy_list(struct arena *a, const ProtobufCMessageDescriptor *type, const void *from,
		  size_t n, void *ret, size_t *ret_n)
{
	const ProtobufCMessage *const *list = from;
	ProtobufCMessage **out = arena_array(a, n + 1, sizeof *out);
	size_t i = 0;
	for (; out && i < n; i++) {
		assert(pb_alike(list[i]->descriptor, type));
		out[i] = arena_memdup(a, list[i], type->sizeof_message);
		if (!out[i])
			break;
		*out[i] = (ProtobufCMessage){.descriptor = type};
	}
	memcpy(ret, &out, sizeof out);
	*ret_n = i;
}

char *pb_build_text(struct arena *a, const char *text)
{
	return arena_strdup(a, text ? text : "");
}

bool pb_adopt(struct arena *a, void *ret, size_t n)
{
	size_t cap = LIST_FIRST;
	void **list;
	while (cap < n)
		cap *= 2;
	void **own = arena_array(a, cap, sizeof *own);
	if (!own)
		return false;
	memcpy(&list, ret, sizeof list);
	if (n)
		memcpy(own, list, n * sizeof *own);
	memcpy(ret, &own, sizeof own);
	return true;
}

void *pb_build_item(struct arena *a, void *item, void *ret, size_t *ret_n)
{
	const size_t n = *ret_n;
	void **list;
	memcpy(&list, ret, sizeof list);
	if (!n || (n >= LIST_FIRST && !(n & (n - 1)))) { /* capacities are powers of two */
		void **grown = arena_array(a, n ? 2 * n : LIST_FIRST, sizeof *grown);
		if (grown && n)
			memcpy(grown, list, n * sizeof *grown);
		list = grown;
	}
	if (!item || !list)
		return NULL;
	list[n] = item;
	memcpy(ret, &list, sizeof list);
	*ret_n = n + 1;
	return item;
}
