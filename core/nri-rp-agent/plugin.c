/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/grpc/conn.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/getter.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/sock.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "plugins"
#define DIAL_AGAIN_MS 50u

struct plugin {
	struct plugin_config config;
	char *resource, *endpoint, *path;
	bool aligns, pre_start, reconciles;
	struct grpc_conn *conn; /* connection to the plugin; NULL: not connected */
	bool ready; /* the options are known */
	/* time at which the plugin was found to be stopped; 0: it is not stopped */
	uint64_t stopped_ms;
	uint64_t dial_until_ms;
	struct loop_timer *timer; /* for connecting, and for calling `changed` */
	char error[ERR_TEXT_MAX];
	uint64_t calls, failures;
};

static void plugin_stop(struct plugin *p, const char *why)
{
	struct grpc_conn *conn = TAKE(p->conn);
	p->ready = false;
	p->stopped_ms = clock_ms();
	(void)snprintf(p->error, sizeof p->error, "%s", why);
	utf8_mend(p->error);
	log_warning("resource plugin %s (%s) has stopped: %s", p->resource, p->endpoint, p->error);
	p->dial_until_ms = 0;
	(void)loop_timer_arm(p->timer, 0);
	grpc_conn_free(conn);
}

static void on_ended(struct grpc_conn *conn, const struct err *err, void *arg)
{
	struct plugin *p = arg;
	if (p->conn == conn)
		plugin_stop(p, err->text);
}

static void plugin_ready(struct plugin *p)
{
	p->ready = true;
	p->stopped_ms = 0;
	p->error[0] = '\0';
	log_notice("resource plugin %s (%s) is connected%s%s%s", p->resource, p->endpoint,
		   p->aligns ? ", gives hints" : "",
		   p->pre_start ? ", called before container starts" : "",
		   p->reconciles ? ", reconciled" : "");
	(void)loop_timer_arm(p->timer, 0);
}

static void on_options(const struct grpc_result *result, void *arg)
{
	struct plugin *p = arg;
	struct err err = ERR_INIT;
	if (result->error == -ECANCELED || !p->conn)
		return;
	Resourceplugin__Options *m = result->error
					     ? NULL
					     : resourceplugin__options__unpack(
						       NULL, result->payload_len, result->payload);
	if (!m) {
		(void)err_set(&err, -EBADMSG, "%s",
			      result->error ? result->text : "a reply that cannot be decoded");
		plugin_failed(p, "GetResourcePluginOptions", &err);
		plugin_stop(p, err.text);
		return;
	}
	p->aligns = m->with_topology_alignment;
	p->pre_start = m->pre_start_required;
	p->reconciles = m->need_reconcile;
	resourceplugin__options__free_unpacked(m, NULL);
	plugin_ready(p);
}

static int connect_now(struct plugin *p, struct err *err)
{
	const struct grpc_conn_config config = {
		.loop = p->config.loop, .peer = p->path, .ended = on_ended, .arg = p};
	int r = wire_check_folder(p->path, err);
	if (r)
		return r;
	int fd = wire_connect_unix(p->path, err);
	if (fd < 0)
		return fd;
	r = grpc_conn_new(fd, &config, &p->conn, err);
	if (r || !p->config.ask_options)
		return r;
	return plugin_call(p, "GetResourcePluginOptions", NULL, 0, PLUGIN_DIAL_MS, on_options, p,
			   err);
}

static void on_timer(void *arg)
{
	struct plugin *p = arg;
	struct err err = ERR_INIT;
	if (!p->dial_until_ms || p->conn) {
		p->config.changed(p, p->config.arg);
		return;
	}
	int r = connect_now(p, &err);
	if (!r && !p->config.ask_options)
		plugin_ready(p);
	else if (r && clock_ms() >= p->dial_until_ms)
		plugin_stop(p, err_text(&err, r));
	else if (r)
		(void)loop_timer_arm(p->timer, DIAL_AGAIN_MS);
}

void plugin_connect(struct plugin *p)
{
	p->dial_until_ms = clock_ms() + PLUGIN_DIAL_MS;
	(void)loop_timer_arm(p->timer, 0);
}

/* ---- calls ----------------------------------------------------------------------------------- */

void plugin_failed(struct plugin *p, const char *method, struct err *err)
{
	(void)err_prefix(err, "resource plugin %s (%s): %s: ", p->resource, p->endpoint, method);
	utf8_mend(err->text); /* the text may quote the plugin */
	p->failures++;
	(void)snprintf(p->error, sizeof p->error, "%s", err->text);
	if (!p->dial_until_ms || p->conn)
		(void)loop_timer_arm(p->timer, 0);
}

int plugin_call(struct plugin *p, const char *method, const uint8_t *payload, size_t n,
		uint32_t timeout_ms, grpc_done done, void *arg, struct err *err)
{
	char path[128];
	p->calls++;
	if (!p->conn)
		return err_set(err, -ENOTCONN,
			       "resource plugin %s (%s) is not connected%s%s; check that it runs "
			       "and registers",
			       p->resource, p->endpoint, *p->error ? ": " : "", p->error);
	(void)snprintf(path, sizeof path, PLUGIN_SERVICE "%s", method);
	int r = grpc_call_packed(&(struct grpc_call_config){.h2 = grpc_conn_h2(p->conn),
							    .loop = p->config.loop,
							    .path = path,
							    .timeout_ms = timeout_ms,
							    .message_max = PLUGIN_MESSAGE_MAX,
							    .done = done,
							    .arg = arg},
				 payload, n, NULL);
	if (!r)
		return 0;
	(void)err_errno(err, r, "it does not accept calls");
	plugin_failed(p, method, err);
	return r;
}

/* ---- state for people ------------------------------------------------------------------------ */

DEFINE_GETTER_OF(plugin_connected, bool, const struct plugin *p, p->ready)
DEFINE_GETTER_OF(plugin_stopped_ms, uint64_t, const struct plugin *p, p->stopped_ms)

void plugin_describe(const struct plugin *p, Agent__Plugin *ret)
{
	agent__plugin__init(ret);
	ret->resource = p->resource;
	ret->endpoint = p->endpoint;
	ret->connected = p->ready;
	ret->aligns = p->aligns;
	ret->pre_start = p->pre_start;
	ret->reconciles = p->reconciles;
	ret->error = (char *)(uintptr_t)p->error;
	ret->calls = p->calls;
	ret->failures = p->failures;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct plugin *plugin_new(const struct plugin_config *config)
{
	struct plugin *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->config = *config;
	p->resource = strdup(config->resource);
	p->endpoint = strdup(config->endpoint);
	p->path = str_printf("%s/%s", config->folder, config->endpoint);
	p->aligns = config->aligns;
	p->pre_start = config->pre_start;
	p->reconciles = config->reconciles;
	p->stopped_ms = clock_ms();
	(void)snprintf(p->error, sizeof p->error, "it has not registered since the agent started");
	p->timer = loop_timer_new(config->loop, on_timer, p);
	return p->resource && p->endpoint && p->path && p->timer ? p : plugin_free(p);
}

struct plugin *plugin_free(struct plugin *p)
{
	if (!p)
		return NULL;
	grpc_conn_free(TAKE(p->conn)); /* also ends the calls */
	loop_timer_free(p->timer);
	free(p->resource);
	free(p->endpoint);
	free(p->path);
	free(p);
	return NULL;
}
