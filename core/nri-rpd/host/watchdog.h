/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends the process when a module call hangs, before the runtime's time limit: a plugin that the
 * runtime has dropped does not return, one that restarts does.
 *
 * watchdog_begin and watchdog_end cost a clock reading and a store. The timer runs on, and its
 * signal handler checks whether the request it was armed for is still running. After the last
 * request it fires once more and then rests. The process ends only if the *same* module call is
 * seen at two checks WATCHDOG_GRACE_MS apart, the second one past the limit. A suspended machine,
 * or a host that is slow outside of modules, is therefore not blamed on a module.
 *
 * A module that blocks signals, or stops the process, keeps the handler from running. A second
 * timer sends SIGKILL when the handler is WATCHDOG_KILL_MS late. The next process tells that end
 * from an operator's SIGKILL by the age of the call in the breadcrumb.
 *
 * The handler runs on the thread that made the watchdog, which has to be the one that calls
 * modules. It writes one line to stderr and _exits with WATCHDOG_EXIT; the breadcrumb stays, marked
 * as a hang. One watchdog a process at a time.
 */
#pragma once

#include <stdint.h>

#include "core/lib/util/err.h"

#define WATCHDOG_LIMIT_MS 1500u
#define WATCHDOG_GRACE_MS 100u
#define WATCHDOG_EXIT 70
#define WATCHDOG_KILL_MS 3000u

struct crumb;
struct watchdog;

int watchdog_new(struct crumb *crumb, uint32_t limit_ms, struct watchdog **ret, struct err *err);
struct watchdog *watchdog_free(struct watchdog *w); /* accepts NULL; returns NULL */
/* Marks the begin and end of work that has a time limit: a request, an event, a reload. Not nested.
 * Both take NULL. */
void watchdog_begin(struct watchdog *w);
void watchdog_end(struct watchdog *w);
/* Allows the running request so much more time than the limit: a decision for many containers takes
 * longer. Takes NULL. */
void watchdog_allow(struct watchdog *w, uint32_t more_ms);
/* Detaches a forked child, which has no timer: the other calls then have no effect. */
void watchdog_child(struct watchdog *w);
