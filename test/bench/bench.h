/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures what a plugin costs: a runtime that plays containers against a program and takes the
 * time. Driver and target share one CPU, so that a round trip is their work and no wake-up of
 * another CPU; compare targets of one run, not runs.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/lib/util/loop.h"
#include "core/lib/wire/rpc.h"
#include "core/lib/wire/trunk.h"
#include "proto/nri.pb-c.h"

#define LIVE_MAX 20000u

enum kind { RUN_POD, CREATE, START, STOP, STOP_POD, REMOVE, REMOVE_POD, N_KINDS };

struct samples {
	uint32_t *ns;
	unsigned n, cap;
};

struct bench {
	struct loop *loop;
	struct trunk *trunk;
	struct rpc *plugin;
	int listen_fd;
	struct loop_io *listener;
	char dir[64], socket[96];
	pid_t pid;
	uint64_t exec_ns, registered_ns, t0_ns;
	bool done, failed;
	struct samples samples[N_KINDS];
	unsigned updates; /* requested by the plugin */
	/* CPUs and memory nodes of container i in the plugin's last answer */
	char (*cpus)[64], (*mems)[64];
	unsigned named; /* number of used CPUs that new pods name; 0: none */
	unsigned whole; /* whole CPUs of each container of a Guaranteed pod; 0: shares, Burstable */
};

struct result {
	double p50_us[N_KINDS], p99_us[N_KINDS];
	double cycle_us, cpu_us, start_ms, sync_ms, rss_kib, rss_start_kib;
	unsigned updates, restart_updates;
	double wakeups;
};

/* ---- target.c: the program under test ---- */
int bench_start(struct bench *b, const char *command, const char *root, const char *config);
void bench_stop(struct bench *b);
double bench_cpu_us(const struct bench *b);
double bench_rss_kib(const struct bench *b);
uint64_t bench_wakeups(const struct bench *b);

/* ---- play.c: requests of the runtime ---- */
/* Asks and waits; the time goes to the samples of kind (N_KINDS: nowhere). */
int bench_ask(struct bench *b, enum kind kind, const char *method, const ProtobufCMessage *msg);
int bench_configure(struct bench *b);
int bench_synchronize(struct bench *b, unsigned n);
/* names: the CPUs that its pod names for it, or NULL. */
int bench_create(struct bench *b, unsigned i, const char *names);
int bench_delete(struct bench *b, unsigned i);

#endif
