/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection to nri-rpd: the agent connects and registers, the daemon calls. It comes back for ever, with back-off. That it is the
 * agent who connects has two reasons: the daemon, being root, opens no path that another user has made, and knows who is there by the
 * credentials of a socket of its own.
 */
#ifndef NRI_RP_AGENT_LINK_H
#define NRI_RP_AGENT_LINK_H

#include "core/nri-rp-agent/podres.h"

struct link;

/* Starts connecting. podres has to outlive it. */
int link_new(struct loop *loop, const char *socket, struct podres *podres, struct link **ret,
	     struct err *err);
struct link *link_free(struct link *l); /* returns NULL; NULL is fine */

#endif
