/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server side of the control socket: plain ttrpc on a unix socket, one method a command
 * (proto/control.proto). Every answer carries a JSON document, which is the interface; nri-rpctl
 * formats it as text.
 *
 *   server.c       the socket: access, limits on clients and requests; documents in pieces
 *   commands.c     methods to functions, limits of requests
 *   document.c     parts that several documents have
 *   status.c       status, with its reasons
 *   lists.c        pods, containers, explain
 *   machine.c      zones, topology
 *   usage.c        measured usage of containers and memory nodes
 *   speedselect.c  Speed Select and extended resources, as parts of documents
 *   node.c         the Node object and its resources
 *   config.c       reload, plan, config: answered when the work is done
 *   rebalance.c    rebalance
 *   events.c       events, and waiting for them
 *   modules.c      installed modules, log levels, version
 *   doctor.c       common faults
 *
 * The socket has mode 0600, and a peer that is neither root nor the daemon's own user is refused.
 * Loop thread only. The time of a command is proportional to its document; longer work (reload,
 * plan, events) is answered later.
 */
#pragma once

#include "core/lib/wire/control_protocol.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

#define CTL_CLIENTS_MAX 32u /* largest number of connected clients */
/* largest number of requests that are answered later, of all clients together */
#define CTL_JOBS_MAX 64u
/* largest number of trials of configurations among these requests; each is a process */
#define CTL_PLANS_MAX 2u

struct ctl;

/* ---- requests of other parts of this process ------------------------------------------------- */

/* A request as over the socket: a method's name, its argument (NULL: none), a text, flags; for
 * events also the number to start after and the time to wait. */
struct ctl_question {
	const char *method, *argument, *text;
	uint32_t flags, wait_ms;
	uint64_t after;
};

/* Receives the document of an answer, valid during the call, and the exit status of nri-rpctl for
 * it. */
typedef void (*ctl_answer_fn)(void *arg, const struct buf *document, int exit);
