/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the answers of the daemon and the kubelet where the agent serves pod resources. The first
 * two bytes are the length of the daemon's answer, the rest is the kubelet's. The result can be
 * packed, and is within the limits.
 */
#include <string.h>

#include <nri-rp/set.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/listmsg.h"
#include "core/lib/util/cleanup.h"
#include "test/fuzz/check.h"

#define ARENA_BLOCK 4096u
#define ARENA_MAX (64u << 20)

static void check_packs(struct arena *a, const ProtobufCMessage *m)
{
	size_t n = protobuf_c_message_get_packed_size(m);
	uint8_t *to = arena_alloc(a, n + 1);
	check(!to || protobuf_c_message_pack(m, to) == n);
}

static void pods(struct arena *a, const struct listmsg_bytes *daemon,
		 const struct listmsg_bytes *kubelet, const char *ns, const char *name)
{
	Podresources__ServedList list;
	struct err err = ERR_INIT;
	int r = listmsg_pods(a, daemon, kubelet, ns, name, &list, &err);
	check(r <= 0 && err.code == r);
	for (size_t i = 0; !r && i < list.n_pod_resources; i++)
		for (size_t k = 0; k < list.pod_resources[i]->n_containers; k++) {
			const Podresources__ServedContainer *c =
				list.pod_resources[i]->containers[k];
			check(c->n_cpu_ids <= RP_CPUS_MAX && c->n_memory <= 1);
			for (size_t j = 1; j < c->n_cpu_ids; j++)
				check(c->cpu_ids[j - 1] < c->cpu_ids[j]);
		}
	if (!r)
		check_packs(a, &list.base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	Podresources__ServedAllocatable all;
	struct err err = ERR_INIT;
	if (!a || size < 2)
		return 0;
	size_t n = data[0] | (size_t)data[1] << 8;
	n = n > size - 2 ? size - 2 : n;
	const struct listmsg_bytes daemon = {data + 2, n}, kubelet = {data + 2 + n, size - 2 - n};
	pods(a, &daemon, &kubelet, NULL, NULL);
	pods(a, &daemon, NULL, NULL, NULL);
	pods(a, &daemon, &kubelet, "default", "web");
	int r = listmsg_allocatable(a, &daemon, &kubelet, &all, &err);
	check(r <= 0 && err.code == r);
	if (!r)
		check_packs(a, &all.base);
	return 0;
}
