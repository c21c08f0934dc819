/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signal handlers that mark a crash in the breadcrumb. They only store: the previous handler (the
 * default action, a sanitizer's report) is restored and receives the signal again.
 */
#include "core/nri-rpd/host/crash_marks.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/nri-rpd/host/breadcrumb.h"
#include "core/lib/util/crash.h"

static const int signos[] = CRASH_SIGNALS;
#define N_SIGNOS (sizeof signos / sizeof *signos)

static struct crumb *volatile noted;
static struct sigaction before[N_SIGNOS];
static char stack[CRASH_STACK];

static void crash_marks_mark(void)
{
	crumb_blame(noted, 0);
}

/* Returns the address of the instruction that a signal has interrupted; 0 on other processors. */
static uintptr_t instruction_of(const void *context)
{
	const ucontext_t *c = context;
#if defined(__x86_64__)
	return (uintptr_t)c->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)c->uc_mcontext.pc;
#else
	(void)c;
	return 0;
#endif
}

/* Returns true if the kernel raised the signal for an instruction, or the process for itself with
 * abort(); false for a kill() by another process. */
static bool of_own_doing(const siginfo_t *info)
{
	return info->si_code > 0 || (info->si_code == SI_TKILL && info->si_pid == getpid());
}

static void on_crash(int signo, siginfo_t *info, void *context)
{
	if (of_own_doing(info))
		crumb_blame(noted, instruction_of(context));
	for (unsigned i = 0; i < N_SIGNOS; i++)
		if (signos[i] == signo)
			(void)sigaction(signo, &before[i], NULL);
	if (info->si_code <= 0) /* the interrupted instruction will not raise the signal again */
		(void)raise(signo);
}

static void crash_marks_install(void)
{
	static bool at_exit;
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
	action.sa_sigaction = on_crash;
	sigemptyset(&action.sa_mask);
	for (unsigned i = 0; i < N_SIGNOS; i++) {
		struct sigaction now;
		(void)sigaction(signos[i], &action, &now);
		if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_crash)
			before[i] = now;
	}
	if (!at_exit)
		(void)atexit(crash_marks_mark);
	at_exit = true;
}

void ends_note(struct crumb *c)
{
	const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
	noted = c;
	if (!c)
		return;
	(void)sigaltstack(&own, NULL);
	crash_marks_install();
}
