/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/lib/section.h"

#include <strings.h>

int section_word(const char *const *words, const char *text)
{
	for (int i = 0; words[i]; i++)
		if (strcasecmp(words[i], text) == 0)
			return i;
	return -1;
}

/* ---- digest ---------------------------------------------------------------------------------- */

static uint64_t digest_text(uint64_t digest, const char *text)
{
	do
		digest = (digest ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	while (*text++);
	return digest;
}

static uint64_t digest_node(const struct modhost *h, rp_cfg node, uint64_t digest)
{
	static const char *const kinds[] = {[RP_NODE_NULL] = "n",
					    [RP_NODE_SCALAR] = "s",
					    [RP_NODE_LIST] = "l",
					    [RP_NODE_MAP] = "m"};
	uint32_t kind = node ? h->config->kind(h->ctx, node) : RP_NODE_NULL;
	uint32_t n = kind >= RP_NODE_LIST ? h->config->count(h->ctx, node) : 0;
	digest = digest_text(digest, kinds[kind <= RP_NODE_MAP ? kind : RP_NODE_NULL]);
	if (kind == RP_NODE_SCALAR)
		digest = digest_text(digest, h->config->text(h->ctx, node, ""));
	for (uint32_t i = 0; i < n; i++) {
		if (kind == RP_NODE_MAP)
			digest = digest_text(digest, h->config->key(h->ctx, node, i));
		digest = digest_node(h, h->config->item(h->ctx, node, i), digest);
	}
	return digest_text(digest, "e");
}

uint64_t section_digest(const struct modhost *h, rp_cfg node)
{
	uint64_t digest = digest_node(h, node, UINT64_C(0xcbf29ce484222325));
	return digest ? digest : 1;
}
