/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/writer.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/getter.h"
#include "core/lib/util/log.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "writer"

struct writer {
	struct kube *kube;
	struct writer_config config;
	char *wanted; /* content to be written; NULL: nothing to write */
	bool wanted_again; /* `wanted` was replaced while it was being written */
	struct kube_call *call;
	struct loop_timer *timer;
	struct kube_backoff backoff;
	uint64_t next_ms; /* earliest time of the next write */
	int last_error; /* error logged last */
};

static void writer_later(struct writer *w, uint64_t not_before_ms)
{
	uint64_t now = clock_ms();
	w->next_ms = not_before_ms > now ? not_before_ms : now;
	(void)loop_timer_arm(w->timer, w->next_ms - now);
}

static void writer_wrote(const struct kube_answer *answer, void *arg)
{
	struct writer *w = arg;
	bool denied = answer->error == -EACCES || answer->error == -ENOENT;
	/* the caller sees the newer version, or the removal, through its watch */
	bool overtaken =
		answer->error == -EEXIST || (answer->error == -ENOENT && w->config.ends_with_it);
	const bool at_once = answer->error == -EEXIST && w->config.versioned;
	const bool missing = answer->error == -ENOENT && !overtaken && w->config.missing;
	_free_ char *text = str_printf("%s%s%s", answer->text, missing ? "; " : "",
				       missing ? w->config.missing : "");
	const char *said = text ? text : answer->text;
	w->call = NULL;
	if (answer->error && !overtaken && answer->error != w->last_error)
		log_warning("%s", said);
	w->last_error = answer->error;
	kube_set_problem(w->kube, w->config.path, answer->error && !overtaken ? said : NULL);
	if ((!answer->error || overtaken || answer->error == -EINVAL) && !w->wanted_again) {
		free(w->wanted);
		w->wanted = NULL;
	}
	if (!answer->error) {
		kube_backoff_reset(&w->backoff);
		kube_set_written(w->kube, w->config.what);
	}
	w->next_ms = clock_ms() + (at_once ? 0 : w->config.interval_ms);
	w->wanted_again = false;
	if (w->wanted)
		writer_later(w, denied ? clock_ms() + kube_backoff_denied_ms(&w->backoff)
				: answer->error && !at_once
					? clock_ms() + kube_backoff_next_ms(&w->backoff)
					: w->next_ms);
	if (w->config.written)
		w->config.written(answer, w->config.arg);
}

static void write_now(void *arg)
{
	struct writer *w = arg;
	const struct kube_request request = {
		.method = w->config.method,
		.path = w->config.path,
		.content_type = w->config.content_type,
		.body = w->wanted,
		.done = writer_wrote,
		.arg = w,
	};
	w->call = kube_call(w->kube, &request);
	if (!w->call)
		writer_later(w, clock_ms() + kube_backoff_next_ms(&w->backoff));
}

int writer_put(struct writer *w, json_t *body)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	if (!text)
		return -ENOMEM;
	free(w->wanted);
	w->wanted = text;
	if (w->call)
		w->wanted_again = true;
	else
		writer_later(w, w->next_ms);
	return 0;
}

DEFINE_GETTER_OF(writer_idle, bool, const struct writer *w, !w->wanted)
DEFINE_GETTER_OF(writer_writing, bool, const struct writer *w, w->call != NULL)

struct writer *writer_new(struct kube *k, const struct writer_config *config)
{
	struct writer *w = calloc(1, sizeof *w);
	if (!w) {
		free(config->path);
		return NULL;
	}
	w->kube = k;
	w->config = *config;
	w->timer = loop_timer_new(kube_loop(k), write_now, w);
	return w->config.path && w->timer ? w : writer_free(w);
}

struct writer *writer_free(struct writer *w)
{
	if (!w)
		return NULL;
	kube_cancel(w->call);
	loop_timer_free(w->timer);
	free(w->config.path);
	free(w->wanted);
	free(w);
	return NULL;
}
