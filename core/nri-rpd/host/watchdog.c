/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arming a kernel timer for each request would cost two system calls. This timer is armed when a
 * request begins while it rests, and its handler checks that request later:
 *
 *   resting ──begin──▶ armed for limit - grace ──▶ no request running? rest
 *                        ▲                         younger request?   arm for the remaining time
 *                        └─────────────────────────  a call running?  record it, check after grace
 *                                                  the same call, past the limit: end the process
 *
 * Handler and begin/end run on one thread, so that compiler barriers are all the ordering needed.
 */
#include "core/nri-rpd/host/watchdog.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/nri-rpd/host/breadcrumb.h"
#include "core/lib/util/clock.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define WATCHDOG_SIGNAL (SIGRTMIN + 4)
#define WATCHDOG_TEXT_MAX 400u
#define WATCHDOG_WAIT_FACTOR                                                                       \
	4u /* multiple of the limit, with the time in which the thread waits for a CPU */
#define NS_PER_MS UINT64_C(1000000)

struct watchdog {
	struct crumb *crumb;
	timer_t timer, killer;
	bool has_killer; /* the timer that sends SIGKILL exists; the kernel may refuse it */
	bool child;
	bool journal; /* stderr is connected to the journal */
	uint32_t limit_ms, grace_ms;
	uint64_t limit_ns, grace_ns;
	int schedstat; /* scheduler statistics of the thread; -1: not available */
	/* Members that the handler shares. */
	uint64_t more_ns; /* time that the running request may take in addition to the limit */
	uint64_t delay_ns; /* time that the thread had waited for a CPU at the latest arming */
	uint64_t begin_ns; /* time at which the running request began; 0: none is running */
	bool armed;
	/* the watchdog is armed for a request that may take longer than the limit */
	bool armed_long;
	uint64_t seen; /* state of the crumb at the last check; 0: no call was running */
	uint64_t warned; /* begin_ns of a request that a warning was written for */
};

/* Returns the time for which the thread has waited for a CPU since it started; 0: not known. */
static uint64_t watchdog_delay_ns(const struct watchdog *w)
{
	char text[96];
	uint64_t n = 0;
	ssize_t size = w->schedstat < 0 ? -1 : pread(w->schedstat, text, sizeof text - 1, 0);
	const char *p = text;
	if (size <= 0)
		return 0;
	text[size] = '\0';
	while (*p && *p != ' ') /* the first number is the CPU time */
		p++;
	while (*p == ' ')
		p++;
	for (; *p >= '0' && *p <= '9'; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	return n;
}

/* Arms the timer; 0 disarms it. Fails only for times out of range. */
static void watchdog_set(timer_t timer, uint64_t ns)
{
	struct itimerspec it = {
		.it_value = {(time_t)(ns / (1000 * NS_PER_MS)), (long)(ns % (1000 * NS_PER_MS))}};
	(void)timer_settime(timer, 0, &it, NULL);
}

static void watchdog_arm(struct watchdog *w, uint64_t ns)
{
	w->armed = true;
	if (w->has_killer)
		watchdog_set(w->killer, ns + WATCHDOG_KILL_MS * NS_PER_MS);
	watchdog_set(w->timer, ns);
}

/* ---- in the handler: async-signal-safe only -------------------------------------------------- */

struct line {
	char text[WATCHDOG_TEXT_MAX];
	size_t size;
};

static void watchdog_add(struct line *l, const char *s)
{
	for (; *s && l->size < sizeof l->text - 1; s++)
		l->text[l->size++] = *s;
}

static void add_number(struct line *l, uint32_t n)
{
	char digits[11], *p = digits + sizeof digits - 1;
	*p = '\0';
	do {
		*--p = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	watchdog_add(l, p);
}

static void watchdog_print(struct line *l)
{
	l->text[l->size++] = '\n';
	ssize_t ignored = write(STDERR_FILENO, l->text, l->size);
	(void)ignored;
}

static void begin_line(const struct watchdog *w, struct line *l)
{
	l->size = 0;
	watchdog_add(l, w->journal ? "<3>" : "nri-rp: ");
}

static void warn_slow(struct watchdog *w)
{
	struct line l;
	if (w->warned == w->begin_ns)
		return;
	w->warned = w->begin_ns;
	begin_line(w, &l);
	watchdog_add(&l, "a request takes more than ");
	add_number(&l, w->limit_ms);
	watchdog_add(&l, " ms, outside of any module");
	watchdog_print(&l);
}

_Noreturn static void end_process(const struct watchdog *w, struct crumb_live *live)
{
	const struct crumb_slot *s = &live->lane[CRUMB_LOOP];
	struct line l;
	begin_line(w, &l);
	watchdog_add(&l, "module \"");
	watchdog_add(&l, s->module);
	watchdog_add(&l, "\" hangs in ");
	watchdog_add(&l, crumb_call_name(crumb_slot_call(s)));
	if (s->object[0]) {
		watchdog_add(&l, " of \"");
		watchdog_add(&l, s->object);
		watchdog_add(&l, "\"");
	}
	watchdog_add(&l, ": no reply within ");
	add_number(&l, w->limit_ms);
	watchdog_add(&l, " ms; exiting before the runtime disconnects the daemon");
	live->cause = CRUMB_HUNG;
	watchdog_print(&l);
	_exit(WATCHDOG_EXIT);
}

static void watchdog_look(struct watchdog *w, uint64_t elapsed_ns)
{
	struct crumb_live *live = crumb_live(w->crumb);
	uint64_t state = live ? live->lane[CRUMB_LOOP].state : 0;
	bool late = elapsed_ns >= w->limit_ns + w->more_ns;
	if (!(state & 0xff)) {
		if (late)
			warn_slow(w);
		state = 0;
	} else if (late && state == w->seen) {
		end_process(w, live);
	}
	w->seen = state;
	watchdog_arm(w, w->grace_ns);
}

static void watchdog_handle(int signo, siginfo_t *info, void *context)
{
	if (info->si_code != SI_TIMER)
		return;
	struct watchdog *w = info->si_value.sival_ptr;
	uint64_t now = clock_ns(), begin = w->begin_ns, elapsed, delay, delayed;
	uint64_t first = w->limit_ns + w->more_ns - w->grace_ns;
	if (!begin) {
		if (w->has_killer)
			watchdog_set(w->killer, 0);
		w->armed = false;
		w->seen = 0;
		return;
	}
	/* Waiting for a CPU is not the module's fault. At most so long, as the delay is that since
	 * the latest arming, which may have been before the request. */
	elapsed = now - begin;
	delay = watchdog_delay_ns(w);
	delayed = delay > w->delay_ns ? delay - w->delay_ns : 0;
	if (delayed > elapsed)
		delayed = elapsed;
	if (elapsed - delayed >= first || elapsed >= WATCHDOG_WAIT_FACTOR * first) {
		watchdog_look(w, elapsed - delayed >= first ? elapsed - delayed : elapsed);
		return;
	}
	w->seen = 0;
	w->armed_long = w->more_ns != 0;
	watchdog_arm(w, first - (elapsed - delayed));
}

/* ---- outside of the handler ------------------------------------------------------------------ */

int watchdog_new(struct crumb *crumb, uint32_t limit_ms, struct watchdog **ret, struct err *err)
{
	struct watchdog *w = calloc(1, sizeof *w);
	if (!w)
		return err_errno(err, -ENOMEM, "cannot create the watchdog");
	w->crumb = crumb;
	w->schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	w->journal = getenv("JOURNAL_STREAM") != NULL;
	w->limit_ms = limit_ms;
	w->grace_ms = limit_ms < 2 * WATCHDOG_GRACE_MS ? limit_ms / 2 : WATCHDOG_GRACE_MS;
	w->limit_ns = w->limit_ms * NS_PER_MS;
	w->grace_ns = w->grace_ms * NS_PER_MS;
	struct sigaction action = {.sa_sigaction = watchdog_handle,
				   .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
				 .sigev_signo = WATCHDOG_SIGNAL,
				 .sigev_value.sival_ptr = w};
	event.sigev_notify_thread_id = gettid();
	if (sigaction(WATCHDOG_SIGNAL, &action, NULL) < 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &w->timer) < 0) {
		int r = -errno;
		if (w->schedstat >= 0)
			(void)close(w->schedstat);
		free(w);
		return err_errno(err, r, "cannot create the watchdog");
	}
	struct sigevent kill_event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	w->has_killer = timer_create(CLOCK_MONOTONIC, &kill_event, &w->killer) == 0;
	*ret = w;
	return 0;
}

struct watchdog *watchdog_free(struct watchdog *w)
{
	if (!w)
		return NULL;
	if (!w->child) {
		(void)timer_delete(w->timer);
		if (w->has_killer)
			(void)timer_delete(w->killer);
		/* Ignoring the signal also drops one that is pending. */
		(void)signal(WATCHDOG_SIGNAL, SIG_IGN);
	}
	if (w->schedstat >= 0)
		(void)close(w->schedstat);
	free(w);
	return NULL;
}

void watchdog_begin(struct watchdog *w)
{
	if (!w || w->child)
		return;
	assert(!w->begin_ns);
	w->begin_ns = clock_ns();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!w->armed) {
		w->delay_ns = watchdog_delay_ns(w);
		watchdog_arm(w, w->limit_ns - w->grace_ns);
	}
}

void watchdog_allow(struct watchdog *w, uint32_t more_ms)
{
	if (w)
		w->more_ns = more_ms * NS_PER_MS;
}

void watchdog_end(struct watchdog *w)
{
	if (!w)
		return;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	w->begin_ns = 0;
	w->more_ns = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (w->armed_long) /* the next request arms the timer for the limit again */
		w->armed = w->armed_long = false;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void watchdog_child(struct watchdog *w)
{
	if (w)
		w->child = true;
}
