/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/lib/kube/token.h"
#include "core/lib/kube/http.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "pods"
#define TIMEOUT_MS 5000u
#define BODY_MAX (64u << 20) /* longest list, in bytes */
#define PATH "/pods"
#define STATUS_OK 200u

struct fetch {
	struct kubeconfig access[2]; /* access to the ports: readonly, secure */
	struct http *http[2];
	struct http_call *call;
	struct buf body;
	bool too_long;
	struct loop_timer *soon; /* reports a failure from outside of fetch_begin */
	char why[256];
	fetched done;
	void *arg;
};

static void fetch_conclude(struct fetch *f)
{
	f->done(*f->why ? f->why : NULL, (const char *)buf_bytes(&f->body), buf_len(&f->body),
		f->arg);
	buf_fini(&f->body);
	f->body = (struct buf)BUF_INIT;
}

static void on_soon(void *arg)
{
	fetch_conclude(arg);
}

static int on_data(unsigned status, const void *data, size_t n, void *arg)
{
	struct fetch *f = arg;
	if (status != STATUS_OK)
		return 0; /* the body of an error is not needed: the status is reported */
	f->too_long = buf_len(&f->body) + n > BODY_MAX;
	return f->too_long || buf_add(&f->body, data, n) ? -1 : 0;
}

static void on_done(const struct http_result *result, void *arg)
{
	struct fetch *f = arg;
	f->call = NULL;
	*f->why = '\0';
	if (f->too_long)
		(void)snprintf(f->why, sizeof f->why, "the list has more than %u MiB",
			       BODY_MAX >> 20);
	else if (result->error)
		(void)snprintf(f->why, sizeof f->why, "%.200s", result->text);
	else if (result->status != STATUS_OK)
		(void)snprintf(f->why, sizeof f->why, "HTTP status %u%s", result->status,
			       result->status == 401 || result->status == 403
				       ? ": the account needs the right to get nodes/proxy"
				       : "");
	fetch_conclude(f);
}

void fetch_begin(struct fetch *f, bool secure)
{
	_free_ char *token = NULL;
	struct err err = ERR_INIT;
	f->too_long = false;
	int r = secure ? kubeconfig_token(&f->access[1], &token, &err) : 0;
	const struct http_request request = {.method = "GET",
					     .path = PATH,
					     .token = token,
					     .timeout_ms = TIMEOUT_MS,
					     .data = on_data,
					     .done = on_done,
					     .arg = f};
	if (!r)
		f->call = http_start(f->http[secure], &request, &err);
	if (token)
		explicit_bzero(token, strlen(token));
	if (f->call)
		return;
	(void)snprintf(f->why, sizeof f->why, "%.200s", err_text(&err, r));
	(void)loop_timer_arm(f->soon, 1);
}

bool fetch_may_be_secure(const struct fetch *f)
{
	return !f->access[1].insecure && access(f->access[1].token_file, R_OK) == 0;
}

static char *fetch_url(const char *scheme, const char *host, unsigned port)
{
	bool v6 = strchr(host, ':') && *host != '[';
	return str_printf("%s://%s%s%s:%u", scheme, v6 ? "[" : "", host, v6 ? "]" : "", port);
}

int fetch_new(const struct podlist_config *config, fetched done, void *arg, struct fetch **ret,
	      struct err *err)
{
	struct fetch *f = calloc(1, sizeof *f);
	if (!f)
		return err_errno(err, -ENOMEM, "the kubelet");
	f->done = done;
	f->arg = arg;
	f->body = (struct buf)BUF_INIT;
	f->soon = loop_timer_new(config->loop, on_soon, f);
	f->access[0].server = fetch_url("http", config->kubelet, config->readonly_port);
	f->access[1].server = fetch_url("https", config->kubelet, config->secure_port);
	f->access[1].token_file = strdup(config->token);
	f->access[1].ca.file = config->ca ? strdup(config->ca) : NULL;
	f->access[1].insecure = !config->ca;
	int r = f->soon && f->access[0].server && f->access[1].server && f->access[1].token_file &&
				(!config->ca || f->access[1].ca.file)
			? 0
			: err_errno(err, -ENOMEM, "the kubelet");
	for (unsigned i = 0; i < 2 && !r; i++)
		r = http_new(config->loop, &f->access[i], &f->http[i], err);
	if (r) {
		fetch_free(f);
		return r;
	}
	if (!config->ca && config->source == PODS_SECURE)
		log_notice("the kubelet's certificate is not checked: set --kubelet-ca");
	if (!config->ca && config->source == PODS_AUTO && access(config->token, R_OK) == 0)
		log_notice("without --kubelet-ca the token is not sent: the secure port is only "
			   "used with --pods secure");
	*ret = f;
	return 0;
}

struct fetch *fetch_free(struct fetch *f)
{
	if (!f)
		return NULL;
	http_cancel(f->call);
	loop_timer_free(f->soon);
	buf_fini(&f->body);
	for (unsigned i = 0; i < 2; i++) {
		http_free(f->http[i]);
		free(f->access[i].server);
		free(f->access[i].token_file);
		free(f->access[i].ca.file);
	}
	free(f);
	return NULL;
}
