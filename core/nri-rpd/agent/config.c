/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes pushed configurations, passes them to the pipeline, and answers with their problems. */
#include "core/nri-rpd/agent/config.h"
#include "core/nri-rpd/agent/call.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/reload/pushed.h"
#include "core/nri-rpd/pipeline/request/adjust.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "proto/agent.pb-c.h"

#define ARENA_BLOCK (16u << 10)
#define CONFIG_ARENA (4u * AGENT_CONFIG_MAX)
#define ERRORS_MAX (32u << 10) /* largest text that fits into the status of an object, in bytes */

/* ---- pushed configurations ------------------------------------------------------------------- */

/* Returns true if a word may be part of a source's name, which appears in messages. */
static bool good_word(const char *text)
{
	return agent_name_valid(text, AGENT_NAME_MAX - 1);
}

static bool good_object(const Agent__SetConfigRequest *m)
{
	return good_word(m->kind) && good_word(m->namespace_) && good_word(m->name) &&
	       good_word(m->uid) && good_word(m->generation);
}

static int take_section(struct arena *a, const Agent__SetConfigRequest *m, const Agent__Section *s,
			struct conf_source *ret)
{
	bool whole = !*s->name;
	if (!whole && !good_word(s->name))
		return -EINVAL;
	*ret = (struct conf_source){
		.name = arena_printf(a, "%s %s/%s%s%s (generation %s)", m->kind, m->namespace_,
				     m->name, whole ? "" : " ", s->name, m->generation),
		.text = s->text,
		.len = strlen(s->text),
		.pushed = true,
		.keyed = s->keyed,
		.object = whole,
	};
	return ret->name ? 0 : -ENOMEM;
}

int agent_decode_config(struct arena *a, const uint8_t *data, size_t n, struct conf_source **ret,
			unsigned *ret_n)
{
	const Agent__SetConfigRequest *m = PB_UNPACK(a, agent__set_config_request, n, data);
	size_t total = 0;
	if (!m)
		return -EBADMSG;
	if (!good_object(m))
		return -EINVAL;
	if (m->n_sections > AGENT_SECTIONS_MAX)
		return -E2BIG;
	struct conf_source *list = arena_array(a, m->n_sections + 1, sizeof *list);
	int r = list ? 0 : -ENOMEM;
	for (size_t i = 0; !r && i < m->n_sections; i++) {
		r = take_section(a, m, m->sections[i], &list[i]);
		total += r ? 0 : list[i].len;
	}
	if (!r && total > AGENT_CONFIG_MAX)
		r = -E2BIG;
	*ret = list;
	*ret_n = (unsigned)m->n_sections;
	return r;
}

/* ---- outcome --------------------------------------------------------------------------------- */

/* Answers a push. errors NULL: accepted, with these warnings. conflicts NULL: none. */
static void config_answer(struct rpc_request *req, const char *errors, const char *warnings,
			  Trial__Conflict *const *conflicts, size_t n)
{
	Agent__SetConfigResponse out = AGENT__SET_CONFIG_RESPONSE__INIT;
	Agent__AdjustmentError list[ADJUST_CONFLICTS_MAX], *at[ADJUST_CONFLICTS_MAX];
	for (; out.n_containers < n && out.n_containers < ADJUST_CONFLICTS_MAX;
	     out.n_containers++) {
		const Trial__Conflict *c = conflicts[out.n_containers];
		Agent__AdjustmentError *e = at[out.n_containers] = &list[out.n_containers];
		agent__adjustment_error__init(e);
		e->adjustment = c->adjustment;
		e->container = c->ctr;
		e->text = c->text;
	}
	out.containers = at;
	out.accepted = errors == NULL;
	if (errors)
		out.errors = (char *)(uintptr_t)errors;
	else
		out.warnings = (char *)(uintptr_t)warnings;
	(void)rpc_reply(req, &out.base);
}

/* Appends the errors, or the warnings, among the lines. */
static void config_put_problems(struct buf *out, const char *lines, bool warnings)
{
	for (size_t n; *lines; lines += n + (lines[n] == '\n')) {
		n = strcspn(lines, "\n");
		const size_t mark = str_has_prefix(lines, CONF_WARNING) ? strlen(CONF_WARNING) : 0;
		if (n > mark && (mark != 0) == warnings && buf_len(out) + n < ERRORS_MAX)
			(void)buf_printf(out, "%s%.*s", buf_len(out) ? "\n" : "", (int)(n - mark),
					 lines + mark);
	}
}

static void config_tried(const struct reload_result *res, void *arg)
{
	struct rpc_request *req = arg;
	struct buf errors = BUF_INIT, warnings = BUF_INIT;
	if (res->code == -ESHUTDOWN || res->code == -ENOMEM) {
		(void)rpc_reply_error(req, TTRPC_UNAVAILABLE, "%s", err_text(&res->err, res->code));
		return;
	}
	if (res->code) {
		config_put_problems(&errors, res->warnings, false);
		if (!buf_len(&errors))
			(void)buf_add_str(&errors, err_text(&res->err, res->code));
	} else {
		config_put_problems(&warnings, res->warnings, true);
	}
	config_answer(req, res->code ? buf_text(&errors) : NULL, buf_text(&warnings),
		      res->report->conflicts, res->report->n_conflicts);
	buf_fini(&warnings);
	buf_fini(&errors);
}

static void config_refuse(struct rpc_request *req, int error)
{
	switch (error) {
	case -E2BIG:
		config_answer(req, "it is larger than a configuration may be", "", NULL, 0);
		return;
	case -ENOMEM:
		(void)rpc_reply_error(req, TTRPC_UNAVAILABLE, "out of memory");
		return;
	default:
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "cannot decode the request");
	}
}

void agent_serve_config(struct pipeline *p, struct rpc_request *req)
{
	const bool adjustments = str_eq(req->method, "SetAdjustments");
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, CONFIG_ARENA);
	struct conf_source *sources;
	unsigned n;
	struct err err = ERR_INIT;
	if (!conf_core(pipeline_conf(p))->agent.cluster) {
		(void)rpc_reply_error(req, TTRPC_FAILED_PRECONDITION,
				      "this node accepts no configuration from the cluster: "
				      "agent.cluster is not set in its rp.conf");
		return;
	}
	int r = a ? agent_decode_config(a, req->payload, req->payload_len, &sources, &n) : -ENOMEM;
	if (r) {
		config_refuse(req, r);
		return;
	}
	/* After a restart only the name of a source shows its kind, so the names must fit the
	 * request. */
	bool named = !n || str_has_prefix(sources[0].name, PUSHED_ADJUSTMENTS) == adjustments;
	if (!named) {
		config_refuse(req, -EINVAL);
		return;
	}
	r = pipeline_push(p, sources, n, adjustments, config_tried, req, &err);
	if (r > 0)
		config_answer(req, NULL, "", NULL, 0);
	else if (r)
		(void)rpc_reply_error(req, TTRPC_UNAVAILABLE, "%s", err.text);
}
