/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated node: a container runtime with its pods, the kubelet's calculations, a machine as a
 * tree of files, and a real nri-rpd connected by NRI over a unix socket.
 *
 *   sim.h             the node; types and functions shared by most files
 *   sim.c             creates a node, sets it up, waits, removes it
 *   main.c            command line
 *   play.c            plays scenario files
 *   serve.c           executes commands from standard input
 *   steps.c           steps of scenarios
 *   steps_daemon.c    steps about nri-rpd, its configuration, and the runtime's process
 *   expect.c          expressions of expectations
 *   functions.c       functions of expectations
 *   expect_internal.h types shared by expect.c and functions.c
 *   map.c             draws the map of CPUs and containers
 *   show.c            prints what nri-rpctl shows
 *
 *   model.c           pods and containers
 *   kubelet.c         calculates shares, quota and other values from requests and limits
 *   lifecycle.c       creates, changes and removes pods and containers
 *   messages.c        converts the model to NRI messages
 *   apply.c           applies the plugin's answers to the model
 *   check.c           checks the plugin's answers
 *   conn.c            the runtime's end of NRI: socket, synchronization, events, updates
 *   wrong_sync.c      deliberately wrong content of Synchronize
 *   frame_check.c     passes bytes between a plugin and its trunk through frames.c
 *   frames.c          checks frames as a runtime written in Go does
 *   daemon.c          the nri-rpd process and its log
 *   control.c         client of nri-rpd's control socket
 *   files.c           the machine's other files: cgroups, resctrl, interrupts …
 *
 * Machines, YAML and JSON are in core/lib/machines; NRI releases and the runtime's protocol are in
 * core/lib/nri-runtime, and core/lib/topo reads the topology.
 *
 * Everything runs on one thread. A step waits by running the loop (sim_wait) until its request has
 * been answered; callbacks only record what has happened.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "core/lib/machines/machine.h"
#include "core/lib/nri-runtime/release.h"
#include "core/lib/topo/topo.h"
#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

#define SIM_NOT_SET INT64_MIN
#define SIM_MODULE_DIRS_MAX 8u

struct conn;
struct daemon;

enum sim_runtime { RUNTIME_CONTAINERD, RUNTIME_CRIO };
enum sim_cgroups { CGROUPS_SYSTEMD, CGROUPS_FS };

struct sim_options {
	/* name or folder of the machine; NULL: the machine of the scenario, or n4c16 */
	const char *machine;
	/* command with placeholders such as {config}; NULL: the nri-rpd beside this program */
	const char *daemon;
	const char *module_dirs[SIM_MODULE_DIRS_MAX];
	unsigned n_module_dirs;
	const char *work; /* folder for files, which is kept; NULL: a temporary one */
	const char *nri, *runtime, *cgroups; /* names; NULL: those of the scenario */
	uint64_t sync_parts; /* pods and containers in each Synchronize message; 0: all */
	uint64_t seed;
	const char *map; /* play: address at which nri-rpd serves the map; NULL: no map */
	uint64_t settle_ms; /* time limit for an expectation to come true */
	bool verbose, json, keep;
};

/* ---- the model ------------------------------------------------------------------------------- */

enum qos { QOS_GUARANTEED, QOS_BURSTABLE, QOS_BEST_EFFORT };

/* Requests and limits; 0: none. */
struct wants {
	int64_t cpu_request, cpu_limit; /* CPU of the container, in milli-CPU */
	int64_t memory_request, memory_limit; /* memory of the container, in bytes */
};

/* Effective resources of a container, as in an OCI specification. */
struct resources {
	int64_t shares, quota, period, memory_limit; /* SIM_NOT_SET if not set */
	char *cpus, *mems; /* lists of CPUs and memory nodes; "": all */
};

enum ctr_state { CTR_CREATING, CTR_CREATED, CTR_RUNNING, CTR_EXITED };

struct sim_ctr {
	struct sim_ctr *prev, *next; /* list of the node's containers, in the order of creation */
	struct sim_pod *pod;
	char *id, *name;
	enum ctr_state state;
	bool init;
	bool stop_sent; /* StopContainer was sent, which happens once */
	bool failing; /* updates of the container fail, as if the kernel refused them */
	struct wants wants;
	struct resources res;
	int64_t oom_score_adj;
	char *cgroups_path;
	/* args, env, mounts, devices, annotations, labels …: as described, then adjusted */
	json_t *spec;
	json_t *given; /* the plugin's adjustments other than resources, for expectations */
	int64_t created_ns, started_ns, finished_ns;
	int exit_code;
	uint32_t pid;
	unsigned number; /* counted from the node's first container */
	uint64_t took_us; /* duration of the answer to its creation */
	/* updates of the container, and those that changed its CPUs or memory nodes */
	uint64_t n_updates, n_moves;
};

struct sim_pod {
	struct sim_pod *prev, *next;
	char *id, *name, *ns, *uid, *handler, *cgroup_parent;
	json_t *labels, *annotations;
	enum qos qos;
	struct wants wants; /* sums of its containers, or `own` */
	struct wants own; /* resources of the pod itself (spec.resources); 0: none */
	bool critical, stopped;
	uint32_t pid;
};

/* ---- the node -------------------------------------------------------------------------------- */

struct sim {
	struct sim_options options;
	struct loop *loop;
	struct loop_timer *wait_timer;
	bool wait_over;
	bool interrupted; /* the user has interrupted the simulation; all waits end */

	char work[PATH_MAX], root[PATH_MAX], socket[PATH_MAX], state[PATH_MAX], control[PATH_MAX];
	char config[PATH_MAX], log[PATH_MAX];
	bool remove_work;

	json_t *machine; /* description; NULL: a recorded tree */
	json_t *cgroup_files; /* files of each container's cgroup; NULL: no cgroups are created */
	/* topology as the runtime and the kernel see it; NULL before the setup */
	struct topo *topo;
	const struct nri_release *release;
	enum sim_runtime runtime;
	enum sim_cgroups cgroups;
	unsigned sync_parts;
	/* refuse containers created without the plugin, as required_plugins of containerd does */
	bool require_plugin;
	uint64_t request_timeout_ms, registration_timeout_ms;

	struct sim_pod *pods;
	struct sim_ctr *ctrs;
	uint64_t n_ids; /* ids generated so far */
	uint32_t next_pid;
	unsigned n_ctrs_made;

	struct conn *conn; /* connection to the daemon; NULL: the runtime does not listen */
	struct daemon *daemon;
	uint64_t n_active_before; /* activations during earlier runs of the runtime */

	json_t *lie; /* wrong_sync.h; NULL: Synchronize is correct */
	json_t *updates; /* updates applied since the last query of them */
	json_t *problems; /* mistakes of the plugin since the last query */
	uint64_t n_updates, n_needless, n_problems, n_unsolicited, n_synchronizations;
	void (*on_event)(json_t *event, void *arg); /* receives an event and its reference */
	void *on_event_arg;
};

int sim_new(const struct sim_options *options, struct sim **ret, struct err *err);
struct sim *sim_free(struct sim *s); /* accepts NULL; returns NULL */

/* Sets up a node from a scenario's head (machine, release …); options take precedence. Writes the
 * machine's tree. */
int sim_setup(struct sim *s, const json_t *head, struct err *err);
/* Runs the loop until over() returns true. Returns 0, -ETIMEDOUT, or -EINTR after an interrupt by
 * the user. timeout_ms UINT64_MAX: no limit. */
int sim_wait(struct sim *s, bool (*over)(struct sim *s, void *arg), void *arg, uint64_t timeout_ms);
/* Makes sim_wait call over() again; for callbacks. */
void sim_wake(struct sim *s);
/* Reports a mistake of the plugin. */
void sim_problem(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Publishes an event: `details` with the key "event" added. Takes the reference of details. */
void sim_event(struct sim *s, const char *what, json_t *details);
/* Reads the tree again after CPUs went online or offline. */
int sim_look(struct sim *s, struct err *err);
/* Returns the nodes with memory; all nodes, if the tree describes the memory of none. */
struct rp_ids sim_memory(const struct sim *s);
