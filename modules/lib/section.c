/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a section, and its digest. */
#include <nri-rp/lib/section.h>

#include <strings.h>

int section_word(const char *const *words, const char *text)
{
	for (int i = 0; words[i]; i++)
		if (strcasecmp(words[i], text) == 0)
			return i;
	return -1;
}

/* ---- digest ---------------------------------------------------------------------------------- */

#define SEED UINT64_C(0xcbf29ce484222325)
#define PRIME UINT64_C(0x100000001b3)

static uint64_t digest_text(uint64_t digest, const char *text)
{
	do
		digest = (digest ^ (unsigned char)*text) * PRIME;
	while (*text++);
	return digest;
}

static uint64_t digest_number(uint64_t digest, uint64_t number)
{
	digest = (digest ^ number) * PRIME;
	return digest ^ digest >> 29;
}

/* Adds a node to the digest. The digest does not depend on the order of a map's members, but on the
 * order of a list's elements. */
static uint64_t digest_node(const struct modhost *h, rp_cfg node, uint64_t digest)
{
	uint32_t kind = node ? h->config->kind(h->ctx, node) : RP_NODE_NULL;
	uint32_t n = kind >= RP_NODE_LIST ? h->config->count(h->ctx, node) : 0;
	const char *text = h->config->text(h->ctx, node, "");
	uint64_t sum = 0;
	digest = digest_number(digest_number(digest, kind), n);
	if (kind == RP_NODE_SCALAR)
		digest = digest_text(digest, text);
	for (uint32_t i = 0; i < n; i++) {
		rp_cfg item = h->config->item(h->ctx, node, i);
		if (kind == RP_NODE_LIST)
			digest = digest_node(h, item, digest);
		else
			sum += digest_node(h, item,
					   digest_text(SEED, h->config->key(h->ctx, node, i)));
	}
	return digest_number(digest, sum);
}

uint64_t section_digest(const struct modhost *h, rp_cfg node)
{
	uint64_t digest = digest_node(h, node, SEED);
	return digest ? digest : 1;
}
