/* SPDX-License-Identifier: Apache-2.0 */
/* Is it ready to serve? A line for each checker that says no. */
#include "core/metrics/metrics.h"

#define STORE_LATE_NS (UINT64_C(5) * 1000000000) /* something waits to be stored for so long */

static void check_runtime(struct pipeline *p, struct buf *out)
{
	const struct runtime_state *rt = pipeline_runtime(p);
	if (!rt->connected)
		(void)buf_printf(out, "runtime: not connected: %s\n", rt->last_error);
	else if (!rt->synchronized)
		(void)buf_add_str(out, "runtime: not synchronized yet\n");
}

static void check_policy(struct pipeline *p, struct buf *out)
{
	struct pipeline_status s;
	pipeline_status(p, &s);
	if (s.safe_mode)
		(void)buf_printf(out, "policy: safe mode: %s\n", s.safe_mode_reason);
	if (!s.config_ok)
		(void)buf_printf(out, "configuration: the last reload was refused: %s\n",
				 s.config_error);
}

static void check_store(struct pipeline *p, struct buf *out)
{
	struct store_stats st;
	store_stats(pipeline_store(p), &st);
	if (st.failures && store_pending(pipeline_store(p)) &&
	    clock_wall_ns() - st.last_commit_ns > STORE_LATE_NS)
		(void)buf_printf(out, "store: commits fail (%llu so far)\n",
				 (unsigned long long)st.failures);
}

bool health_check(struct pipeline *p, struct buf *out)
{
	static void (*const checkers[])(struct pipeline * p, struct buf * out) = {
		check_runtime,
		check_policy,
		check_store,
	};
	size_t before = buf_len(out);
	for (size_t i = 0; i < sizeof checkers / sizeof checkers[0]; i++)
		checkers[i](p, out);
	return buf_len(out) == before;
}
