/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduling classes: reading, choice by annotation, and staging. */
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "modules/lib/private/schedclass.h"
#include <nri-rp/lib/section.h>

#define KEY "scheduling-class.resource-policy.nri.io"
#define NS_PER_US 1000

struct word {
	const char *name;
	int64_t value;
};

/* Linux's numbers. */
static const struct word policies[] = {{"other", 0}, {"fifo", 1}, {"rr", 2},	   {"batch", 3},
				       {"iso", 4},   {"idle", 5}, {"deadline", 6}, {NULL, 0}};
static const struct word flags[] = {{"reset-on-fork", 0x01},  {"reclaim", 0x02},
				    {"dl-overrun", 0x04},     {"keep-policy", 0x08},
				    {"keep-params", 0x10},    {"util-clamp-min", 0x20},
				    {"util-clamp-max", 0x40}, {NULL, 0}};
static const struct word io_classes[] = {{"rt", 1}, {"be", 2}, {"idle", 3}, {NULL, 0}};

static const struct word *find_word(const struct word *words, const char *text)
{
	while (words->name && strcasecmp(words->name, text) != 0)
		words++;
	return words->name ? words : NULL;
}

/* ---- reading ----------------------------------------------------------------------------- */

static void add_field(struct schedclass *c, uint32_t field, int64_t value)
{
	c->fields[c->n_fields++] = (struct schedclass_field){field, value};
}

static bool add_word(const struct modhost *h, rp_cfg node, const char *key,
		     const struct word *words, struct schedclass *c, uint32_t field)
{
	const char *text = section_text(h, node, key, "");
	const struct word *w = find_word(words, text);
	if (w)
		add_field(c, field, w->value);
	return w != NULL;
}

static void add_number(const struct modhost *h, rp_cfg node, const char *key, int64_t factor,
		       struct schedclass *c, uint32_t field)
{
	rp_cfg at = section_get(h, node, key);
	if (at)
		add_field(c, field, h->config->value(h->ctx, at, RP_T_INT, 0) * factor);
}

static int32_t add_flags(const struct modhost *h, rp_cfg list, struct schedclass *c)
{
	int64_t bits = 0;
	for (uint32_t i = 0; i < h->config->count(h->ctx, list); i++) {
		rp_cfg node = h->config->item(h->ctx, list, i);
		const char *text = h->config->text(h->ctx, node, "");
		const struct word *w = find_word(flags, text);
		if (!w)
			return modhost_refuse(h, node,
					      "scheduling class %s: unknown flag \"%.64s\"",
					      c->name, text);
		bits |= w->value;
	}
	if (bits)
		add_field(c, RP_F_SCHED_FLAGS, bits);
	return 0;
}

static int32_t read_one(const struct modhost *h, rp_cfg node, struct schedclass *c)
{
	c->name = section_text(h, node, "name", "");
	(void)add_word(h, node, "policy", policies, c, RP_F_SCHED_POLICY);
	add_number(h, node, "priority", 1, c, RP_F_SCHED_PRIORITY);
	add_number(h, node, "nice", 1, c, RP_F_NICE);
	add_number(h, node, "runtime", NS_PER_US, c, RP_F_SCHED_RUNTIME);
	add_number(h, node, "deadline", NS_PER_US, c, RP_F_SCHED_DEADLINE);
	add_number(h, node, "period", NS_PER_US, c, RP_F_SCHED_PERIOD);
	/* The runtime receives a priority together with its class, and runtimes refuse the class
	 * "none". */
	if (add_word(h, node, "ioClass", io_classes, c, RP_F_IO_CLASS))
		add_number(h, node, "ioPriority", 1, c, RP_F_IO_PRIORITY);
	return add_flags(h, section_get(h, node, "flags"), c);
}

int32_t schedclass_read(const struct modhost *h, struct blocks *memory, rp_cfg section,
			struct schedclasses *ret)
{
	rp_cfg list = section_get(h, section, "schedulingClasses");
	uint32_t n = h->config->count(h->ctx, list);
	*ret = (struct schedclasses){blocks_alloc(memory, n, sizeof *ret->list), 0};
	if (!ret->list)
		return modhost_no_memory(h);
	for (; ret->n < n; ret->n++) {
		rp_cfg node = h->config->item(h->ctx, list, ret->n);
		struct schedclass *c = &ret->list[ret->n];
		int32_t r = read_one(h, node, c);
		if (r)
			return r;
		if (schedclass_find(ret, c->name) != SCHEDCLASS_NONE)
			return modhost_refuse(h, node, "two scheduling classes are named \"%s\"",
					      c->name);
	}
	return 0;
}

/* ---- using ------------------------------------------------------------------------------- */

int32_t schedclass_find(const struct schedclasses *classes, const char *name)
{
	for (uint32_t i = 0; i < classes->n; i++)
		if (strcmp(classes->list[i].name, name) == 0)
			return (int32_t)i;
	return SCHEDCLASS_NONE;
}

int32_t schedclass_annotated(const struct modhost *h, const struct schedclasses *classes,
			     rp_ctr ctr, int32_t fallback)
{
	const char *name = h->cache->annotation(h->ctx, ctr, KEY, NULL);
	int32_t class = name ? schedclass_find(classes, name) : fallback;
	if (!name || class != SCHEDCLASS_NONE)
		return class;
	modhost_log(h, RP_LOG_WARNING, ctr,
		    "annotation " KEY ": unknown scheduling class \"%.64s\"", name);
	modhost_note(h, ctr, "unknown scheduling class \"%.64s\"", name);
	return SCHEDCLASS_NONE;
}

int32_t schedclass_stage(const struct modhost *h, rp_txn txn, rp_ctr ctr,
			 const struct schedclass *class)
{
	for (uint32_t i = 0; i < class->n_fields; i++) {
		const struct schedclass_field *f = &class->fields[i];
		int32_t r = h->cache->set_int(h->ctx, txn, ctr, f->field, f->value);
		if (r == -RP_ENOMEM)
			return r;
		if (r)
			modhost_log(h, RP_LOG_WARNING, ctr,
				    "scheduling class %s: a value of %lld is not accepted",
				    class->name, (long long)f->value);
	}
	modhost_note(h, ctr, "scheduling class %s", class->name);
	return 0;
}
