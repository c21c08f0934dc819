/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core/nri-rpd/host: everything between the daemon and code that somebody else wrote.
 *
 *   note      what a file says about itself, read from its bytes: nothing of it runs
 *   loader    finding a module, checking file and note, dlopen, checking its struct; names and
 *             schemas copied to host memory
 *   crumb     which module is being called, in memory that outlives the process; who died where,
 *             who is quarantined
 *   ends      notes in the crumb that a crash or exit() was the process's own doing, and nobody's
 *             SIGKILL
 *   found     what was in files of the machine before modules set them, for the process after this
 *             one
 *   watchdog  ends the process when one module call takes longer than the runtime would wait
 *   trial     a function in a forked child, under limits; whatever happens to it becomes one
 *             sentence
 *
 * The way of a module into the process, and where it stops when something is wrong:
 *
 *   loader_find  directories, names, owners, modes
 *                refused: not found, or somebody else could have written it
 *   note_read    ELF headers, note, dynamic section
 *                refused: other major, constructors, text relocations, …
 *   crumb        three deaths in ten minutes
 *                refused: quarantined, until cleared or another build comes
 *   dlopen       under a breadcrumb; the first foreign code
 *                refused: missing symbols; a death here is the module's
 *   loader_open  struct against note, image against file
 *                refused: name, kinds or build differ
 *
 * Rules that hold for every call into a module, wherever it is made: crumb_enter before,
 * crumb_leave after; on the loop's thread between watchdog_begin and watchdog_end; what comes back
 * is copied under a limit or read through the size prefix. A module stays loaded for the life of
 * the process: its file may be replaced at any time, the next start takes the new one.
 *
 * A trial child starts with crumb and watchdog detached: what dies there does not count against the
 * module, it is only reported.
 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include "core/nri-rpd/host/breadcrumb.h"
#include "core/nri-rpd/host/loader.h"
#include "core/nri-rpd/host/note.h"
#include "core/nri-rpd/host/trial.h"
#include "core/nri-rpd/host/watchdog.h"

#endif
