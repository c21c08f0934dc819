/* SPDX-License-Identifier: Apache-2.0 */
/* Types and functions shared by cgroup_source.c, cgroup_plugin.c, cgroup_writer.c and
 * describe.c. */
#pragma once

#include "core/nri-rp-bridge/plugin.h"
#include "core/nri-rp-bridge/bundle.h"
#include "core/nri-rp-bridge/cgroup_source.h"
#include "core/nri-rp-bridge/cgroup_files.h"
#include "core/nri-rp-bridge/cri_edit.h"
#include "core/nri-rp-bridge/kubepods.h"

struct write_run;

struct cgroup_source {
	struct plugin plugin; /* must be the first member */
	struct cgroup_source_config config;
	struct cgroup_fs files;
	struct kubepods *kubepods;
	struct podlist *pods;
	struct worker *writer; /* writes cgroup files; a write may take seconds */
	struct loop_timer *reconcile, *soon;
	uint64_t soon_ms; /* time at which `soon` is due */
	bool advancing, again;
	struct arena *sync_arena; /* messages of a Synchronize in progress */
	/* time since which a Synchronize has waited for the pod list; 0: none waits */
	uint64_t sync_ms;
	bool truncated; /* the last walk found too many cgroups */
	uint64_t drifted, failed; /* files written again because of drift; failed writes */
};

/* ---- cgroup_source.c ---- */

/* Sends the next requests and events to the plugin. Called after a walk and after an answer. */
void cgroup_source_advance(struct cgroup_source *s);
/* Schedules a walk of the changed folders after `ms`, or earlier if one is due earlier. */
void cgroup_source_soon(struct cgroup_source *s, uint64_t ms);
void cgroup_source_status(struct cgroup_source *s);

/* ---- cgroup_plugin.c ---- */

/* Queues a request or event for the plugin. ctr NULL: the request or event is about the pod. */
void cgroup_tell(struct cgroup_source *s, Nri__Event event, struct pod *pod, struct ctr *ctr);
/* Handles the plugin's answer to a request or event. */
void cgroup_heard(struct notice *n, const struct rpc_result *result, void *source);
/* Collects fields that cgroups cannot express, then logs them once for each container. */
void missing_add(struct cri_missing *missing, bool wanted, const char *field);
void missing_log(struct ctr *ctr, const struct cri_missing *missing);
/* Sends an update to the plugin for each container whose resources in the pod list have changed. */
void resize_all(struct cgroup_source *s);
/* Returns the resources that the plugin has wanted of the container so far, in the arena. NULL:
 * none (pending is empty), or out of memory. */
Cri__Resources *wanted_before(const struct ctr *ctr, struct arena *a);
/* Starts the writes for a list of updates. Returns the number of those that could not be started.
 * keep: failed writes are tried again later; otherwise `run` reports them to the plugin. run NULL:
 * no report. */
unsigned want_all(struct cgroup_source *s, Nri__ContainerUpdate *const *list, size_t n, bool keep,
		  struct write_run *run);
/* Stores the CPUs and memory nodes sent to the plugin as its wishes, if it has wanted something of
 * the container before: an update for the container may never come. -ENOMEM. */
int want_as_told(struct ctr *ctr, const Nri__Container *m);

/* ---- cgroup_writer.c ---- */

/* The writes for one request of the plugin. The request is answered when the last write has
 * ended. */
struct write_run {
	struct cgroup_source *source;
	unsigned left, failed;
};
/* Creates a run that counts one write as running; write_run_end() ends that write. NULL: out of
 * memory. */
struct write_run *write_run_new(struct cgroup_source *s);
void write_run_end(struct write_run *run);

struct write_how {
	/* after a failed write, keep the new wanted resources instead of restoring the previous
	 * ones */
	bool keep;
	bool ignore; /* a removed container is not a failure */
	/* counts the write for the request that waits for it; NULL: no request waits */
	struct write_run *run;
};
/* Adds the resources to the container's resources that the plugin wants, and starts to write them.
 * Errors of the files are logged and counted in the run. */
int write_wanted(struct cgroup_source *s, struct ctr *ctr, const Nri__LinuxResources *resources,
		 const struct write_how *how, struct err *err);
/* Starts to rewrite files that differ from the resources that the plugin wants. settled: the
 * runtime has finished writing the files, so a difference is counted as drift. */
void write_again(struct cgroup_source *s, struct ctr *ctr, bool settled);

/* ---- describe.c ---- */

/* Returns the pod as an NRI message. NULL: out of memory. */
Nri__PodSandbox *describe_pod(const struct cgroup_source *s, struct arena *a,
			      const struct pod *pod);
/* Returns the container as an NRI message. `fresh` true: with the resources requested at its
 * creation; false: with those in its files. NULL: out of memory. */
Nri__Container *describe_ctr(struct cgroup_source *s, struct arena *a, struct ctr *ctr, bool fresh);
/* Returns true if the container's resources in the pod list differ from the resources that the
 * plugin has accepted. *ret gets the resources to send. */
bool describe_resize(const struct cgroup_source *s, struct ctr *ctr, Cri__Resources *ret);
/* Records that the plugin has accepted the resize. The new amounts replace the amounts that the
 * plugin wanted before. -ENOMEM. */
int describe_resized(struct ctr *ctr);
