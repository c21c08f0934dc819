/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells when CPUs or memory came or went, from the kernel's uevents. Bursts (a socket's 64 CPUs)
 * are told once, after HOTPLUG_QUIET_MS without a further event but at most HOTPLUG_LONGEST_MS
 * after the first. The watcher reads no sysfs: the callback does (topo_reread), and may find that
 * nothing it cares for has changed.
 */
#ifndef TOPO_HOTPLUG_H
#define TOPO_HOTPLUG_H

#include "core/lib/util/err.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/loop.h"

#define HOTPLUG_QUIET_MS 200u
#define HOTPLUG_LONGEST_MS 2000u

struct hotplug;

/*
 * A root that is not the real one has no events: its watcher only reports hotplug_trigger(). -errno
 * when the socket cannot be had; the caller may go on without.
 */
int hotplug_new(struct loop *loop, const struct fs_root *root, void (*fn)(void *arg), void *arg,
		struct hotplug **ret, struct err *err);
/* The same on a datagram socket of the caller's that carries uevents, the watcher's from then on
 * (also on failure); -1: none. */
int hotplug_new_on(struct loop *loop, int fd, void (*fn)(void *arg), void *arg,
		   struct hotplug **ret, struct err *err);
struct hotplug *hotplug_free(struct hotplug *h); /* NULL is fine; returns NULL */
/* As if an event had come: for simulations, and for SIGHUP. */
void hotplug_trigger(struct hotplug *h);

/* Is this a uevent (as the kernel sends it: NUL-separated) about a CPU, a memory block or a node
 * coming or going? */
bool hotplug_event_matters(const char *msg, size_t len);

#endif
