/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that answers everything with nothing: the floor that nri-rpd is measured against. Usage:
 * noop SOCKET */
#include <stdio.h>
#include <stdlib.h>

#include "core/lib/util/fields.h"
#include "core/lib/util/loop.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/mux.h"
#include "core/lib/wire/sock.h"
#include "core/lib/wire/trunk.h"
#include "proto/nri.pb-c.h"

#define EVENTS 0x6af /* as nri-rpd */
#define SYNCHRONIZE_MORE 3u /* the field */

/* A Synchronize in parts: each wants its `more` back. Nothing else of it is decoded. */
static bool has_more(const struct rpc_request *req)
{
	struct span s = span_of(req->payload, req->payload_len);
	struct field f;
	bool more = false;
	while (field_next(&s, &f) > 0)
		if (f.number == SYNCHRONIZE_MORE)
			more = f.value != 0;
	return more;
}

static void handle(struct rpc_request *req, void *arg)
{
	if (str_eq(req->method, "Configure")) {
		Nri__ConfigureResponse out = NRI__CONFIGURE_RESPONSE__INIT;
		out.events = EVENTS;
		(void)rpc_reply(req, &out.base);
	} else if (str_eq(req->method, "Synchronize")) {
		Nri__SynchronizeResponse out = NRI__SYNCHRONIZE_RESPONSE__INIT;
		out.more = has_more(req);
		(void)rpc_reply(req, &out.base);
	} else {
		(void)rpc_reply(req, NULL);
	}
}

static void closed(struct trunk *trunk, const struct err *err, void *arg)
{
	loop_stop(arg);
}

static int run(const char *path)
{
	char name[] = "noop", index[] = "90", version[] = "v0.12.2";
	struct err err = ERR_INIT;
	struct trunk *trunk = NULL;
	struct loop *loop = loop_new();
	const struct trunk_config config = {.mux = true, .closed = closed, .arg = loop};
	int fd = loop ? wire_connect_unix(path, &err) : -1;
	if (fd < 0 || trunk_new(loop, fd, &config, &trunk, &err)) {
		fprintf(stderr, "noop: %s\n", err.text);
		return EXIT_FAILURE;
	}
	rpc_serve(trunk_rpc(trunk, MUX_CONN_PLUGIN), handle, NULL);
	Nri__RegisterPluginRequest out = NRI__REGISTER_PLUGIN_REQUEST__INIT;
	out.plugin_name = name;
	out.plugin_idx = index;
	out.nri_version = version;
	(void)rpc_call(trunk_rpc(trunk, MUX_CONN_RUNTIME), "nri.pkg.api.v1alpha1.Runtime",
		       "RegisterPlugin", &out.base, 5000, NULL, NULL);
	(void)loop_run(loop);
	trunk_free(trunk);
	loop_free(loop);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: noop SOCKET\n");
		return 2;
	}
	return run(argv[1]);
}
