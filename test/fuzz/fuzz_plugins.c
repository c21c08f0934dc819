/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the answers of resource plugins as the agent reads them, and the grants that the agent
 * sends to the daemon. The first byte says which answer the rest is. */
#include <string.h>

#include "core/nri-rpd/agent/plugins.h"
#include "core/nri-rp-agent/pluginmsg.h"
#include "core/nri-rpd/pipeline/wait/plugins.h"
#include "core/lib/util/cleanup.h"
#include "test/fuzz/check.h"

#define ARENA_BLOCK 4096u
#define ARENA_MAX (64u << 20)

/* Checks that the daemon can read all grants that the agent sends. */
static void check_grants(struct arena *a, const struct packed *packed)
{
	const Grants__Grants *again;
	struct err err = ERR_INIT;
	int r = grants_unpack(a, packed->data, packed->n, &again, &err);
	check(r == 0 || r == -E2BIG || r == -ENOMEM);
}

static void allocations(struct arena *a, const struct packed *answer,
			const Agent__PluginRequest *pod, const Agent__Wanted *w)
{
	struct grant_list *list = arena_zero(a, struct grant_list);
	struct packed packed;
	struct err err = ERR_INIT;
	if (!list || pluginmsg_grants(a, answer, pod, w, list, &err))
		return;
	check(list->n);
	if (!pluginmsg_pack_grants(a, list, &packed))
		check_grants(a, &packed);
}

static void pods(struct arena *a, const struct packed *answer)
{
	Agent__CheckPodsRequest m = AGENT__CHECK_PODS_REQUEST__INIT;
	struct err err = ERR_INIT;
	if (pluginmsg_pods(a, answer, "example.com/gpu", &m, &err))
		return;
	for (size_t i = 0; i < m.n_pods; i++) {
		const struct packed packed = {m.pods[i]->grants.data, m.pods[i]->grants.len};
		check_grants(a, &packed);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char uid[] = "u", ctr[] = "c", none[] = "", resource[] = "example.com/gpu";
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	Agent__PluginRequest pod = AGENT__PLUGIN_REQUEST__INIT;
	Agent__Wanted w = AGENT__WANTED__INIT;
	Agent__Hints hints;
	struct plugin_hints *list;
	struct err err = ERR_INIT;
	uint32_t n;
	if (!size || !a)
		return 0;
	const struct packed answer = {data + 1, size - 1};
	pod.uid = uid;
	w.resource = resource;
	w.container = data[0] & 1 ? ctr : none;
	switch (data[0] >> 1 & 3) {
	case 0:
		if (!pluginmsg_hints(a, &answer, &pod, &w, &hints, &err))
			check(hints.n_hints <= 512);
		break;
	case 1:
		allocations(a, &answer, &pod, &w);
		break;
	case 2:
		pods(a, &answer);
		break;
	default:
		(void)agent_decode_hints(a, answer.data, answer.n, &list, &n);
	}
	return 0;
}
