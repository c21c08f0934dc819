/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the fake host: fake_topology.c, fake_config.c, fake_cache.c, fake_report.c and
 * fake_host.c share this. */
#ifndef TEST_UNIT_FAKE_IMPL_H
#define TEST_UNIT_FAKE_IMPL_H

#include <stdio.h>
#include <stdlib.h>

#include "test/unit/fake_host.h"

/* Calls that cannot fail in a test that is right. */
void fake_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void *fake_alloc(size_t size); /* zeroed */
void *fake_grow(void *p, size_t n, size_t size);
char *fake_strdup(const char *s); /* NULL gives NULL */
void fake_parse_set(struct rp_idset *ret, const char *list); /* NULL: empty */

/* Text that grows. */
struct fake_out {
	char *text;
	size_t len, cap;
};
void fake_print(struct fake_out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fake_out_clear(struct fake_out *o);
void fake_out_fini(struct fake_out *o);
static inline const char *fake_out_text(const struct fake_out *o)
{
	return o->text ? o->text : "";
}

/* ---- parts ----------------------------------------------------------------------------------- */

struct fake_unit {
	uint32_t raw; /* identifies the unit, unique in its level */
	uint32_t id;
	struct rp_idset cpus;
};

struct fake_cpu {
	struct rp_cpu_info info;
	uint32_t raw[RP_N_LEVELS];
	bool exists;
};

struct fake_topology {
	struct fake_machine machine;
	uint32_t n_cpus, n_nodes;
	struct fake_cpu *cpus;
	struct rp_node_info *nodes;
	uint32_t *distance; /* n_nodes × n_nodes */
	struct fake_unit *units[RP_N_LEVELS];
	uint32_t n_units[RP_N_LEVELS];
	struct rp_idset sets[RP_NODES_NORMAL + 1];
	struct rp_idset isolated, offline;
	uint64_t generation;
};

void fake_topology_init(struct fake_topology *t, const struct fake_machine *m);
void fake_topology_fini(struct fake_topology *t);
/* Computes units and sets from the online CPUs. */
void fake_topology_update(struct fake_topology *t);

struct rp_cfg_node {
	uint32_t kind;
	char *text; /* text of a scalar */
	char *path;
	char **keys; /* keys of a map */
	struct rp_cfg_node **items;
	uint32_t n;
	struct rp_cfg_node *next; /* all there are */
};

struct fake_pair {
	uint32_t field; /* RP_F_…; FAKE_DATA */
	char *key, *value;
};
#define FAKE_DATA 1000u
#define FAKE_ARGS 1001u
#define FAKE_MOUNT 1002u
#define FAKE_DEVICE 1003u
#define FAKE_CDI 1004u
#define FAKE_N_INTS 18u /* RP_F_ numbers of set_int and get_int */
#define FAKE_N_TEXTS 5u /* from RP_F_RDT_CLASS on */

struct fake_values {
	struct rp_idset cpus, mems, exclusive;
	int64_t ints[FAKE_N_INTS];
	char *texts[FAKE_N_TEXTS];
	struct fake_pair *pairs;
	uint32_t n_pairs;
	void *private_data;
	uint32_t private_size;
	char private_of[RP_NAME_MAX]; /* name of the policy */
	uint32_t group;
	char *degraded;
};

struct fake_container {
	bool live;
	bool coming; /* being created */
	bool touched; /* in the running transaction */
	bool pod_stopped; /* for the first container of a pod */
	struct fake_values now, before;
	char *name, *pod_name, *pod_namespace, *annotations, *labels, *mounts, *devices,
		*pod_resources, *args;
	uint32_t qos, flags, state;
	int64_t cpu_request, cpu_limit, mem_request, mem_limit;
	int64_t old_request, old_limit; /* before fake_request */
	int64_t asked_shares, asked_quota, asked_period;
	struct fake_out trail;
	uint64_t trail_of; /* transaction whose notes it holds */
};

struct fake_file {
	char *path, *content;
	bool written;
};

struct fake_device {
	char *what, *path; /* a path of the host or a device number, and its place in sysfs */
	struct rp_idset cpus, nodes;
};

struct fake_timer {
	uint64_t cookie, delay_ms;
};

struct fake_job {
	int32_t (*run)(void *arg);
	void (*done)(void *arg, int32_t result);
	void *arg;
};

struct fake_post {
	uint64_t cookie;
	uint32_t size;
	_Alignas(max_align_t) char data[];
};

struct fake_host {
	struct rp_host host;
	struct fake_topology topology;
	struct rp_cfg_node *cfg_nodes;
	struct fake_container **ctrs; /* handle - 1 */
	uint32_t n_ctrs;
	char *annotation; /* last value that a getter returned */
	char *fields[4]; /* fields of a mount or device */
	struct rp_idset device_nodes; /* nodes of a pod resource */
	struct fake_file *files;
	uint32_t n_files;
	struct fake_device *devices;
	uint32_t n_devices;
	struct fake_timer *timers;
	uint32_t n_timers;
	uint64_t now_ms;
	struct fake_job *jobs;
	uint32_t n_jobs;
	struct fake_post *posts[RP_POSTS_MAX]; /* in order; not delivered yet */
	uint32_t n_posts;
	const char *hidden;
	uint32_t calls, fail_at;
	int32_t fail_code;
	/* transaction */
	uint64_t txn; /* 0: none */
	uint64_t last_txn;
	uint32_t n_changed;
	/* module */
	const struct rp_module *module;
	struct rp_instance *inst;
	char *config_text;
	void *state;
	uint32_t state_size;
	struct fake_out error, log, report;
	char answers[8][RP_IDSET_TEXT_MAX];
	unsigned next_answer;
	struct fake_sst *sst; /* NULL: the test does not use Speed Select */
};

/* Counts a call of a fallible host function: 0, or what fake_fail_after wants. */
int32_t fake_call(struct fake_host *f);
const char *fake_answer(struct fake_host *f, struct rp_ids ids);
struct fake_container *fake_container(struct fake_host *f, rp_ctr ctr); /* dies if there is none */

void fake_begin(struct fake_host *f);
/* Ends the transaction. Returns 0, or -RP_EINVAL with f->error set. `keep`: commit if the
 * invariants hold. */
int32_t fake_end(struct fake_host *f, bool keep);
void fake_cache_fini(struct fake_host *f);

extern const struct rp_host_speedselect fake_speedselect_service;
void fake_sst_fini(struct fake_host *f);
extern const struct rp_host_topology fake_topology_service;
extern const struct rp_host_config fake_config_service;
extern const struct rp_host_cache fake_cache_service;

/* ---- decided values of a container (fake_values.c) ------ */

void fake_values_init(struct fake_values *v);
void fake_values_fini(struct fake_values *v);
void fake_values_copy(struct fake_values *dst, const struct fake_values *src);
struct fake_pair *fake_values_find_pair(struct fake_values *v, uint32_t field, const char *key);
void fake_values_put_pair(struct fake_values *v, uint32_t field, const char *key,
			  const char *value);
bool fake_values_same(const struct fake_values *a, const struct fake_values *b);

#endif
