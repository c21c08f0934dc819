/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an API server sends, and kubeconfig files. The first byte says what the rest is, and how it is cut: a kubeconfig, a stream of events,
 * an object that configures the node. However it is cut, a stream has the same lines.
 */
#include <stdint.h>
#include <string.h>

#include "core/agent/protocol.h"
#include "core/nri-rp-agent/choice.h"
#include "core/nri-rp-agent/kubeconfig.h"
#include "core/nri-rp-agent/watch.h"
#include "core/util/buf.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	uint8_t how = data[0];
	data++;
	size--;
	if (how % 4 == 0)
		read_kubeconfig(data, size);
	if (how % 4 == 1) {
		struct seen whole = feed(data, size, size), cut = feed(data, size, how / 4 + 1u);
		check(whole.n == cut.n && whole.bytes == cut.bytes);
	}
	if (how % 4 >= 2)
		read_object(data, size, how % 4 == 2);
	return 0;
}
