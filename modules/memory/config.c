/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the section. */
#include <stdlib.h>

#include <nri-rp/lib/section.h>
#include "modules/memory/memory.h"

#define RATE_DEFAULT (256 << 20)
#define RATE_MIN (1u << 20)

static int32_t read_class(const struct modhost *h, rp_cfg node, struct rp_plan *c)
{
	struct memory_class *k = &c->classes[c->n_classes];
	rp_cfg name = section_get(h, node, "name"), ratio = section_get(h, node, "swapLimitRatio");
	const char *text = h->config->text(h->ctx, name, "");
	if (!*text || strlen(text) >= sizeof k->name)
		return modhost_refuse(h, name ? name : node,
				      "the name of a class has 1 to %zu bytes", sizeof k->name - 1);
	for (uint32_t i = 0; i < c->n_classes; i++)
		if (strcmp(c->classes[i].name, text) == 0)
			return modhost_refuse(h, name, "class %s is defined twice", text);
	(void)snprintf(k->name, sizeof k->name, "%s", text);
	k->swap_ratio = h->config->number(h->ctx, ratio, 0);
	if (!(k->swap_ratio >= 0 && k->swap_ratio < 1))
		return modhost_refuse(h, ratio,
				      "expected a fraction of the limit, from 0 to less than 1");
	c->n_classes++;
	return 0;
}

static int32_t read_file(const struct modhost *h, rp_cfg node, struct rp_plan *c)
{
	const char *name = h->config->text(h->ctx, node, "");
	if (strncmp(name, "memory.", 7) != 0 || strchr(name, '/') ||
	    strlen(name) >= MEMORY_FILE_MAX)
		return modhost_refuse(h, node,
				      "expected a file of the memory controller (memory.high), "
				      "found \"%s\"",
				      name);
	(void)snprintf(c->files[c->n_files++], MEMORY_FILE_MAX, "%s", name);
	return 0;
}

void memory_config_fini(struct rp_plan *p)
{
	free(p->classes);
}

int32_t memory_config_read(const struct modhost *h, rp_cfg cfg, struct rp_plan *c)
{
	rp_cfg classes = section_get(h, cfg, "classes"),
	       files = section_get(h, cfg, "unifiedAnnotations");
	uint32_t n = h->config->count(h->ctx, classes), n_files = h->config->count(h->ctx, files);
	if (n > MEMORY_CLASSES_MAX || n_files > MEMORY_FILES_MAX - 2)
		return modhost_refuse(h, n > MEMORY_CLASSES_MAX ? classes : files,
				      "too many files");
	c->classes = calloc(n + 1, sizeof *c->classes);
	if (!c->classes)
		return modhost_no_memory(h);
	c->v1 = ctl_is_v1(h);
	c->qos_default = section_bool(h, cfg, "usePodQoSAsDefaultClass", false);
	c->migrate = section_bool(h, cfg, "pageMigration.enable", false);
	c->migrate_rate = (uint64_t)h->config->value(
		h->ctx, section_get(h, cfg, "pageMigration.rate"), RP_T_BYTES, RATE_DEFAULT);
	int32_t r = c->migrate_rate >= RATE_MIN
			    ? 0
			    : modhost_refuse(h, section_get(h, cfg, "pageMigration.rate"),
					     "expected at least 1Mi (bytes a second)");
	for (uint32_t i = 0; !r && i < n; i++)
		r = read_class(h, h->config->item(h->ctx, classes, i), c);
	for (uint32_t i = 0; !r && i < n_files; i++)
		r = read_file(h, h->config->item(h->ctx, files, i), c);
	return r;
}
