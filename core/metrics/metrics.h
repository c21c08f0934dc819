/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics and health over HTTP.
 *
 *   expo.c      the text format of Prometheus (0.0.4): families, labels, numbers, checks of what modules hand in
 *   host.c      nri_rp_*: the daemon itself
 *   system.c    nri_policy_mem_node_*, nri_policy_cpu_*: the machine as containers use it
 *   modules.c   nri_policy_<policy>_*, nri_<controller>_*: what modules count
 *   health.c    /healthz, /livez: checkers and their verdicts
 *   http.c      the server: GET and HEAD, bounded in every direction
 *
 * Nothing is counted for metrics on the request path beyond what the pipeline counts anyway: everything else is computed from the
 * cache when somebody scrapes.
 */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include <stdbool.h>

#include "core/pipeline/pipeline.h"
#include "core/util/buf.h"
#include "core/util/err.h"
#include "core/util/loop.h"

#define METRICS_LISTEN_MAX 512u /* bytes of an address */
#define METRICS_CONNECTIONS_MAX 32
#define METRICS_HEADER_MAX 8192
#define METRICS_TIMEOUT_S 5
#define METRICS_MODULE_SAMPLES_MAX 20000u /* of one module and scrape; the rest is left out */

struct metrics;

/*
 * Listens at "host:port" ("[::1]:8891", ":8891": all addresses), "unix:PATH" (mode 0660), or nowhere (""). -EINVAL: not an
 * address; else what the system said. The pipeline has to outlive it.
 */
int metrics_new(struct loop *loop, struct pipeline *pipeline, const char *listen,
		struct metrics **ret, struct err *err);
/* Another address, at once; when it cannot be had the old one stays. The same one: nothing happens. */
int metrics_set_listen(struct metrics *m, const char *listen, struct err *err);
struct metrics *metrics_free(struct metrics *m); /* NULL is fine; returns NULL */
/* Where it listens, with the port that was given for port 0; "" nowhere. */
const char *metrics_address(const struct metrics *m);

/* ---- without a server --------------------------------------------------------------------------------------------- */

/* The whole of /metrics. 0 or -ENOMEM. */
int metrics_render(struct pipeline *p, struct buf *out);

/* One line a failing checker into out ("name: what is wrong"); true when there is none. `live`: only what a restart could mend. */
bool health_check(struct pipeline *p, bool live, struct buf *out);

#endif
