/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the agent's messages to the daemon: a pod, a list of pods, a configuration, a Node and
 * pods of the cluster. Decoded values are within the limits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/agent/ask.h"
#include "core/nri-rpd/agent/claims.h"
#include "core/nri-rpd/agent/config.h"
#include "core/nri-rpd/agent/node.h"
#include "core/nri-rpd/agent/pods.h"
#include "core/lib/wire/agent_protocol.h"
#include "core/lib/util/arena.h"

#define BLOCK 4096u
#define MEMORY_MAX (8u << 20)

static void check(int ok)
{
	if (!ok)
		abort();
}

static int is_name(const char *name)
{
	size_t len = strlen(name);
	return len && len < AGENT_NAME_MAX;
}

static void check_pod(const struct pod_devices_desc *pod)
{
	check(is_name(pod->ns) && is_name(pod->name));
	check(pod->n <= AGENT_CONTAINERS_MAX * AGENT_RESOURCES_MAX);
	for (uint32_t i = 0; i < pod->n; i++) {
		const struct device_desc *d = &pod->list[i];
		uint64_t sum = 0;
		check(is_name(d->ctr) && is_name(d->resource));
		check(d->n_nodes && d->n_nodes <= RP_NODES_MAX);
		for (uint32_t k = 0; k < d->n_nodes; k++)
			sum += d->nodes[k];
		check(sum <= (uint64_t)d->n_nodes * UINT32_MAX);
	}
}

static void check_node(const struct node_object *node)
{
	check(is_name(node->name));
	check(node->n_labels <= AGENT_NODE_ITEMS_MAX && node->n_taints <= AGENT_NODE_ITEMS_MAX);
	for (uint32_t i = 0; i < node->n_labels; i++)
		check(!i || strcmp(node->labels[i - 1].key, node->labels[i].key) < 0);
	for (uint32_t i = 0; i < node->n_annotations; i++)
		check(!i || strcmp(node->annotations[i - 1].key, node->annotations[i].key) < 0);
	for (uint32_t i = 0; i < node->n_capacity; i++)
		check(*node->capacity[i].name && node->capacity[i].amount >= 0);
}

static void check_fed(const struct fed_message *m)
{
	check(m->n_pods <= FEED_PODS_MAX && m->n_gone <= FEED_PODS_MAX);
	for (uint32_t i = 0; i < m->n_pods; i++) {
		const struct fed_pod *pod = &m->pods[i];
		struct needs sums = fed_needs(pod);
		check(is_name(pod->uid) && is_name(pod->ns) && is_name(pod->name));
		check(pod->n_ctrs <= FEED_CTRS_MAX);
		check(sums.cpu_request >= 0 && sums.mem_request >= 0 && sums.mem_limit >= 0);
		for (uint32_t k = 0; k < pod->n_ctrs; k++)
			check(fed_ctr(pod, pod->ctrs[k].name) == &pod->ctrs[k]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new(BLOCK, MEMORY_MAX);
	struct pod_devices_desc pod, *list;
	struct conf_source *sources;
	unsigned n_sources;
	uint32_t n;
	check(a != NULL);
	if (agent_decode_pod(a, data, size, &pod) == 0)
		check_pod(&pod);
	arena_reset(a);
	if (agent_decode_list(a, data, size, &list, &n) == 0) {
		check(n <= AGENT_PODS_MAX);
		for (uint32_t i = 0; i < n; i++)
			check_pod(&list[i]);
	}
	arena_reset(a);
	if (agent_decode_config(a, data, size, &sources, &n_sources) == 0) {
		check(n_sources <= AGENT_SECTIONS_MAX);
		for (unsigned i = 0; i < n_sources; i++)
			check(sources[i].pushed && sources[i].len <= AGENT_CONFIG_MAX);
	}
	arena_reset(a);
	const struct node_object *node;
	if (agent_decode_node(a, data, size, &node) == 0)
		check_node(node);
	arena_reset(a);
	struct fed_message fed;
	if (agent_decode_pods(a, data, size, &fed) == 0)
		check_fed(&fed);
	arena_reset(a);
	struct claim_desc claim;
	if (agent_decode_claim(a, data, size, &claim) == 0) {
		check(is_name(claim.ns) && is_name(claim.name));
		check(claim.n_parts && claim.n_parts <= CLAIM_PARTS_MAX);
		check(*claim.uid && strlen(claim.uid) <= CLAIM_UID_MAX && !strchr(claim.uid, '/'));
		for (uint32_t i = 0; i < claim.n_parts; i++)
			check(is_name(claim.parts[i].device) && claim.parts[i].cpus >= 0 &&
			      claim.parts[i].cpus <= AGENT_CLAIM_CPUS_MAX &&
			      claim.parts[i].memory >= 0);
		check(strlen(claim.users) <= CLAIM_USERS_MAX);
	}
	arena_free(a);
	return 0;
}
