/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host in one struct for unit tests of modules: a made-up machine, a cache with containers and
 * transactions, a configuration from a literal, and everything the module said. It checks the
 * invariants of policy.h at the end of each transaction, as the real one does.
 *
 *	struct fake_host *f = fake_host_new(&(struct fake_machine){.packages = 2, .nodes = 2, .cores
 *      = 2, .threads = 2});
 *	fake_policy_open(f, &rp_module_1);
 *	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: 1}}"), 0);
 *	rp_ctr c = fake_ctr(f, &(struct fake_ctr){.name = "c0", .qos = RP_QOS_GUARANTEED,
 *      .cpu_request = 2000});
 *	assert_int_equal(fake_allocate(f, c), 0);
 *	assert_string_equal(fake_cpus(f, c), "2-3");
 *	fake_host_free(f);
 *
 * What cannot go wrong in a test that is right (out of memory, an unknown container) ends the
 * program with a message.
 */
#ifndef TEST_UNIT_FAKE_HOST_H
#define TEST_UNIT_FAKE_HOST_H

#include <stdbool.h>

#include <nri-rp/cache.h>
#include <nri-rp/config.h>
#include <nri-rp/host.h>
#include <nri-rp/node.h>
#include <nri-rp/module.h>
#include <nri-rp/policy.h>
#include <nri-rp/set.h>
#include <nri-rp/speedselect.h>
#include <nri-rp/topology.h>

struct fake_host;

/* ---- the machine ----------------------------------------------------------------------------- */

/* Counts of 0 mean 1 where nothing else is said. CPUs are numbered package, die, node, core,
 * thread. */
struct fake_machine {
	uint32_t packages, dies, nodes, cores, threads; /* each in one of the level before */
	/* first threads of all cores first, then all second ones; otherwise threads of a core are
	 * neighbours */
	bool siblings;
	/* single-threaded efficient cores a node, after its `cores` performance cores */
	uint32_t e_cores;
	uint32_t l3_cores; /* cores that share an L3; 0: one L3 a package */
	uint32_t l2_cores; /* cores that share an L2 (efficient ones by four) */
	uint32_t memory_nodes; /* further nodes without CPUs */
	uint64_t node_memory; /* bytes; 0: 2 GiB */
	bool real; /* presented to the module as a real node */
	bool no_numa; /* a single memory node, regardless of the numbering that `nodes` asks for */
	const char *isolated, *offline; /* list form; NULL: none */
};

struct fake_host *fake_host_new(const struct fake_machine *m);
struct fake_host *fake_host_free(
	struct fake_host *f); /* destroys the module's instance too; returns NULL */

/* Returns the host as the module sees it. A service whose name is in `hide` (one string, NULL:
 * none) is not offered. */
const struct rp_host *fake_rp_host(struct fake_host *f);
void fake_hide_service(struct fake_host *f, const char *name);
/* Makes the n-th call from now on of a fallible host function fail with -code; 0 calls: never.
 * Function fake_n_calls returns the number of calls since. */
void fake_fail_after(struct fake_host *f, uint32_t n_calls, int32_t code);
uint32_t fake_n_calls(const struct fake_host *f);

/* Takes CPUs off line or brings them back, then sends RP_EVENT_TOPOLOGY to an open policy. Its
 * result. */
int32_t fake_set_offline(struct fake_host *f, const char *cpus);
/* Changes a CPU's description (frequencies, kind, …); NULL: no such CPU. */
struct rp_cpu_info *fake_cpu_info(struct fake_host *f, uint32_t cpu);
struct rp_node_info *fake_node_info(struct fake_host *f, uint32_t node);
void fake_set_distance(struct fake_host *f, uint32_t from, uint32_t to,
		       uint32_t distance); /* in both directions */
/* Adds a device: a path of the host or "b8:0", its path in sysfs, and the CPUs and nodes near it
 * (list form; NULL: none). */
void fake_device(struct fake_host *f, const char *what, const char *sysfs_path, const char *cpus,
		 const char *nodes);
/* Speed Select; a machine has none unless told. `buckets` ends with 0; without BF `bf` is NULL. */
struct fake_punit {
	uint32_t package, punit;
	const char *cpus;
	uint32_t supported, enabled, priority, buckets[RP_SST_BUCKETS];
	const char *bf;
	uint32_t weights[RP_CLOS_COUNT];
};
void fake_speedselect(struct fake_host *f, const struct fake_punit *list, uint32_t n); /* once */
void fake_sst_program(struct fake_host *f, uint32_t clos, uint32_t min_mhz,
		      uint32_t max_mhz); /* in all punits */
void fake_sst_put(struct fake_host *f, const char *cpus, uint32_t clos);
const char *fake_sst_in(struct fake_host *f, uint32_t clos); /* CPUs that are in it, list form */
/* Makes "cp", "tf", "clos", "assoc" or "look" fail with -code from now on; NULL: none. */
void fake_sst_fail(struct fake_host *f, const char *what, int32_t code);
/* Returns the writes so far: "PACKAGE/PUNIT cp ON ordered; ", "… tf ON; ",
 * "… clos ID MIN-MAX; ", "cpu CPU CLOS; ". */
const char *fake_sst_log(struct fake_host *f);
void fake_sst_log_clear(struct fake_host *f);
uint32_t fake_sst_manages(struct fake_host *f); /* 1: the module does */
/* Adds a file for read_file and read_node. */
void fake_file(struct fake_host *f, const char *path, const char *content);
const char *fake_written(struct fake_host *f, const char *path); /* by write_file; NULL: nothing */

/* ---- configuration --------------------------------------------------------------------------- */

/* Parses YAML in flow style: {a: {b: 1}, c: [x, "y z"]}. The tree lives as long as f. Keys are
 * found without regard to case. */
rp_cfg fake_cfg(struct fake_host *f, const char *text);

/* ---- containers ------------------------------------------------------------------------------ */

struct fake_ctr {
	const char *name; /* also names its pod, "pod-NAME", unless that is given */
	const char *pod_name, *pod_namespace;
	uint32_t qos, flags, state; /* state: RP_STATE_CREATING, unless given */
	int64_t cpu_request, cpu_limit, mem_request,
		mem_limit; /* cpu_limit 0 of Guaranteed ones: the request */
	const char *annotations; /* annotations of the pod: "key=value;key=value" */
	const char *labels;
	const char *mounts; /* "SOURCE:DESTINATION[:ro];…" */
	const char *devices; /* "PATH:b8:0;…"; a field more: without write access */
	const char *pod_resources; /* "RESOURCE:NODES;…", by name, nodes in list form */
	const char *args; /* command line of the process: "PROGRAM;ARGUMENT;…" */
	int64_t asked_shares, asked_quota,
		asked_period; /* 0: as the kubelet derives them from CPU request and limit */
};

rp_ctr fake_ctr(struct fake_host *f, const struct fake_ctr *desc);
/* Returns the container of this name; 0: none. */
rp_ctr fake_ctr_named(struct fake_host *f, const char *name);
/* Sets new requirements, before fake_update. */
void fake_request(struct fake_host *f, rp_ctr ctr, int64_t cpu_request, int64_t cpu_limit);
/* Stops the pod whose first container this is: get_pod() returns RP_POD_STOPPED. */
void fake_stop_pod(struct fake_host *f, rp_ctr ctr);
/* Forgets the devices that the kubelet assigned to a container. */
void fake_forget_devices(struct fake_host *f, rp_ctr ctr);
/* Forgets a container without telling anybody. */
void fake_forget(struct fake_host *f, rp_ctr ctr);
uint32_t fake_n_ctrs(struct fake_host *f);

/* Returns the decided values, sets in list form and "" for no value. A text is valid for eight
 * more calls. */
const char *fake_cpus(struct fake_host *f, rp_ctr ctr);
const char *fake_mems(struct fake_host *f, rp_ctr ctr);
const char *fake_exclusive(struct fake_host *f, rp_ctr ctr);
struct rp_ids fake_cpu_ids(struct fake_host *f, rp_ctr ctr);
struct rp_ids fake_exclusive_ids(struct fake_host *f, rp_ctr ctr);
void fake_adjust_toptier(struct fake_host *f, rp_ctr ctr, int64_t bytes); /* RP_NOT_SET: none */
int64_t fake_int(struct fake_host *f, rp_ctr ctr, uint32_t field); /* RP_NOT_SET: not decided */
const char *fake_text(struct fake_host *f, rp_ctr ctr, uint32_t field); /* NULL: not decided */
const char *fake_data(struct fake_host *f, rp_ctr ctr, const char *key); /* NULL: no such line */
const char *fake_pair(struct fake_host *f, rp_ctr ctr, uint32_t field, const char *key);
const char *fake_args(struct fake_host *f,
		      rp_ctr ctr); /* arguments set by the policy, joined by ";"; NULL: unchanged */
const char *fake_degraded(struct fake_host *f, rp_ctr ctr); /* the reason; NULL: all is well */
const char *fake_trail(struct fake_host *f, rp_ctr ctr); /* notes, one a line */
/* Pretends that something else decided this earlier: sets as lists, NULL: nothing. */
void fake_decide(struct fake_host *f, rp_ctr ctr, const char *cpus, const char *exclusive,
		 const char *mems);
/* Returns the number of containers that the last transaction changed. */
uint32_t fake_n_changed(const struct fake_host *f);

/* ---- a policy under test --------------------------------------------------------------------- */

/* Creates an instance that replaces the previous one. */
int32_t fake_policy_open(struct fake_host *f, const struct rp_module *module);
void fake_policy_close(struct fake_host *f);
struct rp_instance *fake_instance(struct fake_host *f);
const void *fake_module_service(struct fake_host *f, const char *id);

/*
 * Makes the calls as the host does: in a transaction that is committed if the call succeeds and the
 * invariants hold. Otherwise the transaction is dropped and rolled_back() is called, and sync() if
 * it returns so. A broken invariant returns -RP_EINVAL, and fake_error() names it.
 */
int32_t fake_configure(struct fake_host *f, const char *text); /* prepare, commit, sync */
int32_t fake_prepare_only(struct fake_host *f, const char *text); /* prepare and abort */
int32_t fake_sync(struct fake_host *f);
int32_t fake_allocate(struct fake_host *f, rp_ctr ctr); /* a failed one is removed from the cache */
/* As after a refusal, but nothing is staged for it before. A failed one is removed from the
 * cache. */
int32_t fake_unmanaged(struct fake_host *f, rp_ctr ctr);
int32_t fake_update(struct fake_host *f, rp_ctr ctr); /* failed: the requirements are as before */
/* Releases the container and removes it from the cache. */
int32_t fake_release(struct fake_host *f, rp_ctr ctr);
int32_t fake_event(struct fake_host *f, const struct rp_event *ev);
/* Allocates in a transaction that is dropped whatever comes out. */
int32_t fake_try(struct fake_host *f, rp_ctr ctr);
/* Creates a new instance over the same cache with the active configuration, as a restart of the
 * daemon does. */
int32_t fake_restart(struct fake_host *f);
/* Drops the saved state of the module before the next instance. The cache of containers is
 * unchanged. */
void fake_lose_state(struct fake_host *f);

/* Returns the last fail() text; "" if there was none since the last call into the module. */
const char *fake_error(const struct fake_host *f);
/* Returns all lines logged since the last fake_log_clear, each as "<6>text". */
const char *fake_log(const struct fake_host *f);
void fake_log_clear(struct fake_host *f);

/* ---- module reports -------------------------------------------------------------------------- */

/* zones() and collect() as text, one line each; valid until asked again. "" when the module has no
 * such service. */
const char *fake_zones(struct fake_host *f);
const char *fake_metrics(struct fake_host *f);

/* Returns the delay of an armed timer in ms; -1: not armed. */
int64_t fake_timer(const struct fake_host *f, uint64_t cookie);
void fake_set_now(struct fake_host *f, uint64_t now_ms);
/* Runs submitted jobs and their done functions. How many there were. */
uint32_t fake_run_work(struct fake_host *f);
/* Delivers posted events, including events posted by their handlers. Returns the number of
 * events. */
uint32_t fake_deliver_posts(struct fake_host *f);

#endif
