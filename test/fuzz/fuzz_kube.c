/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the answers of an API server, and kubeconfig files. The first byte says what the rest is,
 * and how it is cut: a kubeconfig, a stream of events, an object that configures the node, or is
 * it, or adjusts its containers. With any cut, a stream has the same lines.
 */
#include <stdint.h>
#include <string.h>

#include "core/nri-rpd/agent/node.h"
#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/adjust.h"
#include "core/nri-rp-agent/candidate.h"
#include "core/nri-rp-agent/claim_object.h"
#include "core/lib/kube/kubeconfig.h"
#include "core/nri-rp-agent/node.h"
#include "core/nri-rp-agent/rbac_hint.h"
#include "core/nri-rp-agent/places.h"
#include "core/nri-rp-agent/watch.h"
#include "core/nri-rp-agent/node_patch.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/buf.h"
#include "test/fuzz/check.h"

static void read_kubeconfig(const uint8_t *data, size_t n)
{
	struct kubeconfig k;
	struct err err = ERR_INIT;
	int r = kubeconfig_parse("dir/config", (const char *)data, n, NULL, &k, &err);
	check(r <= 0 && (r == 0) == !*err.text);
	if (r)
		return;
	size_t len = strlen(k.server);
	check(len > 7 || k.server[len - 1] != '/');
	check(k.ca.len <= KUBECONFIG_PEM_MAX && (!k.ca.file || !k.ca.data));
	kubeconfig_fini(&k);
}

struct seen {
	unsigned n;
	size_t bytes;
};

static int take_line(const char *text, size_t n, void *arg)
{
	struct seen *s = arg;
	struct watch_message m;
	s->n++;
	s->bytes += n;
	if (watch_parse(text, n, &m) == 0) {
		check(json_is_object(m.object));
		check(m.version || m.event == WATCH_DENIED);
		json_decref(m.object);
	}
	return 0;
}

static struct seen feed(const uint8_t *data, size_t n, size_t piece)
{
	struct seen s = {0, 0};
	struct buf partial = BUF_INIT;
	const struct watch_lines lines = {&partial, take_line, &s};
	for (size_t at = 0; at < n; at += piece)
		check(watch_feed(&lines, data + at, n - at < piece ? n - at : piece) == 0);
	buf_fini(&partial);
	return s;
}

static void read_object(const uint8_t *data, size_t n, bool config_map)
{
	json_t *object = json_loadb((const char *)data, n, 0, NULL);
	struct candidate *c;
	struct err err = ERR_INIT;
	size_t total = 0;
	if (object && candidate_new(object, config_map, &c, &err) == 0) {
		for (size_t i = 0; i < c->n_sections; i++)
			total += strlen(c->sections[i].text);
		check(c->refused ||
		      (total <= AGENT_CONFIG_MAX && c->n_sections <= AGENT_SECTIONS_MAX));
		check(*c->name && *c->uid && candidate_same(c, c));
		candidate_free(c);
	}
	json_decref(object);
}

static void read_claim(const json_t *object)
{
	struct claim_object c;
	struct err err = ERR_INIT;
	if (claim_object_read(object, "u", "nri-rp.nri.io", "n1", &c, &err)) {
		check(*err.text);
		return;
	}
	check(c.n_results && c.n_results <= AGENT_CLAIM_PARTS_MAX);
	check(c.n_pods <= AGENT_CLAIM_PODS_MAX);
	for (uint32_t i = 0; i < c.n_results; i++) {
		const struct claim_result *r = &c.results[i];
		check(r->cpus >= 0 && r->cpus <= AGENT_CLAIM_CPUS_MAX && r->memory >= 0);
		check(r->device && r->request_len <= strlen(r->request));
	}
}

/* Checks that the daemon accepts or refuses the message that the agent makes of a Node. */
static void send_node(struct arena *a, const json_t *object)
{
	Agent__SetNodeRequest m;
	const struct node_object *node;
	if (node_message(a, object, &m))
		return;
	uint8_t *packed = arena_alloc(a, agent__set_node_request__get_packed_size(&m) + 1);
	size_t n = packed ? agent__set_node_request__pack(&m, packed) : 0;
	if (packed && agent_decode_node(a, packed, n, &node) == 0)
		check(node->n_labels <= m.n_labels && node->n_taints <= m.n_taints);
}

/* The patch between two halves of an object says what is otherwise, and nothing when it is the
 * same. */
static void read_adjustment(json_t *object)
{
	json_t *item = adjust_item(object, "a", "n1");
	json_t *has = json_object_get(object, "has"), *want = json_object_get(object, "want");
	json_t *patch = has && want ? adjust_merge(has, want) : NULL;
	check(!has || !want || (patch == NULL) == (json_equal(has, want) != 0));
	check(!item || json_is_string(json_object_get(item, "name")));
	json_decref(patch);
	json_decref(item);
}

static void on_settled(void *arg)
{
}

/* A slice is recorded once, and its device has a place or a cause why not. */
static void read_slice(const uint8_t *data, size_t n)
{
	static char name[] = "d";
	json_t *object = json_loadb((const char *)data, n, 0, NULL);
	struct places *s = places_new(NULL, NULL, on_settled, NULL);
	Agent__ClaimDevice d = AGENT__CLAIM_DEVICE__INIT, *devices = &d;
	Agent__ContainerDevices c = AGENT__CONTAINER_DEVICES__INIT, *containers = &c;
	Agent__PodDevices pod = AGENT__POD_DEVICES__INIT;
	d.driver = d.pool = d.device = name;
	c.claims = &devices;
	c.n_claims = 1;
	pod.containers = &containers;
	pod.n_containers = 1;
	check(s != NULL);
	places_take(s, object, false);
	places_take(s, object, false);
	places_locate(s, &pod);
	check(d.n_nodes + (*d.pci != 0) + (*d.unknown != 0) == 1);
	places_take(s, object, true);
	places_free(s);
	json_decref(object);
}

static void read_node(const uint8_t *data, size_t n)
{
	static const char wants[] =
		"{\"labels\": {\"a\": \"v\"}, \"annotations\": {\"b\": \"v\"}, "
		"\"taints\": {\"t:NoSchedule\": \"v\"}, \"resources\": {\"x.io/r\": true}}";
	struct arena *a = arena_new(4096, 8u << 20);
	json_t *object = json_loadb((const char *)data, n, 0, NULL), *patch = NULL;
	json_t *wanted = json_loads(wants, 0, NULL), *nothing = json_object();
	char foreign[ERR_TEXT_MAX];
	check(a && wanted && nothing);
	if (object) {
		send_node(a, object);
		check(wishes_patch(object, wanted, &patch, foreign) == 0);
		check(!patch || json_object_get(patch, "metadata"));
		json_decref(patch);
		patch = NULL;
		check(wishes_patch(object, nothing, &patch, foreign) == 0 && !*foreign);
		json_decref(patch);
		read_adjustment(object);
		read_claim(object);
	}
	json_decref(object);
	json_decref(wanted);
	json_decref(nothing);
	arena_free(a);
}

/* Checks that the remedy for a refused request fits for any path, and is empty for status 500. */
static void read_path(const uint8_t *data, size_t n)
{
	static const unsigned statuses[] = {403, 404, 500};
	char path[512], text[RIGHTS_TEXT_MAX];
	size_t len = n < sizeof path ? n : sizeof path - 1;
	memcpy(path, data, len);
	path[len] = '\0';
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
		rights_remedy("PATCH", path, statuses[i], text, sizeof text);
		check(strlen(text) < sizeof text && (statuses[i] != 500 || !*text));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	uint8_t how = data[0];
	data++;
	size--;
	if (how % 4 == 0) {
		read_kubeconfig(data, size);
		read_path(data, size);
	}
	if (how % 4 == 1) {
		struct seen whole = feed(data, size, size), cut = feed(data, size, how / 4 + 1u);
		check(whole.n == cut.n && whole.bytes == cut.bytes);
	}
	if (how % 4 >= 2)
		read_object(data, size, how % 4 == 2);
	if (how % 4 == 3)
		read_node(data, size);
	read_slice(data, size);
	return 0;
}
