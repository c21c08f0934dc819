/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the values of a container from its annotations, its class and its memory limit. */
#include <inttypes.h>
#include <stdarg.h>

#include "modules/lib/private/number.h"
#include "modules/memory/memory.h"

#define DOMAIN "memory-qos.nri.io"

/* Files that people may expect to set by annotation: an error explains those that are not
 * allowed. */
static const char *const known_files[] = {"memory.min",	      "memory.low",	  "memory.high",
					  "memory.max",	      "memory.swap.high", "memory.swap.max",
					  "memory.zswap.max", "memory.oom.group"};

/* Returns the text of a pod's annotation for this container ("KEY.DOMAIN/NAME" or
 * "KEY.DOMAIN/container.NAME") or else for all of its containers. */
static const char *qos_annotation(const struct modhost *h, const struct rp_ctr_info *info,
				  const char *what)
{
	char key[1024];
	const char *text = NULL;
	if (snprintf(key, sizeof key, "%s." DOMAIN "/%s", what, info->name) < (int)sizeof key)
		text = h->cache->pod_annotation(h->ctx, info->pod, key);
	if (text || snprintf(key, sizeof key, "%s." DOMAIN, what) >= (int)sizeof key)
		return text;
	return h->cache->annotation(h->ctx, info->ctr, key, NULL);
}

__attribute__((format(printf, 2, 3))) static int32_t qos_refuse(struct memory_values *v,
								const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(v->why, sizeof v->why, fmt, ap);
	va_end(ap);
	return -RP_EINVAL;
}

static bool qos_has(const struct memory_values *v, const char *file)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (strcmp(v->list[i].file, file) == 0)
			return true;
	return false;
}

void memory_values_add(struct memory_values *v, const char *file, const char *text)
{
	if (qos_has(v, file))
		return;
	struct memory_value *to = &v->list[v->n++];
	(void)ctl_format(to->file, sizeof to->file, "%s", file);
	(void)ctl_format(to->text, sizeof to->text, "%s", text);
}

static bool is_allowed(const struct rp_plan *c, const char *file)
{
	for (uint32_t i = 0; i < c->n_files; i++)
		if (strcmp(c->files[i], file) == 0)
			return true;
	return false;
}

static int32_t add_annotated(const struct modhost *h, const struct rp_plan *c,
			     const struct rp_ctr_info *info, struct memory_values *v)
{
	for (unsigned i = 0; i < sizeof known_files / sizeof *known_files; i++)
		if (!is_allowed(c, known_files[i]) && qos_annotation(h, info, known_files[i]))
			return qos_refuse(v,
					  "its pod has an annotation for %s, which is not among "
					  "memory.unifiedAnnotations",
					  known_files[i]);
	for (uint32_t i = 0; i < c->n_files; i++) {
		const char *text = qos_annotation(h, info, c->files[i]);
		if (!text)
			continue;
		if (!*text || strlen(text) >= MEMORY_VALUE_MAX || strpbrk(text, "\n\r"))
			return qos_refuse(v, "the annotation for %s has an invalid value",
					  c->files[i]);
		memory_values_add(v, c->files[i], text);
	}
	return 0;
}

static const struct memory_class *find_class(const struct rp_plan *c, const char *name)
{
	for (uint32_t i = 0; i < c->n_classes; i++)
		if (strcmp(c->classes[i].name, name) == 0)
			return &c->classes[i];
	return NULL;
}

static int64_t limit_of(const struct modhost *h, const struct rp_ctr_info *info)
{
	int64_t limit;
	if (h->cache->get_int(h->ctx, info->ctr, RP_F_MEMORY_LIMIT, &limit) == 0 && limit > 0)
		return limit;
	return info->mem_limit;
}

static int32_t add_class(const struct modhost *h, const struct rp_plan *c,
			 const struct rp_ctr_info *info, struct memory_values *v)
{
	const char *name = qos_annotation(h, info, "class");
	bool asked = name != NULL;
	char text[MEMORY_VALUE_MAX];
	if (!name && c->qos_default)
		name = ctl_qos_name(info->qos);
	const struct memory_class *k = name && *name ? find_class(c, name) : NULL;
	if (asked && *name && !k)
		return qos_refuse(v, "unknown memory class \"%s\"", name);
	if (!k)
		return 0;
	memcpy(v->class, k->name, sizeof v->class);
	int64_t limit = limit_of(h, info);
	if (!(k->swap_ratio > 0))
		return 0;
	if (limit <= 0 && !asked)
		return 0;
	if (limit <= 0)
		return qos_refuse(v,
				  "memory class %s is a fraction of the memory limit, but the "
				  "container has no limit",
				  k->name);
	(void)snprintf(text, sizeof text, "%" PRId64, number_part(limit, 1 - k->swap_ratio));
	memory_values_add(v, c->v1 ? "memory.soft_limit_in_bytes" : "memory.high", text);
	memory_values_add(v, c->v1 ? "memory.memsw.limit_in_bytes" : "memory.swap.max",
			  c->v1 ? "-1" : "max");
	return 0;
}

int32_t memory_values_of(const struct modhost *h, const struct rp_plan *c,
			 const struct rp_ctr_info *info, struct memory_values *ret)
{
	*ret = (struct memory_values){0};
	int32_t r = add_annotated(h, c, info, ret);
	return r ? r : add_class(h, c, info, ret);
}

void memory_toptier_of(const struct modhost *h, rp_ctr ctr, struct memory_values *ret)
{
	char text[MEMORY_VALUE_MAX];
	int64_t limit;
	if (h->cache->get_int(h->ctx, ctr, RP_F_TOPTIER_LIMIT, &limit))
		return;
	(void)snprintf(text, sizeof text, "%" PRId64, limit);
	ret->toptier = true;
	for (uint32_t i = 0; i < ret->n; i++)
		if (strcmp(ret->list[i].file, MEMORY_TOPTIER_FILE) == 0)
			/* drop the value of an annotation, which is the last one of the list */
			ret->n = i;
	memory_values_add(ret, MEMORY_TOPTIER_FILE, text);
}
