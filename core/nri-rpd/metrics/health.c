/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness of the daemon: one line for each condition that makes it unready. */
#include "core/nri-rpd/pipeline/observe/conditions.h"
#include "core/nri-rpd/metrics/health.h"

static void add_line(const struct condition *c, void *arg)
{
	if (c->severity == SEVERITY_UNHEALTHY)
		(void)buf_printf(arg, "%s: %s\n", c->about, c->text);
}

bool health_check(struct pipeline *p, struct buf *out)
{
	size_t before = buf_len(out);
	(void)conditions_each(p, add_line, out);
	return buf_len(out) == before;
}
