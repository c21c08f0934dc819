/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's end of NRI: the socket, one plugin at a time, registered, configured, synchronised, then asked.
 *
 *   nobody ──connect──▶ accepted ──RegisterPlugin──▶ registered ──Configure──▶ configured ──Synchronize──▶ active
 *
 * NRI's lock is held from registration to synchronisation and while a request is under way: updates that the plugin asks for by
 * itself wait until it is free. A plugin that is late, closes, or breaks the protocol is dropped, and the runtime goes on without.
 */
#ifndef SIM_CONN_H
#define SIM_CONN_H

#include "core/nri-rp-sim/sim.h"
#include "proto/nri.pb-c.h"

enum conn_state { CONN_NOBODY, CONN_ACCEPTED, CONN_REGISTERED, CONN_CONFIGURED, CONN_ACTIVE };

/* The runtime starts and listens; it stops and is gone, socket and all. */
int conn_listen(struct sim *s, struct err *err);
void conn_close(struct sim *s);

enum conn_state conn_state(const struct sim *s);
/* How often a plugin has become active; to wait for the next time. */
uint64_t conn_n_active(const struct sim *s);
/* Waits until that is more than `after`. */
int conn_wait_active(struct sim *s, uint64_t after, uint64_t timeout_ms, struct err *err);
bool conn_subscribed(const struct sim *s, Nri__Event event);
/* Lets go of the plugin; why is told to whoever watches. */
void conn_drop(struct sim *s, const char *why);

/* Who serves: for the next registration. */
struct conn_faults {
	bool configure_first; /* Configure goes out before the registration is answered */
};
void conn_set_faults(struct sim *s, const struct conn_faults *faults);

struct conn_answer {
	struct sim *s;
	int error; /* of rpc_result; 0: answered; -ENOTCONN: nobody to ask */
	int32_t code;
	char *text; /* malloc'd, as is the payload; NULL */
	uint8_t *payload;
	size_t payload_len;
	uint64_t took_us;
};
/* Asks and waits. The lock is taken meanwhile. A plugin that is late or goes away is dropped: -ETIMEDOUT, -ECONNRESET … */
void conn_ask(struct sim *s, const char *method, const ProtobufCMessage *msg,
	      struct conn_answer *ret);
void conn_answer_fini(struct conn_answer *answer);
/*
 * Asks by the event's own method or StateChange, whichever this release has for it; nothing when nobody has subscribed to it.
 * pod and ctr become the request; resources are those of an UpdateContainer.
 */
void conn_event(struct sim *s, Nri__Event event, const struct sim_pod *pod,
		const struct sim_ctr *ctr, const struct resources *resources,
		struct conn_answer *ret);

#endif
