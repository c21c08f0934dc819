/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the section. Shares have a long form, which is that of the custom resources, and a short
 * one:
 *
 *   l3Allocation: {all: {unified: 50%}, 0-1: {unified: 60%, code: 0xf0, data: 0xff}}
 *   l3Allocation: {all: 50%}                l3Allocation: 50%
 *   mbAllocation: {all: [50%, 1500MBps]}    mbAllocation: [50%]
 */
#include <stdlib.h>

#include <nri-rp/lib/section.h>
#include "modules/rdt/rdt.h"

static const char *const alloc_keys[] = {"l2Allocation", "l3Allocation", "mbAllocation"};

/* ---- shares ---------------------------------------------------------------------------------- */

static int32_t parse_percent(const char *text, bool range_allowed, struct rdt_share *ret)
{
	uint64_t a, b;
	struct rdt_share s = {.form = RDT_PERCENT};
	if (ctl_number(text, 10, &a, &text) || a > 100)
		return -RP_EINVAL;
	b = a;
	if (*text == '-') {
		if (!range_allowed || ctl_number(text + 1, 10, &b, &text) || b > 100 || a > b)
			return -RP_EINVAL;
		s.range = true;
	}
	if (strcmp(text, "%") != 0)
		return -RP_EINVAL;
	s.low = s.range ? (uint32_t)a : 0;
	s.high = (uint32_t)b;
	*ret = s;
	return 0;
}

static int32_t parse_mask(const char *text, struct rdt_share *ret)
{
	struct rdt_share s = {.form = RDT_MASK};
	struct rp_idset bits;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		if (ctl_number(text, 16, &s.mask, NULL))
			return -RP_EINVAL;
	} else {
		if (rp_idset_parse(&bits, text, 64) || bits.nw != 1)
			return -RP_EINVAL;
		s.mask = bits.w[0];
	}
	/* A mask of one block of bits, shifted down, is a power of two minus one. */
	uint64_t block = s.mask ? s.mask >> __builtin_ctzll(s.mask) : 0;
	if (!block || (block & (block + 1)))
		return -RP_EINVAL;
	*ret = s;
	return 0;
}

int32_t rdt_share_parse(const char *text, bool range_allowed, struct rdt_share *ret)
{
	size_t len = strlen(text);
	if (len && text[len - 1] == '%')
		return parse_percent(text, range_allowed, ret);
	return parse_mask(text, ret);
}

static int32_t read_share(const struct modhost *h, rp_cfg node, bool in_class,
			  struct rdt_share *ret)
{
	const char *text = h->config->text(h->ctx, node, "");
	if (h->config->kind(h->ctx, node) == RP_NODE_SCALAR &&
	    rdt_share_parse(text, in_class, ret) == 0)
		return 0;
	return modhost_refuse(h, node,
			      "expected a share of a cache (50%%%s, 0xff0 or 4-11, in one block), "
			      "found \"%s\"",
			      in_class ? ", 20-60%" : "", text);
}

/* ---- entries --------------------------------------------------------------------------------- */

static int32_t read_parts(const struct modhost *h, rp_cfg node, bool in_class, struct rdt_entry *e)
{
	static const char *const names[] = {"unified", "code", "data"};
	if (h->config->kind(h->ctx, node) != RP_NODE_MAP)
		return read_share(h, node, in_class, &e->part[RDT_UNIFIED]);
	for (uint32_t i = 0; i < h->config->count(h->ctx, node); i++) {
		const char *key = h->config->key(h->ctx, node, i);
		rp_cfg value = h->config->item(h->ctx, node, i);
		unsigned part = 0;
		while (part < RDT_N_PARTS && strcmp(key, names[part]) != 0)
			part++;
		if (part == RDT_N_PARTS)
			return modhost_refuse(h, value,
					      "unknown key: expected unified, code or data");
		int32_t r = read_share(h, value, in_class, &e->part[part]);
		if (r)
			return r;
	}
	if (e->part[RDT_UNIFIED].form == RDT_NOTHING)
		return modhost_refuse(h, node,
				      "missing unified: it is used if the kernel does not "
				      "separate code and data");
	if ((e->part[RDT_CODE].form == RDT_NOTHING) != (e->part[RDT_DATA].form == RDT_NOTHING))
		return modhost_refuse(h, node,
				      "code and data belong together: one of them is missing");
	return 0;
}

static int32_t read_rate(const struct modhost *h, rp_cfg node, struct rdt_entry *e)
{
	const char *text = h->config->text(h->ctx, node, ""), *unit;
	uint64_t n;
	bool number = h->config->kind(h->ctx, node) == RP_NODE_SCALAR &&
		      ctl_number(text, 10, &n, &unit) == 0;
	if (number && strcmp(unit, "%") == 0 && n <= 100) {
		e->percent = (uint32_t)n;
		return 0;
	}
	if (number && strcmp(unit, "MBps") == 0 && n < UINT32_MAX) {
		e->mbps = (uint32_t)n;
		return 0;
	}
	return modhost_refuse(
		h, node, "expected a share of the bandwidth (50%%, 1500MBps), found \"%s\"", text);
}

static int32_t read_rates(const struct modhost *h, rp_cfg node, struct rdt_entry *e)
{
	if (h->config->kind(h->ctx, node) != RP_NODE_LIST)
		return read_rate(h, node, e);
	uint32_t n = h->config->count(h->ctx, node);
	if (!n)
		return modhost_refuse(h, node, "the list of bandwidths is empty");
	for (uint32_t i = 0; i < n; i++) {
		int32_t r = read_rate(h, h->config->item(h->ctx, node, i), e);
		if (r)
			return r;
	}
	return 0;
}

static int32_t read_value(const struct modhost *h, rp_cfg node, unsigned what, bool in_class,
			  struct rdt_entry *e)
{
	e->node = node;
	e->percent = e->mbps = UINT32_MAX;
	return what == RDT_MB ? read_rates(h, node, e) : read_parts(h, node, in_class, e);
}

static int32_t read_key(const struct modhost *h, const char *key, rp_cfg value, struct rdt_alloc *a,
			struct rdt_entry *e)
{
	struct rp_idset ids;
	e->all = strcmp(key, "all") == 0;
	if (e->all)
		return 0;
	if (rp_idset_parse(&ids, key, RDT_IDS_MAX) || !ids.nw)
		return modhost_refuse(h, value,
				      "\"%s\" is not a list of cache ids (all, 0-1,3; up to %u)",
				      key, RDT_IDS_MAX - 1);
	for (uint32_t w = 0; w < ids.nw; w++)
		e->ids[w] = ids.w[w];
	for (const struct rdt_entry *o = a->entries; o < e; o++)
		for (uint32_t w = 0; w < RDT_IDS_MAX / 64; w++)
			if (o->ids[w] & e->ids[w])
				return modhost_refuse(
					h, value, "a cache id of \"%s\" is already set above", key);
	return 0;
}

/* Returns true if the node is a map from cache ids, and not the value for all of them. */
static bool is_by_id(const struct modhost *h, rp_cfg node)
{
	if (h->config->kind(h->ctx, node) != RP_NODE_MAP)
		return false;
	return !section_get(h, node, "unified") && !section_get(h, node, "code") &&
	       !section_get(h, node, "data");
}

static int32_t read_alloc(const struct modhost *h, rp_cfg node, unsigned what, bool in_class,
			  struct rdt_alloc *a)
{
	bool by_id = is_by_id(h, node);
	uint32_t n = by_id ? h->config->count(h->ctx, node) : 1;
	a->node = node;
	if (!node || h->config->kind(h->ctx, node) == RP_NODE_NULL)
		return 0;
	a->given = true;
	a->entries = calloc(n ? n : 1, sizeof *a->entries);
	if (!a->entries)
		return modhost_no_memory(h);
	for (; a->n < n; a->n++) {
		struct rdt_entry *e = &a->entries[a->n];
		rp_cfg value = by_id ? h->config->item(h->ctx, node, a->n) : node;
		int32_t r =
			by_id ? read_key(h, h->config->key(h->ctx, node, a->n), value, a, e) : 0;
		e->all = e->all || !by_id;
		if (!r)
			r = read_value(h, value, what, in_class, e);
		if (r)
			return r;
	}
	return 0;
}

static int32_t read_shares(const struct modhost *h, rp_cfg node, bool in_class,
			   struct rdt_shares *ret)
{
	int32_t r = 0;
	for (unsigned i = 0; !r && i <= RDT_MB; i++)
		r = read_alloc(h, section_get(h, node, alloc_keys[i]), i, in_class, &ret->alloc[i]);
	return r;
}

/* ---- partitions and classes ------------------------------------------------------------------ */

bool rdt_is_root(const char *class)
{
	return !*class || strcmp(class, RDT_ROOT_CLASS) == 0;
}

static int32_t copy_name(const struct modhost *h, rp_cfg at, const char *name, char *ret)
{
	if (strlen(name) >= RDT_NAME_MAX)
		return modhost_refuse(h, at, "the name is longer than %u bytes", RDT_NAME_MAX - 1);
	bool bad = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '\n') ||
		   (strchr(name, '/') && !rdt_is_root(name));
	if (bad)
		return modhost_refuse(h, at, "\"%s\" cannot be the name of a group", name);
	(void)snprintf(ret, RDT_NAME_MAX, "%s", rdt_is_root(name) ? "" : name);
	return 0;
}

static int32_t read_claims(const struct modhost *h, rp_cfg node, struct rdt_class *k)
{
	rp_cfg at = section_get(h, node, "allowClaims");
	if (!section_bool(h, node, "allowClaims", false))
		return 0;
	if (!rdt_claims_good_name(k->name))
		return modhost_refuse(
			h, at,
			"class \"%s\" cannot be claimed: expected a name of at most 59 "
			"characters a-z, 0-9 and \"-\"",
			k->name);
	k->max_claims = section_int(h, node, "maxClaims", RDT_CLAIMS_MAX);
	return 0;
}

static int32_t read_class(const struct modhost *h, rp_cfg classes, uint32_t i, struct rdt_config *c)
{
	rp_cfg node = h->config->item(h->ctx, classes, i);
	if (c->n_classes == RDT_CLASSES_MAX)
		return modhost_refuse(h, node, "more than %u classes", RDT_CLASSES_MAX);
	struct rdt_class *k = &c->classes[c->n_classes];
	int32_t r = copy_name(h, node, h->config->key(h->ctx, classes, i), k->name);
	if (r)
		return r;
	for (uint32_t o = 0; o < c->n_classes; o++)
		if (strcmp(c->classes[o].name, k->name) == 0)
			return modhost_refuse(h, node,
					      "class \"%s\" already exists in partition %s",
					      k->name, c->partitions[c->classes[o].partition].name);
	k->node = node;
	k->partition = c->n_partitions - 1;
	c->n_classes++;
	r = read_claims(h, node, k);
	if (!r)
		r = read_shares(h, node, true, &k->shares);
	const struct rdt_shares *p = &c->partitions[k->partition].shares;
	for (unsigned a = 0; !r && a <= RDT_MB; a++)
		if (k->shares.alloc[a].given && !p->alloc[a].given)
			r = modhost_refuse(h, k->shares.alloc[a].node,
					   "the class has %s, but its partition %s has none",
					   alloc_keys[a], c->partitions[k->partition].name);
	return r;
}

static int32_t read_partition(const struct modhost *h, rp_cfg list, uint32_t i,
			      struct rdt_config *c)
{
	struct rdt_partition *p = &c->partitions[c->n_partitions];
	p->node = h->config->item(h->ctx, list, i);
	int32_t r = copy_name(h, p->node, h->config->key(h->ctx, list, i), p->name);
	if (r)
		return r;
	c->n_partitions++;
	r = read_shares(h, p->node, false, &p->shares);
	rp_cfg classes = section_get(h, p->node, "classes");
	for (uint32_t k = 0; !r && k < h->config->count(h->ctx, classes); k++)
		r = read_class(h, classes, k, c);
	return r;
}

static void read_switches(const struct modhost *h, rp_cfg cfg, struct rdt_config *c)
{
	static const char *const optional[] = {"options.l2.optional", "options.l3.optional",
					       "options.mb.optional"};
	const char *monitoring = section_text(h, cfg, "monitoring", "classes");
	c->force = section_bool(h, cfg, "force", false);
	c->qos_default = section_bool(h, cfg, "usePodQoSAsDefaultClass", false);
	for (unsigned i = 0; i <= RDT_MB; i++)
		c->optional[i] = section_bool(h, cfg, optional[i], false);
	c->monitoring = strcmp(monitoring, "off") == 0		? RDT_MONITOR_OFF
			: strcmp(monitoring, "containers") == 0 ? RDT_MONITOR_CONTAINERS
			: strcmp(monitoring, "pods") == 0	? RDT_MONITOR_PODS
								: RDT_MONITOR_CLASSES;
	c->discovery = !section_get(h, cfg, "options") && !section_get(h, cfg, "partitions");
}

int32_t rdt_config_read(const struct modhost *h, rp_cfg cfg, struct rdt_config *ret)
{
	*ret = (struct rdt_config){0};
	read_switches(h, cfg, ret);
	rp_cfg list = section_get(h, cfg, "partitions");
	uint32_t n = h->config->count(h->ctx, list);
	ret->partitions = calloc(n + 1, sizeof *ret->partitions);
	ret->classes = calloc(RDT_CLASSES_MAX, sizeof *ret->classes);
	if (!ret->partitions || !ret->classes)
		return modhost_no_memory(h);
	int32_t r = 0;
	for (uint32_t i = 0; !r && i < n; i++)
		r = read_partition(h, list, i, ret);
	return r;
}

static void shares_fini(struct rdt_shares *s)
{
	for (unsigned i = 0; i <= RDT_MB; i++)
		free(s->alloc[i].entries);
}

void rdt_config_fini(struct rdt_config *c)
{
	for (uint32_t i = 0; i < c->n_partitions; i++)
		shares_fini(&c->partitions[i].shares);
	for (uint32_t i = 0; i < c->n_classes; i++) {
		shares_fini(&c->classes[i].shares);
		free(c->classes[i].schemata);
	}
	free(c->partitions);
	free(c->classes);
	*c = (struct rdt_config){0};
}

const struct rdt_class *rdt_config_class(const struct rdt_config *c, const char *name)
{
	for (uint32_t i = 0; i < c->n_classes; i++)
		if (strcmp(c->classes[i].name, rdt_is_root(name) ? "" : name) == 0)
			return &c->classes[i];
	return NULL;
}
