/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the kubelet's answers. The first byte says how the input is cut; the rest is a stream of
 * HTTP/2 for a pending call, and, by itself, an answer. With any cut, a call ends once, with the
 * same outcome, and a decoded pod is within the limits.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/lib/grpc/call.h"
#include "core/lib/kube/objects.h"
#include "core/nri-rp-agent/devices.h"
#include "core/nri-rp-agent/podwatch.h"
#include "proto/podresources.pb-c.h"

#define MESSAGE_MAX 65536u
#define NODES_MAX 1024u

struct outcome {
	unsigned n;
	int error;
	size_t len;
};

static void check(int ok)
{
	if (!ok)
		abort();
}

static int check_pod(const Agent__PodDevices *pod, void *arg)
{
	check(*pod->name && strlen(pod->name) < AGENT_NAME_MAX && *pod->namespace_);
	check(pod->n_containers <= AGENT_CONTAINERS_MAX);
	for (size_t i = 0; i < pod->n_containers; i++) {
		const Agent__ContainerDevices *c = pod->containers[i];
		check(*c->name && c->n_devices + c->n_claims > 0);
		check(c->n_devices <= AGENT_RESOURCES_MAX);
		check(c->n_claims <= AGENT_CLAIM_DEVICES_MAX);
		for (size_t k = 0; k < c->n_claims; k++)
			check(*c->claims[k]->driver && *c->claims[k]->device &&
			      *c->claims[k]->claim);
		for (size_t k = 0; k < c->n_devices; k++) {
			const Agent__Devices *d = c->devices[k];
			check(!k || strcmp(c->devices[k - 1]->resource, d->resource) < 0);
			check(d->n_nodes > 0);
			for (size_t j = 0; j < d->n_nodes; j++)
				check(d->nodes[j] < NODES_MAX &&
				      (!j || d->nodes[j - 1] < d->nodes[j]));
		}
	}
	return 0;
}

static void read_answer(const uint8_t *data, size_t n)
{
	struct err err = ERR_INIT;
	int r = devices_each_pod(data, n, true, check_pod, NULL, &err);
	check(r <= 0 && err.code == r && (r == 0) == !*err.text);
}

/* Reads a pod of core/v1: a pod without a name or a UID is refused. */
static void read_pod(const uint8_t *data, size_t n)
{
	struct arena *a = arena_new(4096, 16u << 20);
	json_t *pod = podwatch_json(data, n);
	Agent__FedPod m;
	if (pod && kube_pod(a, pod, false, &m) == 0)
		check(*m.uid && *m.namespace_ && *m.name);
	json_decref(pod);
	arena_free(a);
}

static void on_touched(void *arg)
{
}

static void on_done(const struct grpc_result *r, void *arg)
{
	struct outcome *o = arg;
	o->n++;
	o->error = r->error;
	o->len = r->payload_len;
	check(r->error <= 0 && (!r->error || *r->text) && r->payload_len <= MESSAGE_MAX);
	if (!r->error)
		read_answer(r->payload, r->payload_len);
}

static void say(struct h2 *h)
{
	struct buf unheard = BUF_INIT;
	(void)h2_pull(h, &unheard, SIZE_MAX);
	buf_fini(&unheard);
}

static struct outcome play(const uint8_t *data, size_t n, size_t piece)
{
	Podresources__ListRequest msg = PODRESOURCES__LIST_REQUEST__INIT;
	struct outcome o = {0, 0, 0};
	struct loop *loop = loop_new();
	struct h2 *h = h2_new(&(struct h2_config){.touched = on_touched});
	check(h && !grpc_call(&(struct grpc_call_config){.h2 = h,
							 .loop = loop,
							 .path = "/v1.PodResourcesLister/List",
							 .timeout_ms = 60000,
							 .message_max = MESSAGE_MAX,
							 .done = on_done,
							 .arg = &o},
			      &msg.base, NULL));
	say(h);
	for (size_t at = 0; at < n;) {
		struct err err = ERR_INIT;
		size_t len = n - at < piece ? n - at : piece;
		if (h2_feed(h, data + at, len, &err)) {
			check(*err.text != '\0');
			break;
		}
		at += len;
		say(h);
	}
	h2_close(h, -ECONNRESET, "closed");
	h2_free(h);
	loop_free(loop);
	check(o.n == 1);
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	struct outcome whole = play(data + 1, size - 1, size);
	struct outcome cut = play(data + 1, size - 1, data[0] % 31u + 1u);
	check(whole.len == cut.len && (whole.error == 0) == (cut.error == 0));
	read_answer(data + 1, size - 1);
	read_pod(data + 1, size - 1);
	return 0;
}
