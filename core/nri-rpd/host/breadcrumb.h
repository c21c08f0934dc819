/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The breadcrumb: which module function is running, written to a shared file mapping, so that the
 * next process knows where this one died. Writing it is a few stores, no system call.
 *
 * A process that ends inside a call leaves the crumb set. When it crashed, called exit() or hung,
 * that is a death of the module (ends.h and the watchdog say so before the end). One that was
 * killed without a word probably only stood in the way of somebody's SIGKILL: it counts when one
 * life after the other ends so in the same call, CRUMB_KILLS times. Deaths of other boots are kept
 * in the history and do not count (it may have been the power).
 *
 * A module can also kill the process between its calls: by a thread of its own, by memory that it
 * has overwritten, by descriptors that it has closed. A crash in the module's code is its death, a
 * lost descriptor that of the call after which it is missing. For any other crash within
 * CRUMB_SUSPECT_MS of a call each module in use is a suspect: it counts as a death of each.
 *
 * When both lanes are set the loop's
 * is blamed: its calls take microseconds, those of the worker may take long, so that the worker is
 * likely to be only a bystander.
 *
 * The file belongs on a tmpfs that outlives the service (/run): on a disk, a store may have to wait
 * for the file system's journal.
 */
#ifndef HOST_CRUMB_H
#define HOST_CRUMB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nri-rp/module.h>

#include "core/nri-rpd/host/note.h"
#include "core/lib/util/err.h"

#define CRUMB_HISTORY_MAX 64u
#define CRUMB_MODULES_MAX 64u
#define CRUMB_OBJECT_MAX 80u /* longer texts are cut */
#define CRUMB_DEATHS 3u /* so many … */
#define CRUMB_WINDOW_MS (10u * 60 * 1000) /* … within this: quarantine */
#define CRUMB_KILLS 5u /* in a row, to count as deaths */
/* A process that was killed so long after the call began hung in it, if CRUMB_DEATHS in a row end
 * so. The watchdog's kill comes later than this. */
#define CRUMB_STUCK_MS 3000u
/* A crash outside of any module so soon after a call counts against the modules in use. */
#define CRUMB_SUSPECT_MS 10000u
#define CRUMB_USED_MAX 16u /* modules in use */

/* The thread that calls a module: the loop's or the worker's. */
enum crumb_lane { CRUMB_LOOP, CRUMB_WORKER, CRUMB_N_LANES };

/* What is called. The numbers are in the file: append only. */
enum crumb_call {
	CRUMB_NONE,
	CRUMB_LOAD, /* dlopen: relocations, constructors */
	CRUMB_CREATE,
	CRUMB_DESTROY,
	CRUMB_SERVICE,
	CRUMB_PREPARE,
	CRUMB_COMMIT,
	CRUMB_ABORT,
	CRUMB_SYNC,
	CRUMB_ALLOCATE,
	CRUMB_UPDATE,
	CRUMB_RELEASE,
	CRUMB_EVENT,
	CRUMB_ROLLED_BACK,
	CRUMB_ZONES,
	CRUMB_METRICS,
	CRUMB_STATE_SAVE,
	CRUMB_STATE_LOAD,
	CRUMB_START,
	CRUMB_STOP,
	CRUMB_PRE_CREATE,
	CRUMB_POST_START,
	CRUMB_POST_UPDATE,
	CRUMB_POST_STOP,
	CRUMB_WORK, /* a job on the worker's thread */
	CRUMB_WORK_DONE, /* its done() */
	CRUMB_EXPLAIN,
	CRUMB_CALCULATE,
	CRUMB_ADMIT,
	CRUMB_POD_REMOVED,
	/* it calls the host on a thread that is not the main one; the object is the service */
	CRUMB_THREAD,
	CRUMB_OWN_THREAD, /* code of the module crashed while no call of it was running */
	CRUMB_SUSPECT, /* the process crashed outside of any module, which was in use */
	CRUMB_N_CALLS
};
const char *crumb_call_name(unsigned call); /* "allocate"; "?" for numbers of a newer host */

/* What is written: one in the file, one in the shared page of each trial. */
struct crumb_slot {
	/* call, and a count of calls above it; the call is 0 between calls. Written last on
	 * entry. */
	uint64_t state;
	uint64_t entered_ms; /* CLOCK_BOOTTIME at the last entry; 0: never */
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
	/* A module whose code crashed without being called by a lane. Blamed before the lanes. */
	struct crumb_slot culprit;
	uint32_t cause; /* enum crumb_cause of the death to come, written just before */
	uint32_t pad;
	uint64_t died_ms; /* CLOCK_BOOTTIME when cause was written */
	struct crumb_used used[CRUMB_USED_MAX];
};

enum crumb_cause {
	CRUMB_KILLED, /* nothing was written before the end */
	CRUMB_HUNG,
	CRUMB_DIED, /* a crash, or exit() */
	CRUMB_ROBBED, /* the module closed or replaced descriptors of the process */
	CRUMB_N_CAUSES
};
/* What the process did, for a sentence and for a program: "crashed" and "died". */
const char *crumb_cause_text(unsigned cause);
const char *crumb_cause_name(unsigned cause);

struct crumb_death {
	char module[RP_NAME_MAX];
	char object[CRUMB_OBJECT_MAX]; /* "" when the call was about nothing in particular */
	uint32_t call; /* enum crumb_call */
	uint32_t cause; /* enum crumb_cause */
	uint32_t pid;
	uint32_t counted; /* 0: held against nobody */
	uint32_t life; /* of the file's processes, counted from 1 */
	uint32_t stuck; /* killed CRUMB_STUCK_MS or more after the call began */
	uint64_t wall_ns; /* when it was found, which is at the next start */
	uint64_t boot_ms; /* the same on CLOCK_BOOTTIME */
	char boot_id[40]; /* of the boot it happened in */
	struct build_id build_id; /* of the module then, if it was known */
};

struct crumb;

/*
 * Opens or makes the file and takes its lock. Finds out about the last process. -EBUSY: another
 * process has it. A file that is damaged or not ours is renamed to PATH.bad and a new one is made:
 * crumb_message() says so.
 */
int crumb_open(const char *path, struct crumb **ret, struct err *err);
/* The same at a given time, for tests. */
struct crumb_now {
	char boot_id[40];
	uint64_t wall_ns, boot_ms;
};
int crumb_open_at(const char *path, const struct crumb_now *now, struct crumb **ret,
		  struct err *err);
/* In memory, for a process that only tries things in children: these can tell where they died, but
 * nothing is remembered. NULL: no memory. */
struct crumb *crumb_private(void);
/* A proper end: clears the crumb. Returns NULL; NULL is fine. */
struct crumb *crumb_close(struct crumb *c);
/* What opening found, a sentence for the log ("the last nri-rpd (pid 12) died inside module x,
 * allocate of …"); NULL: nothing. */
const char *crumb_message(const struct crumb *c);
/* The death that opening found; NULL: none. */
const struct crumb_death *crumb_last(const struct crumb *c);
/* i counts from the latest, 0, on; NULL past the end. Valid until the crumb is closed or
 * cleared. */
const struct crumb_death *crumb_history(const struct crumb *c, unsigned i);

/* Around every call into a module, without nesting within a lane. All take a NULL c. `module` is a
 * module's name in an array of RP_NAME_MAX bytes, as struct module has it; object may be NULL. */
void crumb_enter(struct crumb *c, enum crumb_lane lane, const char module[RP_NAME_MAX],
		 enum crumb_call call, const char *object);
void crumb_leave(struct crumb *c, enum crumb_lane lane);
/* Before crumb_leave(): returns true if the module has closed or replaced the crumb's descriptor,
 * and probably others. The process cannot go on then; the death is written down. */
bool crumb_robbed(struct crumb *c);

/* An instance of the module exists from now on, or no longer. */
void crumb_use(struct crumb *c, const char *module, bool on);
/* Where the module's code is in memory, for crumb_blame(). */
void crumb_image(struct crumb *c, const char *module, uintptr_t start, uintptr_t end);
/* In a signal handler: the process dies of its own doing, at this instruction; 0: not known. */
void crumb_blame(struct crumb *c, uintptr_t instruction);
/* Marks the end of a process that cannot go on. crumb_close() then leaves the file for the next
 * process to judge. */
void crumb_failed(struct crumb *c);

/* The module's file was read: deaths and quarantine of another build are forgotten. */
void crumb_seen(struct crumb *c, const char *name, const struct build_id *build_id);
/* Three deaths within ten minutes, since it was cleared and since this build was seen. Stays so
 * over restarts and boots. */
bool crumb_quarantined(const struct crumb *c, const char *name);
/* Deaths that count towards quarantine now. */
unsigned crumb_deaths(const struct crumb *c, const char *name);
/* An operator's word that it may run again; NULL: all. -ENOENT: nothing is held against it. */
int crumb_clear(struct crumb *c, const char *name);

/* In a forked child: lets go of the file; records become a private copy, calls are written to
 * `live` (NULL: nowhere). -ENOMEM. */
int crumb_child(struct crumb *c, struct crumb_live *live);
/* The call that is running according to a live part, blaming as above; NULL: none. */
const struct crumb_slot *crumb_running(const struct crumb_live *live);
static inline unsigned crumb_slot_call(const struct crumb_slot *s)
{
	return (unsigned)(s->state & 0xff);
}
/* For the watchdog: what is being written to now. NULL when nothing is. */
struct crumb_live *crumb_live(struct crumb *c);

#endif
