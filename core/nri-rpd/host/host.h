/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core/nri-rpd/host: everything between the daemon and code by other authors.
 *
 *   note         facts that a module's file states about itself, read without running any of it
 *   loader       finding a module, checking file and note, dlopen, checking its struct; names and
 *                schemas copied to host memory
 *   breadcrumb   module call that is running, in memory that outlives the process; deaths and
 *                quarantine of modules
 *   crash_marks  marks in the breadcrumb that a crash or exit() was the doing of the process, not
 *                of a SIGKILL from outside
 *   former_settings  previous contents of files of the machine that modules have set, for the next
 *                process
 *   watchdog     ends the process when one module call takes longer than the runtime would wait
 *   trial        a function in a forked child, under limits; its outcome becomes one sentence
 *
 * The steps of loading a module, and the reasons to refuse it at each:
 *
 *   loader_find  directories, names, owners, modes
 *                refused: not found, or another user could have written it
 *   note_read    ELF headers, note, dynamic section
 *                refused: other major, constructors, text relocations, …
 *   crumb        three deaths in ten minutes
 *                refused: quarantined, until cleared or another build is installed
 *   dlopen       under a breadcrumb; the first foreign code
 *                refused: missing symbols; a death here is the module's
 *   loader_open  struct against note, image against file
 *                refused: name, kinds or build differ
 *
 * Rules for every call into a module: crumb_enter before, crumb_leave after; on the loop's thread
 * between watchdog_begin and watchdog_end; results are copied under a limit or read through the
 * size prefix. A module stays loaded for the life of the process. Its file may be replaced at any
 * time; the next start loads the new one.
 *
 * A trial child starts with crumb and watchdog detached: a death there is reported and does not
 * count against the module.
 */
#pragma once

#include "core/nri-rpd/host/breadcrumb.h"
#include "core/nri-rpd/host/loader.h"
#include "core/nri-rpd/host/note.h"
#include "core/nri-rpd/host/trial.h"
#include "core/nri-rpd/host/watchdog.h"
