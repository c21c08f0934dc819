/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the process ends. A crash and exit() write into the crumb that the call which runs died of
 * itself; what ends a process without a word (SIGKILL by an operator, a test or the kernel's OOM
 * killer) leaves no such mark, and is not held against the module.
 */
#ifndef HOST_ENDS_H
#define HOST_ENDS_H

struct crumb;

/* From now on, in the calling thread with a stack of its own for it (a stack that overflowed is one
 * of the crashes). NULL: no longer. A process has one crumb; a forked child's follows
 * crumb_child(). */
void ends_note(struct crumb *c);

#endif
