/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of nri-rp.decision/1: passes inputs unchanged, and compares each result of the module
 * with `out`, in which a map is written as KEY.SUB. */
#include "core/nri-rp-modcheck/vectors_decision.h"

#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-modcheck/vectors.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define PATH_SEGMENT_MAX 64u
#define RESULTS_MAX 64u

struct result {
	char *name, *text;
	bool seen;
};

struct results {
	struct result list[RESULTS_MAX];
	unsigned n;
	bool failed;
};

static rp_cfg input(void *ctx, const char *path)
{
	const struct vector *v = ctx;
	char head[PATH_SEGMENT_MAX];
	const char *dot = strchr(path, '.');
	if (!dot)
		return vector_in(v, path);
	if ((size_t)(dot - path) >= sizeof head)
		return NULL;
	(void)snprintf(head, sizeof head, "%.*s", (int)(dot - path), path);
	return vector_sub(v, head, dot + 1);
}

static void vectors_decision_take(void *ctx, const char *name, const char *text)
{
	struct results *r = ctx;
	if (r->n == RESULTS_MAX) {
		r->failed = true;
		return;
	}
	struct result *one = &r->list[r->n++];
	one->name = strdup(name);
	one->text = strdup(text);
	r->failed = r->failed || !one->name || !one->text;
}

static struct result *vectors_decision_find(struct results *r, const char *name)
{
	for (unsigned i = 0; i < r->n; i++)
		if (str_eq(r->list[i].name, name))
			return &r->list[i];
	return NULL;
}

/* Returns a scalar as its text, and a list with commas. */
static void expected_text(rp_cfg node, struct buf *ret)
{
	for (uint32_t i = 0; conf_kind(node) == RP_NODE_LIST && i < conf_count(node); i++)
		(void)buf_printf(ret, "%s%s", i ? "," : "", conf_text(conf_item(node, i), ""));
	if (conf_kind(node) == RP_NODE_SCALAR)
		(void)buf_printf(ret, "%s", conf_text(node, ""));
}

static void vectors_decision_compare(struct vector *v, struct results *found, const char *prefix,
				     rp_cfg out)
{
	for (uint32_t i = 0; i < conf_count(out); i++) {
		_cleanup_(buf_fini) struct buf name = BUF_INIT, text = BUF_INIT;
		rp_cfg node = conf_item(out, i);
		(void)buf_printf(&name, "%s%s", prefix, conf_key(out, i));
		if (conf_kind(node) == RP_NODE_MAP) {
			(void)buf_printf(&name, ".");
			vectors_decision_compare(v, found, buf_text(&name), node);
			continue;
		}
		struct result *r = vectors_decision_find(found, buf_text(&name));
		if (r)
			r->seen = true;
		expected_text(node, &text);
		vector_compare_text(v, buf_text(&name),
				    conf_kind(node) == RP_NODE_NULL ? NULL : buf_text(&text),
				    r ? r->text : NULL);
	}
}

int vector_decide(struct vector *v, struct instance *i, const char *kind, struct err *err)
{
	struct results found = {0};
	const struct rp_question question = {
		.size = sizeof question, .kind = kind, .ctx = v, .input = input};
	const struct rp_answer answer = {
		.size = sizeof answer, .ctx = &found, .result = vectors_decision_take};
	int r = instance_decide(i, &question, &answer, err);
	if (!r && found.failed)
		r = err_set(err, -E2BIG, "more than %u results", RESULTS_MAX);
	if (!r)
		vectors_decision_compare(v, &found, "", v->out);
	for (unsigned k = 0; k < found.n; k++) {
		if (!r && !found.list[k].seen)
			vector_compare_text(v, found.list[k].name, NULL, found.list[k].text);
		free(found.list[k].name);
		free(found.list[k].text);
	}
	return r;
}
