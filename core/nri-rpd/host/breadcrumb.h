/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The breadcrumb records in a shared file mapping which module function is running, so that the
 * next process knows where this one died. Entering a call is a few stores and no system call.
 *
 * A process that ends inside a call leaves the crumb set. If it crashed, called exit() or hung,
 * that is a death of the module; crash_marks.c and the watchdog mark it before the end. A process
 * that was killed without a mark was probably killed by an operator's SIGKILL. That counts as a
 * death of the module only if CRUMB_KILLS processes in a row end so in the same call. Deaths of
 * earlier boots stay in the history and do not count, because a power failure may be the cause.
 *
 * A module can also kill the process between its calls: by a thread that it started, by memory that
 * it has overwritten, by descriptors that it has closed. A crash in the module's code is a death of
 * the module. A lost descriptor is blamed on the call after which it is missing. After any other
 * crash within CRUMB_SUSPECT_MS of a call, each module in use is a suspect, and the crash counts as
 * a death of each.
 *
 * When both lanes are set, the loop's lane is blamed: its calls take microseconds, while a call of
 * the worker may take long and is likely to be a bystander.
 *
 * The file belongs on a tmpfs that outlives the service (/run): on a disk, a store may have to wait
 * for the file system's journal.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nri-rp/module.h>

#include "core/nri-rpd/host/note.h"
#include "core/lib/util/err.h"

#define CRUMB_HISTORY_MAX 64u
#define CRUMB_MODULES_MAX 64u
#define CRUMB_OBJECT_MAX 80u /* bytes of an object's name; longer names are cut */
#define CRUMB_DEATHS 3u /* number of deaths within CRUMB_WINDOW_MS that leads to quarantine */
/* period in which CRUMB_DEATHS deaths lead to quarantine */
#define CRUMB_WINDOW_MS (10u * 60 * 1000)
#define CRUMB_KILLS 5u /* number of consecutive kills that are counted as deaths */
/* A process that was killed this long after the call began is treated as hung in the call, if
 * CRUMB_DEATHS processes in a row end so. The watchdog's kill comes later than this. */
#define CRUMB_STUCK_MS 3000u
/* A crash outside of any module this soon after a call is counted as a death of every module in
 * use. */
#define CRUMB_SUSPECT_MS 10000u
#define CRUMB_USED_MAX 16u /* largest number of modules in use that the file can name */

/* Thread that calls a module: the loop's or the worker's. */
enum crumb_lane { CRUMB_LOOP, CRUMB_WORKER, CRUMB_N_LANES };

/* Functions being called, with their names in messages. The file contains these numbers: append
 * only. */
#define CRUMB_CALLS(X)                                                                             \
	X(CRUMB_NONE, "nothing")                                                                   \
	X(CRUMB_LOAD, "load") /* dlopen: relocations, constructors */                              \
	X(CRUMB_CREATE, "create")                                                                  \
	X(CRUMB_DESTROY, "destroy")                                                                \
	X(CRUMB_SERVICE, "service")                                                                \
	X(CRUMB_PREPARE, "prepare")                                                                \
	X(CRUMB_COMMIT, "commit")                                                                  \
	X(CRUMB_ABORT, "abort")                                                                    \
	X(CRUMB_SYNC, "sync")                                                                      \
	X(CRUMB_ALLOCATE, "allocate")                                                              \
	X(CRUMB_UPDATE, "update")                                                                  \
	X(CRUMB_RELEASE, "release")                                                                \
	X(CRUMB_EVENT, "event")                                                                    \
	X(CRUMB_ROLLED_BACK, "rolled_back")                                                        \
	X(CRUMB_ZONES, "zones")                                                                    \
	X(CRUMB_METRICS, "collect")                                                                \
	X(CRUMB_STATE_SAVE, "save")                                                                \
	X(CRUMB_STATE_LOAD, "load of its state")                                                   \
	X(CRUMB_START, "start")                                                                    \
	X(CRUMB_STOP, "stop")                                                                      \
	X(CRUMB_PRE_CREATE, "pre_create")                                                          \
	X(CRUMB_POST_START, "post_start")                                                          \
	X(CRUMB_POST_UPDATE, "post_update")                                                        \
	X(CRUMB_POST_STOP, "post_stop")                                                            \
	X(CRUMB_WORK, "a job on the worker")                                                       \
	X(CRUMB_WORK_DONE, "the result of a job") /* done() of a job */                            \
	X(CRUMB_EXPLAIN, "explain")                                                                \
	X(CRUMB_CALCULATE, "calculate")                                                            \
	X(CRUMB_ADMIT, "admit_pod")                                                                \
	X(CRUMB_POD_REMOVED, "pod_removed")                                                        \
	/* call on a thread other than the main one; the object is the service */                  \
	X(CRUMB_THREAD, "a call of the host on another thread")                                    \
	/* code of the module crashed while no call of the module was running */                   \
	X(CRUMB_OWN_THREAD, "its code between two calls")                                          \
	/* the process crashed outside of any module while this module was in use */               \
	X(CRUMB_SUSPECT, "no call, but it was active")
#define CRUMB_CALL(call, name) call,
enum crumb_call { CRUMB_CALLS(CRUMB_CALL) CRUMB_N_CALLS };
const char *crumb_call_name(unsigned call); /* "allocate"; "?" for numbers of a newer host */

/* Call that is running in one lane. The file has one per lane, and so has the shared page of each
 * trial. */
struct crumb_slot {
	/* enum crumb_call in the low byte, a count of calls above it; the call is 0 between calls.
	 * Written last on entry. */
	uint64_t state;
	uint64_t entered_ms; /* CLOCK_BOOTTIME at the last entry into a call; 0: never */
	char module[RP_NAME_MAX];
	char object[CRUMB_OBJECT_MAX];
};
struct crumb_used {
	char module[RP_NAME_MAX];
	uint32_t n; /* instances; 0: the entry is free */
	uint32_t pad;
};
struct crumb_live {
	struct crumb_slot lane[CRUMB_N_LANES];
	/* Module whose code crashed in a thread without a lane, and to which the death is
	 * attributed. Without it the death is attributed to the modules of the lanes. */
	struct crumb_slot culprit;
	uint32_t cause; /* enum crumb_cause of the death, written just before it */
	uint32_t pad;
	uint64_t died_ms; /* CLOCK_BOOTTIME at which the cause of death was written */
	struct crumb_used used[CRUMB_USED_MAX];
};

enum crumb_cause {
	CRUMB_KILLED, /* no mark was written before the end */
	CRUMB_HUNG,
	CRUMB_DIED, /* crash or exit() */
	CRUMB_ROBBED, /* the module closed or replaced descriptors of the process */
	CRUMB_N_CAUSES
};
/* Returns the cause of a death for a sentence ("crashed") and for a program ("died"). */
const char *crumb_cause_text(unsigned cause);
const char *crumb_cause_name(unsigned cause);

struct crumb_death {
	char module[RP_NAME_MAX];
	/* name of the pod or container that the call was about; "": none */
	char object[CRUMB_OBJECT_MAX];
	uint32_t call; /* call that was running, enum crumb_call */
	uint32_t cause; /* cause of the death, enum crumb_cause */
	uint32_t pid;
	uint32_t counted; /* 1: the death is attributed to the module; 0: it is not */
	uint32_t life; /* number of the process that died, counted from 1 in this file */
	uint32_t stuck; /* 1: killed CRUMB_STUCK_MS or more after the call began */
	/* wall-clock time at which the death was found, which is at the next start */
	uint64_t wall_ns;
	uint64_t boot_ms; /* CLOCK_BOOTTIME at which the death was found */
	char boot_id[40]; /* boot in which the process died */
	struct build_id build_id; /* build of the module that died, if known */
};

struct crumb;

/*
 * Opens or creates the file, takes its lock and evaluates what the previous process left. -EBUSY:
 * another process has the lock. A file that is damaged or in another format is renamed to PATH.bad
 * and replaced by a new one; crumb_message() then reports it.
 */
int crumb_open(const char *path, struct crumb **ret, struct err *err);
/* Boot and time that crumb_open_at() uses in place of the present ones, for tests. */
struct crumb_now {
	char boot_id[40];
	uint64_t wall_ns, boot_ms;
};
int crumb_open_at(const char *path, const struct crumb_now *now, struct crumb **ret,
		  struct err *err);
/* Returns a crumb in memory, for a process that only runs modules in child processes: it reports
 * where a child died and remembers no deaths. NULL: no memory. */
struct crumb *crumb_private(void);
/* Clears the crumb at an orderly end and closes the file. Returns NULL; NULL is fine. */
struct crumb *crumb_close(struct crumb *c);
/* Returns a sentence for the log about what opening found ("the last nri-rpd (pid 12) died inside
 * module x, allocate of …"); NULL: no finding. */
const char *crumb_message(const struct crumb *c);
/* Returns the death that opening found; NULL: none. */
const struct crumb_death *crumb_last(const struct crumb *c);
/* Returns the death number i, counted from the latest (0) backwards; NULL past the end. Valid until
 * the crumb is closed or cleared. */
const struct crumb_death *crumb_history(const struct crumb *c, unsigned i);

/* Marks the begin and end of every call into a module. Calls do not nest within a lane. All take a
 * NULL c. `module` is a name in an array of RP_NAME_MAX bytes, as in struct module; object may be
 * NULL. */
void crumb_enter(struct crumb *c, enum crumb_lane lane, const char module[RP_NAME_MAX],
		 enum crumb_call call, const char *object);
void crumb_leave(struct crumb *c, enum crumb_lane lane);
/* Returns true if the module has closed or replaced the crumb's descriptor, and probably others.
 * The death is recorded then, and the process has to end. Call it before crumb_leave(). */
bool crumb_robbed(struct crumb *c);

/* Records that an instance of the module was created (`on`) or destroyed. */
void crumb_use(struct crumb *c, const char *module, bool on);
/* Records where the module's code is in memory, for crumb_blame(). */
void crumb_image(struct crumb *c, const char *module, uintptr_t start, uintptr_t end);
/* Marks in a signal handler that the process is crashing at this instruction; 0: unknown. */
void crumb_blame(struct crumb *c, uintptr_t instruction);
/* Marks the end of a process that cannot continue. crumb_close() then leaves the file for the next
 * process to evaluate. */
void crumb_failed(struct crumb *c);

/* Reports that the module's file was read: deaths and quarantine of another build are forgotten. */
void crumb_seen(struct crumb *c, const char *name, const struct build_id *build_id);
/* Returns true if the module is quarantined: CRUMB_DEATHS deaths within CRUMB_WINDOW_MS since it
 * was cleared and since this build was seen. Quarantine outlasts restarts and boots. */
bool crumb_quarantined(const struct crumb *c, const char *name);
/* Returns the number of deaths that count towards quarantine now. */
unsigned crumb_deaths(const struct crumb *c, const char *name);
/* Clears deaths and quarantine of the module on an operator's request; NULL: of all modules.
 * -ENOENT: there are none. */
int crumb_clear(struct crumb *c, const char *name);

/* Detaches a forked child from the file. The records become a private copy; calls are written to
 * `live` (NULL: nowhere). Error: -ENOMEM. */
int crumb_child(struct crumb *c, struct crumb_live *live);
/* Returns the running call of a live part, chosen by the rules of blame above; NULL: none. */
const struct crumb_slot *crumb_running(const struct crumb_live *live);
static inline unsigned crumb_slot_call(const struct crumb_slot *s)
{
	return (unsigned)(s->state & 0xff);
}
/* Returns the live part that calls are written to, for the watchdog; NULL: calls are not
 * written. */
struct crumb_live *crumb_live(struct crumb *c);
