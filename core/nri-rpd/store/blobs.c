/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs and notes. A removed one remains in the list until the log has recorded the removal. */
#include "core/nri-rpd/store/internal.h"

#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/store/blobs.h"

static void free_kept(struct saved_blob *k)
{
	free(k->name);
	free(k->version);
	free(k->data);
}

static struct saved_blob *find_kept(const struct store *s, enum record_kind kind, const char *name)
{
	for (uint32_t i = 0; i < s->n_kept; i++)
		if (s->kept[i].kind == kind && str_eq(s->kept[i].name, name))
			return &s->kept[i];
	return NULL;
}

static bool blobs_same(const struct saved_blob *k, const char *version, const void *data,
		       size_t len)
{
	return k && (len ? k->data && k->len == len && str_eq(k->version, version) &&
				     !memcmp(k->data, data, len)
			 : !k->data);
}

static struct saved_blob *new_kept(struct store *s, enum record_kind kind, const char *name)
{
	struct saved_blob *grown = realloc(s->kept, (s->n_kept + 1) * sizeof *grown);
	char *copy = strdup(name);
	if (grown)
		s->kept = grown;
	if (!grown || !copy) {
		free(copy);
		return NULL;
	}
	s->kept[s->n_kept] = (struct saved_blob){.kind = kind, .name = copy, .stored = true};
	return &s->kept[s->n_kept++];
}

int store_keep(struct store *s, enum record_kind kind, const char *name, const char *version,
	       const void *data, size_t len)
{
	size_t name_len = strlen(name);
	struct saved_blob *k = find_kept(s, kind, name);
	if (!name_len || name_len > STORE_NAME_MAX || strlen(version) > STORE_NAME_MAX ||
	    len > STORE_BLOB_MAX || (!k && len && s->n_kept == STORE_BLOBS_MAX))
		return -E2BIG;
	if (blobs_same(k, version, data, len) || (!k && !len))
		return 0;
	_free_ char *new_version = strdup(version);
	_free_ char *new_data = len ? malloc(len + 1) : NULL;
	if (!new_version || (len && !new_data))
		return -ENOMEM;
	if (!k)
		k = new_kept(s, kind, name);
	if (!k)
		return -ENOMEM;
	if (len) {
		memcpy(new_data, data, len);
		new_data[len] = '\0';
	}
	free(k->data);
	free(k->version);
	k->data = TAKE(new_data);
	k->version = TAKE(new_version);
	k->len = len;
	k->stored = false;
	return 0;
}

int store_put_blob(struct store *s, const char *module, const char *version, const void *data,
		   size_t len)
{
	return s ? store_keep(s, RECORD_BLOB, module, version, data, data ? len : 0) : 0;
}

int store_put_note(struct store *s, const char *name, const void *data, size_t len)
{
	return s ? store_keep(s, RECORD_NOTE, name, "", data, data ? len : 0) : 0;
}

const void *store_blob(const struct store *s, const char *module, const char **ret_version,
		       size_t *ret_len)
{
	const struct saved_blob *k = s ? find_kept(s, RECORD_BLOB, module) : NULL;
	if (!k || !k->data)
		return NULL;
	*ret_version = k->version;
	*ret_len = k->len;
	return k->data;
}

const void *store_note(const struct store *s, const char *name, size_t *ret_len)
{
	const struct saved_blob *k = s ? find_kept(s, RECORD_NOTE, name) : NULL;
	if (!k || !k->data)
		return NULL;
	*ret_len = k->len;
	return k->data;
}

bool store_kept_pending(const struct store *s)
{
	for (uint32_t i = 0; i < s->n_kept; i++)
		if (!s->kept[i].stored)
			return true;
	return false;
}

void store_kept_settled(struct store *s)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n_kept; i++) {
		if (!s->kept[i].data) {
			free_kept(&s->kept[i]);
			continue;
		}
		s->kept[n] = s->kept[i];
		s->kept[n++].stored = true;
	}
	s->n_kept = n;
}

void store_kept_free(struct store *s)
{
	for (uint32_t i = 0; i < s->n_kept; i++)
		free_kept(&s->kept[i]);
	free(s->kept);
}
