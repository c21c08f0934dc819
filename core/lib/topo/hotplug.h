/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports CPUs and memory that appear or disappear, from the kernel's uevents. A burst (a socket's
 * 64 CPUs) is reported once, after HOTPLUG_QUIET_MS without a further event but at most
 * HOTPLUG_LONGEST_MS after the first. The watcher reads no sysfs; the callback does (topo_reread),
 * and may find no relevant change.
 */
#pragma once

#include "core/lib/util/err.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/loop.h"

#define HOTPLUG_QUIET_MS 200u
#define HOTPLUG_LONGEST_MS 2000u

struct hotplug;

/*
 * Creates a watcher. A root other than "/" has no events: its watcher only reports
 * hotplug_trigger(). -errno: no socket; the caller may continue without a watcher.
 */
int hotplug_new(struct loop *loop, const struct fs_root *root, void (*fn)(void *arg), void *arg,
		struct hotplug **ret, struct err *err);
/* Creates a watcher on a datagram socket that carries uevents. The watcher owns the socket from
 * then on, also on failure; -1: none. */
int hotplug_new_on(struct loop *loop, int fd, void (*fn)(void *arg), void *arg,
		   struct hotplug **ret, struct err *err);
struct hotplug *hotplug_free(struct hotplug *h); /* accepts NULL; returns NULL */
/* Calls the watcher's function as if a CPU or memory event had arrived; for simulations and
 * SIGHUP. */
void hotplug_trigger(struct hotplug *h);

/* Returns true for a uevent (NUL-separated, as sent by the kernel) about a CPU, a memory block or a
 * node that appears or disappears. */
bool hotplug_event_matters(const char *msg, size_t len);
