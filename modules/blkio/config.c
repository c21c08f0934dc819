/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the section. Its keys are those of the runtimes' class files, in any case of letters. */
#include <string.h>

#include "modules/blkio/blkio.h"
#include <nri-rp/lib/section.h>

static const char *const rate_keys[] = {"throttleReadBps", "throttleWriteBps", "throttleReadIOPS",
					"throttleWriteIOPS"};

/* Returns false for a pattern that cannot match anything: a bracket that is empty or not closed
 * within a part of the path, or a backslash at the end. */
static bool is_pattern(const char *pattern)
{
	for (const char *at = pattern; *at; at++) {
		if (*at == '\\' && !*++at)
			return false;
		if (*at != '[')
			continue;
		at += at[1] == '!' || at[1] == '^' ? 2 : 1;
		const char *first = at;
		while (*at && *at != '/' && (*at != ']' || at == first))
			at += *at == '\\' && at[1] ? 2 : 1;
		if (*at != ']')
			return false;
	}
	return true;
}

static int32_t read_devices(const struct modhost *h, struct blocks *memory, rp_cfg node,
			    struct blkio_entry *e)
{
	uint32_t n = h->config->count(h->ctx, node);
	e->devices = blocks_alloc(memory, n, sizeof *e->devices);
	if (!e->devices)
		return modhost_no_memory(h);
	for (; e->n_devices < n; e->n_devices++) {
		rp_cfg item = h->config->item(h->ctx, node, e->n_devices);
		const char *pattern = h->config->text(h->ctx, item, "");
		if (*pattern != '/')
			return modhost_refuse(h, item,
					      "expected the path of a device or a pattern of "
					      "paths (/dev/sd[a-z]), found \"%s\"",
					      pattern);
		if (!is_pattern(pattern))
			return modhost_refuse(h, item,
					      "the pattern \"%s\" matches no path: a bracket needs "
					      "its ] before the next /",
					      pattern);
		e->devices[e->n_devices] = blocks_alloc(memory, strlen(pattern) + 1, 1);
		if (!e->devices[e->n_devices])
			return modhost_no_memory(h);
		memcpy(e->devices[e->n_devices], pattern, strlen(pattern));
	}
	return 0;
}

static int32_t read_weight(const struct modhost *h, rp_cfg node, struct blkio_entry *e)
{
	if (!node)
		return 0;
	int64_t weight = h->config->value(h->ctx, node, RP_T_BYTES, 0);
	if (weight < BLKIO_WEIGHT_MIN || weight > BLKIO_WEIGHT_MAX)
		return modhost_refuse(h, node, "expected a weight from %u to %u", BLKIO_WEIGHT_MIN,
				      BLKIO_WEIGHT_MAX);
	e->weight = (uint32_t)weight;
	return 0;
}

static int32_t read_entry(const struct modhost *h, struct blocks *memory, rp_cfg node,
			  struct blkio_entry *e)
{
	int32_t r = read_devices(h, memory, section_get(h, node, "devices"), e);
	if (!r)
		r = read_weight(h, section_get(h, node, "weight"), e);
	for (unsigned i = 0; !r && i < BLKIO_N_RATES; i++) {
		rp_cfg rate = section_get(h, node, rate_keys[i]);
		int64_t v = h->config->value(h->ctx, rate, RP_T_BYTES, -1);
		e->rate[i] = rate && v >= 0 ? (uint64_t)v : BLKIO_NOT_SET;
		if (rate && !e->n_devices)
			r = modhost_refuse(
				h, rate,
				"an entry without devices may only have a weight: list devices");
	}
	return r;
}

static int32_t read_class(const struct modhost *h, struct blocks *memory, rp_cfg list, uint32_t i,
			  struct blkio_class *c)
{
	rp_cfg node = h->config->item(h->ctx, list, i);
	const char *name = h->config->key(h->ctx, list, i);
	uint32_t n = h->config->count(h->ctx, node);
	if (!*name || strlen(name) >= sizeof c->name)
		return modhost_refuse(h, node, "the name of a class has 1 to %zu bytes",
				      sizeof c->name - 1);
	(void)snprintf(c->name, sizeof c->name, "%s", name);
	c->entries = blocks_alloc(memory, n, sizeof *c->entries);
	if (!c->entries)
		return modhost_no_memory(h);
	int32_t r = 0;
	for (; !r && c->n < n; c->n++)
		r = read_entry(h, memory, h->config->item(h->ctx, node, c->n), &c->entries[c->n]);
	return r;
}

int32_t blkio_config_read(const struct modhost *h, rp_cfg cfg, struct rp_plan *ret)
{
	rp_cfg list = section_get(h, cfg, "classes");
	uint32_t n = h->config->count(h->ctx, list);
	if (n > BLKIO_CLASSES_MAX)
		return modhost_refuse(h, list, "more than %u classes", BLKIO_CLASSES_MAX);
	ret->classes = blocks_alloc(&ret->memory, n, sizeof *ret->classes);
	if (!ret->classes)
		return modhost_no_memory(h);
	ret->qos_default = section_bool(h, cfg, "usePodQoSAsDefaultClass", false);
	ret->forward = !list;
	int32_t r = 0;
	for (; !r && ret->n_classes < n; ret->n_classes++)
		r = read_class(h, &ret->memory, list, ret->n_classes,
			       &ret->classes[ret->n_classes]);
	return r;
}

void blkio_config_fini(struct rp_plan *p)
{
	blocks_fini(&p->memory);
}

const struct blkio_class *blkio_config_class(const struct rp_plan *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_classes; i++)
		if (strcmp(p->classes[i].name, name) == 0)
			return &p->classes[i];
	return NULL;
}
