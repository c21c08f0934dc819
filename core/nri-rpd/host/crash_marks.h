/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks in the breadcrumb how the process ends. A crash and exit() are recorded as the doing of the
 * running call. A process that is killed (SIGKILL by an operator, a test or the kernel's OOM
 * killer) leaves no such mark, and its end does not count against the module.
 */
#pragma once

struct crumb;

/* Installs the handlers in the calling thread, on a separate signal stack, because a stack overflow
 * is one of the crashes. NULL: removes them. A process has one crumb; in a forked child the
 * handlers use the crumb that crumb_child() set up. */
void ends_note(struct crumb *c);
