/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables that describe a container's placement. */
#include <string.h>

#include "modules/qos/qos.h"

#define VALUE_MAX 8192u

/* ---- values and placeholders ----------------------------------------------------------------- */

enum word { W_LEVEL, W_POOL, W_CPUS, W_MEMS, W_NODES, W_POD, W_NAMESPACE, W_CTR, W_UID, N_WORDS };
static const char *const words[N_WORDS] = {
	[W_LEVEL] = "qosLevel", [W_POOL] = "pool",	     [W_CPUS] = "cpus",
	[W_MEMS] = "mems",	[W_NODES] = "numaNodes",     [W_POD] = "podName",
	[W_UID] = "podUid",	[W_NAMESPACE] = "namespace", [W_CTR] = "containerName",
};

/* Returns the placeholder at `text`, which begins with "${"; N_WORDS: unknown. *ret_len is its
 * length in bytes. */
static enum word word_at(const char *text, size_t *ret_len)
{
	const char *end = strchr(text, '}');
	enum word w = 0;
	*ret_len = end ? (size_t)(end + 1 - text) : strlen(text);
	while (w < N_WORDS && (!end || strlen(words[w]) != *ret_len - 3 ||
			       strncmp(words[w], text + 2, *ret_len - 3) != 0))
		w++;
	return w;
}

const char *env_unknown(const char *value)
{
	size_t len;
	for (const char *p = strchr(value, '$'); p; p = strchr(p, '$')) {
		if (p[1] == '$')
			p += 2;
		else if (p[1] == '{' && word_at(p, &len) < N_WORDS)
			p += len;
		else
			return p;
	}
	return "";
}

static void env_append(char *buf, const char *text)
{
	size_t n = strlen(buf);
	(void)snprintf(buf + n, VALUE_MAX - n, "%s", text);
}

static void append_set(char *buf, struct rp_ids ids)
{
	char text[CTR_DATA_MAX + 1];
	env_append(buf, modhost_set_text(ids, text, sizeof text));
}

static const char *pool_name(const struct entry *e, char text[POOL_TEXT_MAX])
{
	switch (e->is.level) {
	case LEVEL_DEDICATED:
		return "dedicated";
	case LEVEL_RECLAIMED:
		return "reclaim";
	default:
		return pool_text_of(&e->is, text);
	}
}

static void append_word(struct rp_instance *inst, const struct rp_ctr_info *info,
			const struct entry *e, enum word w, char *buf)
{
	const struct modhost *h = &inst->h;
	struct rp_pod_info pod = {.size = sizeof pod, .uid = ""};
	struct rp_idset set, cpus;
	char pool[POOL_TEXT_MAX];
	if (w == W_UID)
		(void)h->cache->get_pod(h->ctx, info->pod, &pod);
	const char *const texts[N_WORDS] = {
		[W_LEVEL] = level_names[e->is.level],
		[W_POOL] = pool_name(e, pool),
		[W_POD] = info->pod_name,
		[W_NAMESPACE] = info->pod_namespace,
		[W_CTR] = info->name,
		[W_UID] = pod.uid,
	};
	if (texts[w]) {
		env_append(buf, texts[w]);
		return;
	}
	if (w == W_MEMS)
		stage_mems_of(inst, e, &set);
	else
		stage_cpus_of(inst, e, &set);
	if (w == W_NODES) {
		cpus = set;
		machine_nodes_of(inst->plan->machine, rp_ids_of(&cpus), &set);
	}
	append_set(buf, w == W_NODES && e->is.nodes ? (struct rp_ids){&e->is.nodes, 1, 0}
						    : rp_ids_of(&set));
}

static void env_expand(struct rp_instance *inst, const struct rp_ctr_info *info,
		       const struct entry *e, const char *value, char buf[VALUE_MAX])
{
	size_t len;
	buf[0] = '\0';
	for (const char *p = value; *p; p += len) {
		char one[2] = {*p, '\0'};
		len = 1;
		if (*p == '$' && p[1] == '{') {
			append_word(inst, info, e, word_at(p, &len), buf);
			continue;
		}
		len += *p == '$';
		env_append(buf, one);
	}
}

int32_t env_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		  const struct entry *e)
{
	const struct modhost *h = &inst->h;
	char value[VALUE_MAX];
	int32_t r = 0;
	for (uint32_t i = 0; !r && i < inst->plan->n_envs; i++) {
		const struct env *env = &inst->plan->envs[i];
		if (!(env->levels >> e->is.level & 1) ||
		    (!env->override && h->cache->env(h->ctx, info->ctr, env->name)))
			continue;
		env_expand(inst, info, e, env->value, value);
		r = h->cache->set_pair(h->ctx, txn, info->ctr, RP_F_ENV, env->name, value);
	}
	return r == -RP_ENOTSUP ? 0 : r; /* a running container keeps its environment */
}
