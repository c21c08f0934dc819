/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's end of NRI (nri-runtime), as scenarios use it: what is asked is waited for,
 * what the plugin wants is checked and done to the model, and all that it does wrong is a problem.
 */
#ifndef SIM_CONN_H
#define SIM_CONN_H

#include "core/nri-rp-sim/sim.h"
#include "proto/nri.pb-c.h"

/* The runtime starts and listens; it stops and is gone, socket and all. */
int conn_listen(struct sim *s, struct err *err);
void conn_close(struct sim *s);

bool conn_is_active(const struct sim *s);
/* How often a plugin has become active; to wait for the next time. */
uint64_t conn_n_active(const struct sim *s);
/* Waits until that is more than `after`. */
int conn_wait_active(struct sim *s, uint64_t after, uint64_t timeout_ms, struct err *err);
/* Lets go of the plugin; why is told to whoever watches. */
void conn_drop(struct sim *s, const char *why);

/* Configure goes out before the next registration is answered. */
void conn_configure_first(struct sim *s, bool first);

struct conn_answer {
	struct sim *s;
	int error; /* of rpc_result; 0: answered; -ENOTCONN: nobody to ask */
	int32_t code;
	char *text; /* malloc'd, as is the payload; NULL */
	uint8_t *payload;
	size_t payload_len;
	uint64_t took_us;
};
void conn_answer_fini(struct conn_answer *answer);
/*
 * Asks and waits; nothing when nobody has subscribed to the event. pod and ctr become the request;
 * resources are those of an UpdateContainer. A plugin that is late or goes away is dropped:
 * -ETIMEDOUT, -ECONNRESET …
 */
void conn_event(struct sim *s, Nri__Event event, const struct sim_pod *pod,
		const struct sim_ctr *ctr, const struct resources *resources,
		struct conn_answer *ret);

#endif
