/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the configuration section into pools and lists. plan_read() is the entry point. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/section.h>
#include "modules/static-pools/static-pools.h"

static const struct rp_key keys[] = {
	SECTION_ANY("availableResources", "Accepted; no effect."),
	SECTION_ANY("reservedResources", "Accepted; no effect."),
	SECTION_MAP("pools", "Pools by name; CMK uses exclusive, shared, infra."),
	SECTION_MAP("pools.*", "A pool."),
	SECTION_BOOL("pools.*.exclusive", "false", "Assign each list to one container only."),
	SECTION_LIST("pools.*.cpuLists", "CPU lists for containers."),
	SECTION_MAP("pools.*.cpuLists[]", "A list of CPUs."),
	SECTION_KEY("pools.*.cpuLists[].cpuset", ANY,
		    "CPUs of the list, such as \"4-6,7\". Containers receive this text.",
		    .flags = RP_KEY_REQUIRED),
	SECTION_NUMBER("pools.*.cpuLists[].socket", 0, RP_CPUS_MAX, "0",
		       "Number by which containers request the list."),
	SECTION_TEXT(
		"confFilePath",
		"Not supported: a file with pools. nri-rpctl import converts it to this section."),
	SECTION_TEXT("confDirPath",
		     "Not supported: a directory of CMK. Write its pools into this section."),
	SECTION_BOOL("labelNode", "false",
		     "Label the node cmk.intel.com/cmk-node=true in the cluster."),
	SECTION_BOOL("taintNode", "false", "Taint the node cmk=true:NoSchedule in the cluster."),
};

const struct rp_schema pools_schema = SECTION_SCHEMA(keys, .flags = RP_SCHEMA_FOLD_CASE);

void plan_fini(struct rp_plan *p)
{
	free(p->pools);
	free(p->lists);
}

struct pool *plan_pool(const struct rp_plan *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_pools; i++)
		if (strcmp(p->pools[i].name, name) == 0)
			return &p->pools[i];
	return NULL;
}

char *plan_lists_text(const struct rp_plan *p, const struct pool *pool)
{
	char *text = malloc((size_t)pool->n * (LIST_TEXT_MAX + 1) + 1);
	size_t len = 0;
	if (!text)
		return NULL;
	text[0] = '\0';
	for (uint32_t i = 0; i < pool->n; i++)
		len += (size_t)sprintf(text + len, "%s%s", i ? "," : "",
				       p->lists[pool->first + i].text);
	return text;
}

static int32_t read_list(const struct modhost *h, rp_cfg at, struct list *ret)
{
	rp_cfg node = section_get(h, at, "cpuset");
	const char *text = h->config->text(h->ctx, node, "");
	struct rp_idset online, missing;
	ret->socket = section_int(h, at, "socket", 0);
	/* Containers get the text in their environment, so it contains no blanks. */
	if (!*text || strlen(text) > LIST_TEXT_MAX || text[strspn(text, "0123456789,-")] ||
	    rp_idset_parse(&ret->cpus, text, RP_CPUS_MAX))
		return modhost_refuse(h, node ? node : at, "\"%.64s\" does not look like a cpuset",
				      text);
	(void)snprintf(ret->text, sizeof ret->text, "%s", text);
	modhost_set(h, RP_CPUS_ONLINE, &online);
	rp_idset_andnot(&missing, rp_ids_of(&ret->cpus), rp_ids_of(&online));
	if (!rp_ids_empty(rp_ids_of(&missing)))
		modhost_log(h, RP_LOG_WARNING, 0, "cpuLists: not all CPUs of %s are online", text);
	return 0;
}

static int32_t read_pool(const struct modhost *h, struct rp_plan *p, const char *name, rp_cfg at)
{
	rp_cfg lists = section_get(h, at, "cpuLists");
	uint32_t n = h->config->count(h->ctx, lists);
	struct pool *pool = &p->pools[p->n_pools++];
	struct rp_idset all;
	rp_idset_clear(&all);
	if (!*name || strlen(name) > NAME_MAX_LEN || n > LISTS_MAX - p->n_lists)
		return modhost_refuse(
			h, at,
			"a pool's name must have 1 to %u bytes, and at most %u lists are supported",
			NAME_MAX_LEN, LISTS_MAX);
	struct list *grown = realloc(p->lists, (p->n_lists + n + 1u) * sizeof *grown);
	if (!grown)
		return modhost_no_memory(h);
	p->lists = grown;
	*pool = (struct pool){.first = p->n_lists, .n = n};
	(void)snprintf(pool->name, sizeof pool->name, "%s", name);
	pool->exclusive = section_bool(h, at, "exclusive", false);
	for (uint32_t i = 0; i < n; i++) {
		rp_cfg item = h->config->item(h->ctx, lists, i);
		struct list *list = &p->lists[p->n_lists++];
		*list = (struct list){.alone = true};
		int32_t r = read_list(h, item, list);
		if (r)
			return r;
		if (pool->exclusive && rp_ids_overlap(rp_ids_of(&all), rp_ids_of(&list->cpus)))
			return modhost_refuse(
				h, item, "a CPU of %s is in another list of this exclusive pool",
				list->text);
		rp_idset_or(&all, rp_ids_of(&all), rp_ids_of(&list->cpus));
	}
	return 0;
}

static void find_overlaps(struct rp_plan *p)
{
	for (uint32_t i = 0; i < p->n_lists; i++)
		for (uint32_t k = 0; k < i; k++)
			if (rp_ids_overlap(rp_ids_of(&p->lists[i].cpus),
					   rp_ids_of(&p->lists[k].cpus)))
				p->lists[i].alone = p->lists[k].alone = false;
}

static int32_t refuse_unsupported(const struct modhost *h, rp_cfg section)
{
	static const char *const files[] = {"confFilePath", "confDirPath"};
	for (unsigned i = 0; i < 2; i++) {
		rp_cfg file = section_get(h, section, files[i]);
		if (*h->config->text(h->ctx, file, ""))
			return modhost_refuse(h, file,
					      "%s is not supported: write the pools into this "
					      "section",
					      files[i]);
	}
	return 0;
}

static bool config_do_flag(const struct modhost *h, rp_cfg section, const char *key)
{
	bool on = section_bool(h, section, key, false);
	if (on && !h->node)
		modhost_log(h, RP_LOG_WARNING, 0, "%s has no effect: the host is too old", key);
	return on;
}

int32_t plan_read(const struct modhost *h, rp_cfg section, struct rp_plan *p)
{
	rp_cfg pools = section_get(h, section, "pools");
	uint32_t n = h->config->count(h->ctx, pools);
	p->pools = calloc(n + 1u, sizeof *p->pools);
	int32_t r = p->pools ? refuse_unsupported(h, section) : modhost_no_memory(h);
	if (!r && !n)
		r = modhost_refuse(h, section, "invalid config, no pools configured");
	for (uint32_t i = 0; !r && i < n; i++)
		r = read_pool(h, p, h->config->key(h->ctx, pools, i),
			      h->config->item(h->ctx, pools, i));
	if (r)
		return r;
	p->label = config_do_flag(h, section, "labelNode");
	p->taint = config_do_flag(h, section, "taintNode");
	find_overlaps(p);
	return 0;
}
