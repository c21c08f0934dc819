/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The breadcrumb file is one struct crumb_file, mapped shared. Its live part changes with every
 * call and is never synced, because it has to survive the process, not the machine. Its records
 * change when a death is found or when a module is seen or cleared; they carry a checksum.
 */
#include "core/nri-rpd/host/breadcrumb.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define CRUMB_MAGIC "nrirpcrb"
#define CRUMB_VERSION 3u
#define CRUMB_MESSAGE_MAX 512
#define CRUMB_OPEN_TRIES 8

struct crumb_known {
	char module[RP_NAME_MAX]; /* name of the module; "": the row is free */
	struct build_id build_id;
	uint32_t quarantined;
};

struct crumb_records {
	/* deaths ever recorded; the latest is history[(n_deaths - 1) % CRUMB_HISTORY_MAX] */
	uint32_t n_deaths;
	uint32_t pad;
	struct crumb_known known[CRUMB_MODULES_MAX];
	struct crumb_death history[CRUMB_HISTORY_MAX];
};

struct crumb_file {
	char magic[8];
	uint32_t version, size;
	char boot_id[40];
	uint32_t pid, life;
	struct crumb_live live;
	uint64_t checksum; /* checksum of the records */
	struct crumb_records records;
};

/* Address range of a module's code in this process. */
struct crumb_code {
	char module[RP_NAME_MAX];
	uintptr_t start, end;
};

struct crumb {
	/* records of the running calls, in `file`; NULL: calls are not recorded */
	struct crumb_live *live;
	struct crumb_file *file; /* the mapping; in a child process a copy on the heap */
	bool child;
	bool died; /* the latest death in the history was found by this opening */
	bool failed; /* crumb_failed() was called */
	int fd; /* file descriptor; holds the lock of the file */
	int fd_flags; /* flags of the descriptor; no other file of the process has all of them */
	struct crumb_code code[CRUMB_MODULES_MAX];
	unsigned n_code;
	struct crumb_now now;
	char message[CRUMB_MESSAGE_MAX];
};

const char *crumb_call_name(unsigned call)
{
#define CALL_NAME(call, name) name,
	static const char *const names[] = {CRUMB_CALLS(CALL_NAME)};
	return call < CRUMB_N_CALLS ? names[call] : "?";
}

const char *crumb_cause_text(unsigned cause)
{
	static const char *const texts[CRUMB_N_CAUSES] = {"was killed", "hung", "died",
							  "lost its descriptors"};
	return cause < CRUMB_N_CAUSES ? texts[cause] : "ended";
}

const char *crumb_cause_name(unsigned cause)
{
	static const char *const names[CRUMB_N_CAUSES] = {"killed", "hung", "died", "robbed"};
	return cause < CRUMB_N_CAUSES ? names[cause] : "?";
}

static uint64_t crumb_boot_ms(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- calls ----------------------------------------------------------------------------------- */

void crumb_enter(struct crumb *c, enum crumb_lane lane, const char module[RP_NAME_MAX],
		 enum crumb_call call, const char *object)
{
	assert(call > CRUMB_NONE && call < CRUMB_N_CALLS && lane < CRUMB_N_LANES);
	if (!c || !c->live)
		return;
	struct crumb_slot *s = &c->live->lane[lane];
	size_t n = object ? strnlen(object, CRUMB_OBJECT_MAX - 1) : 0;
	memcpy(s->module, module, RP_NAME_MAX);
	if (n)
		memcpy(s->object, object, n);
	s->object[n] = '\0';
	s->entered_ms = crumb_boot_ms();
	/* Store the call last: the next process and the watchdog's handler trust the other fields
	 * once the call is set. */
	__atomic_store_n(&s->state, (s->state | 0xff) + 1 + call, __ATOMIC_RELEASE);
}

void crumb_leave(struct crumb *c, enum crumb_lane lane)
{
	if (!c || !c->live)
		return;
	struct crumb_slot *s = &c->live->lane[lane];
	__atomic_store_n(&s->state, s->state & ~(uint64_t)0xff, __ATOMIC_RELEASE);
}

const struct crumb_slot *crumb_running(const struct crumb_live *live)
{
	if (live && crumb_slot_call(&live->culprit) != CRUMB_NONE)
		return &live->culprit;
	for (unsigned lane = 0; live && lane < CRUMB_N_LANES; lane++)
		if (crumb_slot_call(&live->lane[lane]) != CRUMB_NONE)
			return &live->lane[lane];
	return NULL;
}

struct crumb_live *crumb_live(struct crumb *c)
{
	return c ? c->live : NULL;
}

/* ---- between calls --------------------------------------------------------------------------- */

bool crumb_robbed(struct crumb *c)
{
	/* F_GETFL fails only for a closed descriptor, and takes half the time of fstat() */
	if (!c || c->child || !c->live || fcntl(c->fd, F_GETFL) == c->fd_flags)
		return false;
	c->live->cause = CRUMB_ROBBED;
	c->live->died_ms = crumb_boot_ms();
	return true;
}

void crumb_use(struct crumb *c, const char *module, bool on)
{
	struct crumb_used *found = NULL, *room = NULL;
	for (unsigned i = 0; c && c->live && i < CRUMB_USED_MAX; i++) {
		struct crumb_used *u = &c->live->used[i];
		if (u->n && str_eq(u->module, module))
			found = u;
		else if (!u->n && !room)
			room = u;
	}
	if (found) {
		found->n += on ? 1 : -1u;
	} else if (on && room) {
		memset(room, 0, sizeof *room);
		(void)strncpy(room->module, module, RP_NAME_MAX - 1);
		room->n = 1;
	}
}

void crumb_image(struct crumb *c, const char *module, uintptr_t start, uintptr_t end)
{
	if (!c || c->n_code == CRUMB_MODULES_MAX)
		return;
	for (unsigned i = 0; i < c->n_code; i++)
		if (c->code[i].start == start && str_eq(c->code[i].module, module))
			return;
	struct crumb_code *code = &c->code[c->n_code];
	(void)strncpy(code->module, module, RP_NAME_MAX - 1);
	code->start = start;
	code->end = end;
	c->n_code++;
}

void crumb_blame(struct crumb *c, uintptr_t instruction)
{
	struct crumb_live *live = crumb_live(c);
	if (!live)
		return;
	const struct crumb_slot *running = crumb_running(live);
	for (unsigned i = 0; instruction && i < c->n_code; i++) {
		const struct crumb_code *code = &c->code[i];
		if (instruction < code->start || instruction >= code->end ||
		    (running && str_eq(running->module, code->module)))
			continue;
		memcpy(live->culprit.module, code->module, RP_NAME_MAX);
		live->culprit.object[0] = '\0';
		live->culprit.state = CRUMB_OWN_THREAD;
	}
	live->died_ms = crumb_boot_ms();
	live->cause = CRUMB_DIED;
}

void crumb_failed(struct crumb *c)
{
	if (!c)
		return;
	c->failed = true;
	crumb_blame(c, 0);
}

/* ---- records --------------------------------------------------------------------------------- */

static void breadcrumb_seal(struct crumb *c)
{
	c->file->checksum = note_hash(NOTE_HASH_INIT, &c->file->records, sizeof c->file->records);
}

static struct crumb_known *find_known(const struct crumb *c, const char *name)
{
	for (unsigned i = 0; i < CRUMB_MODULES_MAX; i++)
		if (str_eq(c->file->records.known[i].module, name))
			return &c->file->records.known[i];
	return NULL;
}

static unsigned n_history(const struct crumb *c)
{
	uint32_t n = c->file->records.n_deaths;
	return n < CRUMB_HISTORY_MAX ? n : CRUMB_HISTORY_MAX;
}

static struct crumb_death *death_at(const struct crumb *c, unsigned i)
{
	struct crumb_records *r = &c->file->records;
	return &r->history[(r->n_deaths - 1 - i) % CRUMB_HISTORY_MAX];
}

const struct crumb_death *crumb_history(const struct crumb *c, unsigned i)
{
	return c && i < n_history(c) ? death_at(c, i) : NULL;
}

const struct crumb_death *crumb_last(const struct crumb *c)
{
	return c && c->died ? death_at(c, 0) : NULL;
}

const char *crumb_message(const struct crumb *c)
{
	return c && c->message[0] ? c->message : NULL;
}

unsigned crumb_deaths(const struct crumb *c, const char *name)
{
	unsigned n = 0;
	for (unsigned i = 0; c && i < n_history(c); i++) {
		const struct crumb_death *d = death_at(c, i);
		n += d->counted && str_eq(d->module, name) && str_eq(d->boot_id, c->now.boot_id) &&
		     c->now.boot_ms - d->boot_ms <= CRUMB_WINDOW_MS;
	}
	return n;
}

bool crumb_quarantined(const struct crumb *c, const char *name)
{
	const struct crumb_known *k = c ? find_known(c, name) : NULL;
	return k && k->quarantined;
}

/* Returns the row of module `name`, or makes one. The table is larger than the number of modules a
 * process loads, so a row that is not quarantined can be reused unless all are quarantined. */
static struct crumb_known *make_known(struct crumb *c, const char *name)
{
	struct crumb_known *k = find_known(c, name);
	if (k)
		return k;
	k = find_known(c, "");
	for (unsigned i = 0; !k && i < CRUMB_MODULES_MAX; i++)
		if (!c->file->records.known[i].quarantined)
			k = &c->file->records.known[i];
	if (!k)
		k = &c->file->records.known[0];
	memset(k, 0, sizeof *k);
	(void)strncpy(k->module, name, RP_NAME_MAX - 1);
	return k;
}

static bool breadcrumb_forgive(struct crumb *c, const char *name)
{
	bool any = false;
	for (unsigned i = 0; i < n_history(c); i++) {
		struct crumb_death *d = death_at(c, i);
		if (d->counted && (!name || str_eq(d->module, name))) {
			d->counted = 0;
			any = true;
		}
	}
	for (unsigned i = 0; i < CRUMB_MODULES_MAX; i++) {
		struct crumb_known *k = &c->file->records.known[i];
		if (k->quarantined && (!name || str_eq(k->module, name))) {
			k->quarantined = 0;
			any = true;
		}
	}
	return any;
}

void crumb_seen(struct crumb *c, const char *name, const struct build_id *build_id)
{
	if (!c)
		return;
	struct crumb_known *k = find_known(c, name);
	if (k && build_id_equal(&k->build_id, build_id))
		return;
	if (k)
		(void)breadcrumb_forgive(c, name);
	make_known(c, name)->build_id = *build_id;
	breadcrumb_seal(c);
}

int crumb_clear(struct crumb *c, const char *name)
{
	if (!c || !breadcrumb_forgive(c, name))
		return -ENOENT;
	breadcrumb_seal(c);
	return 0;
}

/* ---- findings about the previous process ----------------------------------------------------- */

/* Makes a NUL-terminated printable text of bytes that a dying module may have overwritten. */
static void make_text(char *s, size_t size)
{
	s[size - 1] = '\0';
	for (; *s; s++)
		if (*s < 0x20 || *s > 0x7e || *s == '"')
			*s = '?';
}

static void describe_death(struct crumb *c, const struct crumb_death *d)
{
	unsigned n = crumb_deaths(c, d->module);
	char object[CRUMB_OBJECT_MAX + 8] = "", count[160] = "";
	if (d->object[0])
		(void)snprintf(object, sizeof object, " of \"%s\"", d->object);
	if (!str_eq(d->boot_id, c->now.boot_id))
		(void)snprintf(count, sizeof count,
			       "; the machine was restarted meanwhile, so it is not counted");
	else if (!d->counted && d->stuck)
		(void)snprintf(count, sizeof count,
			       "; more than %u ms after the call began: it is counted if the next "
			       "processes end in the same way",
			       CRUMB_STUCK_MS);
	else if (!d->counted)
		(void)snprintf(count, sizeof count,
			       "; by another process or for lack of memory, so it is not counted");
	else if (crumb_quarantined(c, d->module))
		(void)snprintf(count, sizeof count,
			       "; the module is quarantined (%u crashes within ten minutes) until "
			       "it is cleared or another build is installed",
			       n);
	else
		(void)snprintf(count, sizeof count, "; %u of %u crashes within ten minutes", n,
			       CRUMB_DEATHS);
	if (d->call == CRUMB_SUSPECT)
		(void)snprintf(c->message, sizeof c->message,
			       "the previous process (pid %u) %s outside of any module, soon after "
			       "a call: each active module is suspected, including \"%s\"%s",
			       d->pid, crumb_cause_text(d->cause), d->module, count);
	else
		(void)snprintf(c->message, sizeof c->message,
			       "the previous process (pid %u) %s inside module \"%s\", in %s%s%s",
			       d->pid, crumb_cause_text(d->cause), d->module,
			       crumb_call_name(d->call), object, count);
}

/* Returns true if the last CRUMB_DEATHS processes in a row were killed in the same module long
 * after the call began: the module hangs in a way that the handler of this process cannot end. */
static bool is_stuck_each_time(const struct crumb *c)
{
	const struct crumb_death *last = death_at(c, 0);
	if (n_history(c) < CRUMB_DEATHS)
		return false;
	for (unsigned i = 0; i < CRUMB_DEATHS; i++) {
		const struct crumb_death *d = death_at(c, i);
		if (!d->stuck || d->life != last->life - i || !str_eq(d->module, last->module) ||
		    !str_eq(d->boot_id, c->now.boot_id))
			return false;
	}
	return true;
}

/* Counts kills as deaths if enough processes in a row ended in the same way at the same place,
 * which is too many for a coincidence. */
static void count_kills(struct crumb *c)
{
	if (is_stuck_each_time(c))
		for (unsigned i = 0; i < CRUMB_DEATHS; i++)
			death_at(c, i)->counted = 1;
	const struct crumb_death *last = death_at(c, 0);
	if (last->cause != CRUMB_KILLED || n_history(c) < CRUMB_KILLS)
		return;
	for (unsigned i = 1; i < CRUMB_KILLS; i++) {
		const struct crumb_death *d = death_at(c, i);
		if (d->cause != CRUMB_KILLED || d->life != last->life - i ||
		    d->call != last->call || !str_eq(d->module, last->module) ||
		    !str_eq(d->object, last->object) || !str_eq(d->boot_id, last->boot_id))
			return;
	}
	for (unsigned i = 0; i < CRUMB_KILLS; i++)
		death_at(c, i)->counted = str_eq(last->boot_id, c->now.boot_id);
}

static void record_death(struct crumb *c, const struct crumb_slot *s)
{
	struct crumb_file *f = c->file;
	const struct crumb_known *k = find_known(c, s->module);
	struct crumb_death d = {
		.call = crumb_slot_call(s),
		.cause = f->live.cause < CRUMB_N_CAUSES ? f->live.cause : CRUMB_DIED,
		.pid = f->pid,
		.life = f->life,
		.wall_ns = c->now.wall_ns,
		.boot_ms = c->now.boot_ms,
	};
	d.stuck = d.cause == CRUMB_KILLED && s->entered_ms && c->now.boot_ms >= s->entered_ms &&
		  c->now.boot_ms - s->entered_ms >= CRUMB_STUCK_MS;
	memcpy(d.module, s->module, sizeof d.module);
	memcpy(d.object, s->object, sizeof d.object);
	memcpy(d.boot_id, f->boot_id, sizeof d.boot_id);
	if (k)
		d.build_id = k->build_id;
	f->records.n_deaths =
		f->records.n_deaths == UINT32_MAX ? CRUMB_HISTORY_MAX : f->records.n_deaths + 1;
	d.counted = d.cause != CRUMB_KILLED && str_eq(f->boot_id, c->now.boot_id);
	*death_at(c, 0) = d;
	c->died = true;
	count_kills(c);
	if (crumb_deaths(c, d.module) >= CRUMB_DEATHS)
		make_known(c, d.module)->quarantined = 1;
	describe_death(c, death_at(c, 0));
}

/* Records a death against every module in use if the previous process crashed outside of any module
 * soon after it had called one. An earlier call of a module may be the cause, and it is unknown
 * which module's. */
static void record_suspects(struct crumb *c)
{
	struct crumb_live *live = &c->file->live;
	uint64_t last_ms = 0;
	for (unsigned lane = 0; lane < CRUMB_N_LANES; lane++)
		if (live->lane[lane].entered_ms > last_ms)
			last_ms = live->lane[lane].entered_ms;
	if (live->cause == CRUMB_KILLED || !last_ms || live->died_ms < last_ms ||
	    live->died_ms - last_ms > CRUMB_SUSPECT_MS)
		return;
	for (unsigned i = 0; i < CRUMB_USED_MAX; i++) {
		struct crumb_slot s = {.state = CRUMB_SUSPECT};
		struct crumb_used *u = &live->used[i];
		make_text(u->module, RP_NAME_MAX);
		memcpy(s.module, u->module, RP_NAME_MAX);
		if (u->n && u->module[0])
			record_death(c, &s);
	}
}

/* Evaluates the records of the previous process and prepares the file for this process. */
static void take_over(struct crumb *c)
{
	struct crumb_file *f = c->file;
	for (unsigned lane = 0; lane < CRUMB_N_LANES; lane++) {
		make_text(f->live.lane[lane].module, RP_NAME_MAX);
		make_text(f->live.lane[lane].object, CRUMB_OBJECT_MAX);
	}
	make_text(f->live.culprit.module, RP_NAME_MAX);
	make_text(f->live.culprit.object, CRUMB_OBJECT_MAX);
	make_text(f->boot_id, sizeof f->boot_id);
	const struct crumb_slot *s = crumb_running(&f->live);
	if (s && s->module[0])
		record_death(c, s);
	else if (!s)
		record_suspects(c);
	memset(&f->live, 0, sizeof f->live);
	memcpy(f->boot_id, c->now.boot_id, sizeof f->boot_id);
	f->pid = (uint32_t)getpid();
	f->life++;
	breadcrumb_seal(c);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Returns the fault of the file's contents; NULL: none. */
static const char *find_fault(const struct crumb_file *f)
{
	if (memcmp(f->magic, CRUMB_MAGIC, sizeof f->magic) != 0)
		return "not a breadcrumb file";
	if (f->version != CRUMB_VERSION || f->size != sizeof *f)
		return "written by another version";
	if (f->checksum != note_hash(NOTE_HASH_INIT, &f->records, sizeof f->records))
		return "its records are damaged";
	for (unsigned i = 0; i < CRUMB_MODULES_MAX; i++)
		if (!memchr(f->records.known[i].module, 0, RP_NAME_MAX) ||
		    f->records.known[i].build_id.size > NOTE_BUILD_ID_MAX)
			return "its list of modules is malformed";
	for (unsigned i = 0; i < CRUMB_HISTORY_MAX; i++) {
		const struct crumb_death *d = &f->records.history[i];
		if (!memchr(d->module, 0, sizeof d->module) ||
		    !memchr(d->object, 0, sizeof d->object) ||
		    !memchr(d->boot_id, 0, sizeof d->boot_id) ||
		    d->build_id.size > NOTE_BUILD_ID_MAX)
			return "its history is malformed";
	}
	return NULL;
}

static int map_file(struct crumb *c, const char *path, struct err *err)
{
	void *p = mmap(NULL, sizeof *c->file, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	if (p == MAP_FAILED)
		return err_errno(err, -errno, "cannot map breadcrumb file %s", path);
	c->file = p;
	return 0;
}

static void unmap_file(struct crumb *c)
{
	if (c->file)
		(void)munmap(c->file, sizeof *c->file);
	c->file = NULL;
}

/* Creates the file with all its blocks allocated, so that a full file system is an error here and
 * not a SIGBUS later. */
static int init_file(struct crumb *c, const char *path, struct err *err)
{
	int r = posix_fallocate(c->fd, 0, sizeof *c->file);
	if (r)
		return err_errno(err, -r, "cannot allocate breadcrumb file %s", path);
	r = map_file(c, path, err);
	if (r < 0)
		return r;
	memset(c->file, 0, sizeof *c->file);
	memcpy(c->file->magic, CRUMB_MAGIC, sizeof c->file->magic);
	c->file->version = CRUMB_VERSION;
	c->file->size = sizeof *c->file;
	return 0;
}

static int set_aside(struct crumb *c, const char *path, const char *why, struct err *err)
{
	_free_ char *bad = str_printf("%s.bad", path);
	if (!bad)
		return err_errno(err, -ENOMEM, "cannot quarantine breadcrumb file %s", path);
	if (rename(path, bad) < 0)
		return err_errno(err, -errno, "cannot rename damaged breadcrumb file %s to %s",
				 path, bad);
	(void)snprintf(c->message, sizeof c->message,
		       "breadcrumb file %s was quarantined as %s: %s; its recorded crashes and "
		       "module quarantines are lost",
		       path, bad, why);
	unmap_file(c);
	(void)close(take_fd(&c->fd));
	return -EAGAIN;
}

static int lock_file(struct crumb *c, const char *path, struct stat *ret_st, struct err *err)
{
	struct stat now;
	c->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (c->fd < 0)
		return err_errno(err, -errno, "cannot open breadcrumb file %s", path);
	if (fstat(c->fd, ret_st) < 0)
		return err_errno(err, -errno, "cannot open breadcrumb file %s", path);
	if (!S_ISREG(ret_st->st_mode))
		return err_set(err, -EINVAL, "breadcrumb file %s is not a regular file", path);
	if (flock(c->fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, -EBUSY,
			       "breadcrumb file %s is in use by another process: is nri-rpd "
			       "running already?",
			       path);
	/* Another process may have renamed the file between open and lock. */
	if (stat(path, &now) < 0 || now.st_ino != ret_st->st_ino || now.st_dev != ret_st->st_dev) {
		(void)close(take_fd(&c->fd));
		return -EAGAIN;
	}
	return 0;
}

/* Opens, locks and maps the file. -EAGAIN: the file changed meanwhile, try again. */
static int try_open(struct crumb *c, const char *path, struct err *err)
{
	struct stat st;
	int r = lock_file(c, path, &st, err);
	if (r < 0)
		return r;
	c->fd_flags = fcntl(c->fd, F_GETFL);
	if (st.st_nlink > 1)
		return set_aside(c, path, "it is a hard link", err);
	if (st.st_size == 0)
		return init_file(c, path, err);
	if (st.st_size != (off_t)sizeof *c->file)
		return set_aside(c, path, "it has the wrong size", err);
	r = map_file(c, path, err);
	if (r < 0)
		return r;
	const char *fault = find_fault(c->file);
	return fault ? set_aside(c, path, fault, err) : 0;
}

int crumb_open_at(const char *path, const struct crumb_now *now, struct crumb **ret,
		  struct err *err)
{
	struct crumb *c = calloc(1, sizeof *c);
	if (!c)
		return err_errno(err, -ENOMEM, "cannot open breadcrumb file %s", path);
	c->fd = -1;
	c->now = *now;
	int r = -EAGAIN;
	for (int i = 0; i < CRUMB_OPEN_TRIES && r == -EAGAIN; i++)
		r = try_open(c, path, err);
	if (r == -EAGAIN)
		r = err_set(err, -EBUSY, "breadcrumb file %s keeps being replaced", path);
	if (r < 0) {
		unmap_file(c);
		if (c->fd >= 0)
			(void)close(c->fd);
		free(c);
		return r;
	}
	take_over(c);
	c->live = &c->file->live;
	*ret = c;
	return 0;
}

int crumb_open(const char *path, struct crumb **ret, struct err *err)
{
	struct crumb_now now = {.wall_ns = clock_wall_ns()};
	_close_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : fs_read_from(fd, now.boot_id, sizeof now.boot_id);
	if (n <= 0)
		return err_errno(err, n < 0 ? (int)n : -EIO, "cannot read this boot's id");
	now.boot_ms = crumb_boot_ms();
	return crumb_open_at(path, &now, ret, err);
}

struct crumb *crumb_private(void)
{
	struct crumb *c = calloc(1, sizeof *c);
	struct crumb_file *file = calloc(1, sizeof *file);
	if (!c || !file) {
		free(c);
		free(file);
		return NULL;
	}
	*c = (struct crumb){.live = &file->live, .file = file, .child = true, .fd = -1};
	return c;
}

struct crumb *crumb_close(struct crumb *c)
{
	if (!c)
		return NULL;
	if (c->child) {
		free(c->file);
	} else {
		if (!c->failed)
			memset(&c->file->live, 0, sizeof c->file->live);
		unmap_file(c);
		(void)close(c->fd);
	}
	free(c);
	return NULL;
}

int crumb_child(struct crumb *c, struct crumb_live *live)
{
	if (!c)
		return 0;
	if (c->child) {
		c->live = live;
		return 0;
	}
	struct crumb_file *copy = malloc(sizeof *copy);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, c->file, sizeof *copy);
	unmap_file(c);
	(void)close(take_fd(&c->fd));
	c->file = copy;
	c->live = live;
	c->child = true;
	return 0;
}
