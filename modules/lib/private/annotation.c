/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of YAML annotations, with errors that name annotation and member. */
#include "modules/lib/private/annotation.h"
#include <nri-rp/lib/section.h>

#include <string.h>

static const char *kind_text(uint32_t kind)
{
	switch (kind) {
	case RP_NODE_SCALAR:
		return "a text or number";
	case RP_NODE_LIST:
		return "a list";
	case RP_NODE_MAP:
		return "a map";
	default:
		return "nothing";
	}
}

static int32_t annotation_check(const struct modhost *h, const char *what, const char *of,
				rp_cfg node, uint32_t kind)
{
	uint32_t found = h->config->kind(h->ctx, node);
	return found == kind ? 0
			     : modhost_fail(h, -RP_EINVAL, "%s: %s: expected %s, found %s", what,
					    of, kind_text(kind), kind_text(found));
}

int32_t annotation_parse(const struct modhost *h, const char *what, const char *text, rp_cfg *ret)
{
	int32_t r;
	if (!RP_HAS(h->config, parse))
		return modhost_fail(h, -RP_ENOTSUP, "this host cannot read %s", what);
	*ret = h->config->parse(h->ctx, what, text, &r);
	return r;
}

int32_t annotation_member(const struct modhost *h, const char *what, rp_cfg map, const char *name,
			  uint32_t kind, rp_cfg *ret)
{
	*ret = section_get(h, map, name);
	if (*ret && h->config->kind(h->ctx, *ret) == RP_NODE_NULL)
		*ret = NULL;
	return *ret ? annotation_check(h, what, name, *ret, kind) : 0;
}

rp_cfg annotation_named(const struct modhost *h, rp_cfg map, const char *name)
{
	for (uint32_t i = 0; map && i < h->config->count(h->ctx, map); i++)
		if (strcmp(h->config->key(h->ctx, map, i), name) == 0)
			return h->config->item(h->ctx, map, i);
	return NULL;
}

int32_t annotation_texts(const struct modhost *h, const char *what, rp_cfg map, const char *name,
			 rp_cfg *ret)
{
	int32_t r = annotation_member(h, what, map, name, RP_NODE_LIST, ret);
	uint32_t n = r || !*ret ? 0 : h->config->count(h->ctx, *ret);
	for (uint32_t i = 0; !r && i < n; i++)
		r = annotation_check(h, what, name, h->config->item(h->ctx, *ret, i),
				     RP_NODE_SCALAR);
	return r;
}
