/* SPDX-License-Identifier: Apache-2.0 */
/* What cgroup_source.c, cgroup_plugin.c, cgroup_writer.c and describe.c share. */
#ifndef NRI_RP_BRIDGE_CGROUP_SOURCE_INTERNAL_H
#define NRI_RP_BRIDGE_CGROUP_SOURCE_INTERNAL_H

#include "core/nri-rp-bridge/ask.h"
#include "core/nri-rp-bridge/bundle.h"
#include "core/nri-rp-bridge/cgroup_source.h"
#include "core/nri-rp-bridge/cgroup_files.h"
#include "core/nri-rp-bridge/cri_edit.h"
#include "core/nri-rp-bridge/kubepods.h"

struct word;
struct write_run;

struct bypass {
	struct bypass_config config;
	struct cgroup_fs files;
	struct kubepods *kubepods;
	struct podlist *pods;
	struct nri_runtime *nri;
	struct model model; /* pods by the ids of their sandboxes */
	struct word *words;
	struct worker *writer; /* writes the files of cgroups, which may take seconds */
	struct loop_timer *reconcile, *soon;
	uint64_t soon_ms; /* when that timer is due */
	bool advancing, again;
	struct arena *sync_arena; /* what a Synchronize under way tells */
	uint64_t sync_ms; /* since when a Synchronize waits for the list; 0: none does */
	bool truncated; /* the last walk met too many */
	uint64_t drifted, failed; /* files that were written again; writes that failed */
};

/* ---- cgroup_source.c ---- */

/* What is to be told next: after a walk, and after an answer. */
void bypass_advance(struct bypass *b);
/* Looks again after a while, or before. */
void bypass_soon(struct bypass *b, uint64_t ms);
void bypass_status(struct bypass *b);

/* ---- cgroup_plugin.c ---- */

/* Told when its turn comes; out of memory is logged. ctr NULL: an event of the pod. */
void word_say(struct bypass *b, Nri__Event event, struct pod *pod, struct ctr *ctr);
void words_free(struct bypass *b);
/* Collects what cannot be done, and says it once of each container. */
void word_miss(struct cri_missing *missing, bool wanted, const char *field);
void word_say_missing(struct ctr *ctr, const struct cri_missing *missing);
/* Containers of which the list says something else than before are told so: a resize. */
void resize_all(struct bypass *b);
/* What the plugin has wanted of a container so far, in the arena. NULL: nothing (pending is empty),
 * or no memory. */
Cri__Resources *wanted_before(const struct ctr *ctr, struct arena *a);
/* How many could not even be tried. keep: those that fail are tried again; else the plugin hears of
 * them, by the run; NULL: by nothing. */
unsigned want_all(struct bypass *b, Nri__ContainerUpdate *const *list, size_t n, bool keep,
		  struct write_run *run);
/* Of a container of which something was wanted before, the CPUs and nodes that it has been told to
 * have are what is wanted: no update may come for it. -ENOMEM. */
int want_as_told(struct ctr *ctr, const Nri__Container *m);

/* ---- cgroup_writer.c ---- */

/* Writes for one request of the plugin, which is answered when the last one has ended. */
struct write_run {
	struct bypass *bypass;
	unsigned left, failed;
};
/* With one write under way, which write_run_end ends. NULL: out of memory. */
struct write_run *write_run_new(struct bypass *b);
void write_run_end(struct write_run *run);

struct write_how {
	bool keep; /* on a failure what was wanted before is not restored */
	bool ignore; /* a container that has gone is no failure */
	struct write_run *run; /* NULL: nobody waits */
};
/* Has the files say what the plugin wants of a container besides what it has wanted so far. Errors
 * of the files are logged, and counted by the run. */
int write_wanted(struct bypass *b, struct ctr *ctr, const Nri__LinuxResources *resources,
		 const struct write_how *how, struct err *err);
/* Has files that do not say what is wanted written again. settled: no one else writes them by
 * now. */
void write_again(struct bypass *b, struct ctr *ctr, bool settled);

/* ---- describe.c ---- */

/* NULL: out of memory. */
Nri__PodSandbox *describe_pod(const struct bypass *b, struct arena *a, const struct pod *pod);
/* `anew`: as it was asked for when it was created; else as its files are. */
Nri__Container *describe_ctr(struct bypass *b, struct arena *a, struct ctr *ctr, bool anew);
/* The list says something else of its resources than what the plugin has taken: what to ask it. */
bool describe_resize(const struct bypass *b, struct ctr *ctr, Cri__Resources *ret);
/* It has taken that: where amounts are wanted, these are. -ENOMEM. */
int describe_resized(struct ctr *ctr);

#endif
