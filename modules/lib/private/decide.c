/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and results of decisions. */
#include "modules/lib/private/decide.h"

#include <stdio.h>

int64_t decide_in(const struct modhost *h, const struct rp_question *q, const char *path,
		  uint32_t type, int64_t fallback)
{
	rp_cfg node = q->input(q->ctx, path);
	return node ? h->config->value(h->ctx, node, type, fallback) : fallback;
}

const char *decide_in_text(const struct modhost *h, const struct rp_question *q, const char *path,
			   const char *fallback)
{
	return h->config->text(h->ctx, q->input(q->ctx, path), fallback);
}

void decide_in_cpus(const struct modhost *h, const struct rp_question *q, const char *path,
		    struct rp_idset *ret)
{
	if (rp_idset_parse(ret, decide_in_text(h, q, path, ""), RP_CPUS_MAX))
		rp_idset_clear(ret);
}

void decide_out(const struct rp_answer *a, const char *name, int64_t value)
{
	char text[32];
	(void)snprintf(text, sizeof text, "%lld", (long long)value);
	a->result(a->ctx, name, text);
}
