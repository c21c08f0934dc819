/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of a module's section, and macros for the rows of its schema. */
#ifndef NRI_RP_LIB_SECTION_H
#define NRI_RP_LIB_SECTION_H

#include <stdbool.h>

#include <nri-rp/lib/host.h>

/* Returns the node at a path below a node; NULL: absent. */
static inline rp_cfg section_get(const struct modhost *h, rp_cfg node, const char *path)
{
	return h->config->get(h->ctx, node, path);
}

/* Returns the boolean at a path, or the fallback. */
static inline bool section_bool(const struct modhost *h, rp_cfg node, const char *path,
				bool fallback)
{
	return h->config->value(h->ctx, section_get(h, node, path), RP_T_BOOL, fallback) == 1;
}

/* Returns the integer at a path, or the fallback. */
static inline int64_t section_int(const struct modhost *h, rp_cfg node, const char *path,
				  int64_t fallback)
{
	return h->config->value(h->ctx, section_get(h, node, path), RP_T_INT, fallback);
}

/* Returns the value of a type RP_T_… at a path, or the fallback. */
static inline int64_t section_value(const struct modhost *h, rp_cfg node, const char *path,
				    uint32_t type, int64_t fallback)
{
	return h->config->value(h->ctx, section_get(h, node, path), type, fallback);
}

/* Returns the text at a path, or the fallback. The text is valid as long as the section. */
static inline const char *section_text(const struct modhost *h, rp_cfg node, const char *path,
				       const char *fallback)
{
	return h->config->text(h->ctx, section_get(h, node, path), fallback);
}

/* Returns the position of a text in a list that ends with NULL, in any case of letters; -1:
 * none. */
int section_word(const char *const *words, const char *text);

/* Returns a digest of everything below a node (NULL: no section), which is never 0. Equal sections
 * have equal digests; comments, places and the order of keys are ignored. */
uint64_t section_digest(const struct modhost *h, rp_cfg node);

/* ---- rows of a schema ------------------------------------------------------------------------ */

/* Any row: its type without RP_T_, and further members of struct rp_key. */
#define SECTION_KEY(path_, type_, doc_, ...)                                                       \
	{                                                                                          \
		.path = path_, .type = RP_T_##type_, .doc = doc_, ##__VA_ARGS__                    \
	}
#define SECTION_BOOL(path_, fallback_, doc_)                                                       \
	{                                                                                          \
		.path = path_, .type = RP_T_BOOL, .fallback = fallback_, .doc = doc_               \
	}
#define SECTION_TEXT(path_, doc_)                                                                  \
	{                                                                                          \
		.path = path_, .type = RP_T_STRING, .doc = doc_                                    \
	}
#define SECTION_NAME(path_, doc_)                                                                  \
	{                                                                                          \
		.path = path_, .type = RP_T_STRING, .flags = RP_KEY_REQUIRED, .doc = doc_          \
	}
#define SECTION_MAP(path_, doc_)                                                                   \
	{                                                                                          \
		.path = path_, .type = RP_T_MAP, .doc = doc_                                       \
	}
#define SECTION_LIST(path_, doc_) SECTION_KEY(path_, LIST, doc_)
#define SECTION_ANY(path_, doc_)                                                                   \
	{                                                                                          \
		.path = path_, .type = RP_T_ANY, .doc = doc_                                       \
	}
#define SECTION_AMOUNT(path_, doc_)                                                                \
	{                                                                                          \
		.path = path_, .type = RP_T_AMOUNT, .doc = doc_                                    \
	}
#define SECTION_TEXTS(path_, doc_, each_)                                                          \
	{.path = path_, .type = RP_T_LIST, .doc = doc_}, SECTION_TEXT(path_ "[]", each_)
#define SECTION_MAPS(path_, doc_, each_)                                                           \
	{.path = path_, .type = RP_T_LIST, .doc = doc_}, SECTION_MAP(path_ "[]", each_)
#define SECTION_CHOICE(path_, choices_, fallback_, doc_)                                           \
	{                                                                                          \
		.path = path_, .type = RP_T_ENUM, .choices = choices_, .fallback = fallback_,      \
		.doc = doc_                                                                        \
	}
#define SECTION_NUMBER(path_, min_, max_, fallback_, doc_)                                         \
	{                                                                                          \
		.path = path_, .type = RP_T_INT, .min = min_, .max = max_, .fallback = fallback_,  \
		.doc = doc_                                                                        \
	}

/* The schema of an array of rows, and further members of struct rp_schema. */
#define SECTION_SCHEMA(keys_, ...)                                                                 \
	{                                                                                          \
		.size = sizeof(struct rp_schema), .keys = keys_,                                   \
		.n_keys = sizeof keys_ / sizeof keys_[0], .key_size = sizeof(struct rp_key),       \
		##__VA_ARGS__                                                                      \
	}

/* Key that selects the placement of the policy's original, where this project's default is a better
 * one. */
#define SECTION_PARITY                                                                             \
	SECTION_BOOL("parity", "false",                                                            \
		     "Choose CPUs in the order of the policy's original, which packs worse than "  \
		     "the default; for comparisons.")

#endif
