/* SPDX-License-Identifier: Apache-2.0 */
/* Balloons, their members, and the changes to both, with undo. */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/plan.h"
#include <nri-rp/lib/memalloc.h>
#include "modules/lib/private/pct.h"
#include "modules/lib/private/table.h"

struct balloon;

/* A container in a balloon. */
struct member {
	rp_ctr ctr;
	rp_pod pod;
	struct balloon *balloon;
	uint32_t index; /* index in balloon->members */
	uint32_t memory_types;
	int64_t request, mem_limit;
	struct member *pod_next, *pod_prev;
	char *space, *group; /* namespace and group if the type keeps them together; or NULL */
	uint32_t qos;
	bool hide_threads, pin_memory, preserve_memory;
	bool claim; /* a claim, which is the only member of its balloon */
	bool fresh; /* the settings that depend on the container's request are not staged yet */
	bool follow; /* memory follows the CPUs at the next pin, even with the same nodes */
	/* a member of the same balloon before: the next pin leaves the memory where it is accounted
	 * for */
	bool keeps_memory;
	uint32_t moves; /* number of moves by rebalancing */
};

struct near;

#define STATE_HASHES 16u
uint32_t state_hash(const char *text); /* below STATE_HASHES; NULL: 0 */

struct balloon {
	const struct type *type;
	uint32_t instance;
	uint32_t group; /* group number for CPUs shared by the members; 0: a part */
	uint32_t n_parts, cap_parts;
	struct balloon **parts; /* balloons of the components of a composite balloon */
	struct balloon *whole; /* composite balloon of which this is a part, or NULL */
	struct balloon *next; /* list of balloons removed by undo */
	struct rp_idset cpus, shared;
	uint32_t n_cpus; /* number of CPUs in cpus */
	memalloc_mask nodes; /* memory nodes near the CPUs, when last pinned */
	struct member **members;
	uint32_t n_members, cap_members;
	/* Numbers of members by the hash of their group, and of their namespace. If the number for
	 * a hash is 0, no member has that group or namespace. */
	uint32_t n_of_group[STATE_HASHES], n_of_space[STATE_HASHES];
	int64_t request; /* sum over all members, milli-CPU */
	/* restored balloon: request, memory nodes and memory types when the image was written */
	int64_t request_before;
	memalloc_mask nodes_before; /* 0: unknown */
	uint32_t types_before;
	bool dirty; /* the members must be pinned again */
	struct near
		*near; /* devices of the container for which the balloon was created; NULL: none */
};

struct undo;

struct state {
	const struct modhost *h;
	const struct rp_plan *plan;
	const struct pct *pct; /* CPU classes of Speed Select; NULL: CPU classes do not use it */
	struct rp_idset free;
	/* CPUs of balloons that containers without a balloon also use, so that they are not
	 * exclusive; visited_before: the value before the operation */
	struct rp_idset visited, visited_before;
	struct balloon **list;
	uint32_t n, cap;
	struct table by_ctr; /* struct member by container */
	struct table by_pod; /* first struct member of a pod */
	struct memalloc *memory; /* accounting of memory; NULL: no type pins memory */
	struct rp_idset *load_cpus; /* CPUs slowed by each load class */
	/* by type: smallest request that found no room in the current retry of waiting
	 * containers */
	int64_t *refused;
	uint8_t *counted; /* marks of the types visited by count_family() */
	/* Undo log of the running operation. */
	struct undo *undo;
	uint32_t n_undo, cap_undo;
	struct balloon *undone;
	/* true after an allocation failure in the undo log: the state must be rebuilt */
	bool failed_undo;
	const struct near *making; /* devices for the balloon being created */
	const struct near *near; /* devices for the balloon being resized */
	bool sets_changed; /* the CPUs of a balloon changed */
	bool image_stale;
};

/* Creates a state without balloons; all allowed CPUs are free. */
int32_t state_new(const struct modhost *h, const struct rp_plan *plan, struct state **ret);
struct state *state_free(struct state *s); /* returns NULL */
/* Begins an operation. Earlier changes become final. */
void state_begin(struct state *s);
/* state_mark() returns a position in the undo log. state_undo_to() reverts the changes since
 * that position. state_undo() reverts the operation; false: not possible, the state must be
 * rebuilt. */
uint32_t state_mark(const struct state *s);
void state_undo_to(struct state *s, uint32_t mark);
bool state_undo(struct state *s);
/* Saves the CPUs, shared CPUs and nodes of a balloon, or the free CPUs, in the undo log. Callers
 * change them afterwards. */
void state_save(struct state *s, struct balloon *b);
void state_save_free(struct state *s);

int32_t state_add_balloon(struct state *s, struct balloon *b);
/* Adds a balloon of an earlier state; its CPUs must be free. Frees the balloon if its number is
 * in use or its type would exceed maxBalloons. */
int32_t state_bring_back(struct state *s, struct balloon *b);
/* Adds a balloon with free CPUs. Frees the balloon without memory. Returns 0 or -RP_ENOMEM. */
int32_t state_restore(struct state *s, struct balloon *b);
void state_remove_balloon(struct state *s, struct balloon *b); /* freed by the next operation */
struct balloon *balloon_free(struct balloon *b); /* frees the parts as well; returns NULL */
/* Returns the top-level balloon with this number, or NULL. */
struct balloon *state_find(const struct state *s, const struct type *t, uint32_t instance);
/* Returns the balloon of the type with exactly these CPUs, or NULL. Ignores balloons without
 * CPUs. */
struct balloon *state_with(const struct state *s, const struct type *t, struct rp_ids cpus);
uint32_t state_count(const struct state *s,
		     const struct type *t); /* number of top-level balloons of the type */

struct member *state_member(const struct state *s, rp_ctr ctr);
/* Makes m a member of the balloon. Takes ownership of m, also on failure. */
int32_t state_join(struct state *s, struct balloon *b, struct member *m, const char *space,
		   const char *group);
void state_leave(struct state *s, struct member *m);
/* Removes the member like state_leave(), but keeps its memory allocation: the container is about
 * to join another balloon. */
void state_detach(struct state *s, struct member *m);
/* Counts a move of the container by rebalancing. */
int32_t state_count_move(struct state *s, struct member *m);
int32_t state_set_request(struct state *s, struct member *m, int64_t request, int64_t mem_limit);

/* ---- balloons (place_balloon.c) -------------------------------------------------------------- */

int64_t balloon_avail(const struct balloon *b); /* milli-CPU of its current CPUs */
int64_t balloon_max_avail(const struct state *s,
			  const struct balloon *b); /* milli-CPU after growth */
int64_t balloon_max_avail_of(const struct balloon *b, uint32_t n_free); /* with n_free free CPUs */
/* Updates n_cpus after the CPUs have changed. */
void balloon_count_cpus(struct balloon *b);
/* Creates a balloon with CPUs for mcpu, at least minCPUs, and adds it to the list. Takes
 * ownership of near (NULL: no devices) in any case. Returns 0, 1 with the reason in *why if no
 * such balloon is possible, or -RP_ENOMEM. */
int32_t balloon_create(struct state *s, const struct type *t, int64_t mcpu, struct near *near,
		       struct balloon **ret, const char **why);
/* Gives the balloon CPUs for mcpu, within the limits of its type. Returns 0, or -RP_ENOSPC or
 * -RP_ENOMEM with the reason in *why. After an error some parts may have a new size. */
int32_t balloon_resize(struct state *s, struct balloon *b, int64_t mcpu, const char **why);
/*
 * Shrinks the balloon to the size that its remaining members need, after members left or reduced
 * their requests. The balloon is unchanged if that size needs more CPUs than are free, which
 * minCPUs can cause. Returns 0 or -RP_ENOMEM.
 */
int32_t balloon_shrink(struct state *s, struct balloon *b, const char **why);
/* Creates the balloons that minBalloons requires, highest allocator priority first. */
int32_t balloon_precreate(struct state *s);
/* Deletes a balloon without members, or shrinks it if minBalloons requires the balloon. */
int32_t balloon_emptied(struct state *s, struct balloon *b);
/* Writes TYPE[NUMBER]. */
void balloon_name(const struct balloon *b, char *buf, size_t size);
/* Allocates a balloon without CPUs that is in no list. */
struct balloon *balloon_alloc(const struct type *t, uint32_t instance);
int32_t balloon_add_part(struct balloon *b, struct balloon *part);
/*
 * Returns the lowest number that no balloon of the type has, components included. `whole` (NULL:
 * none) is a composite balloon under construction, which is in no list.
 */
uint32_t balloon_free_instance(const struct state *s, const struct type *t,
			       const struct balloon *whole);
/* Returns true if a restored balloon with its parts may be added to the list. */
bool balloon_is_welcome(const struct state *s, const struct balloon *b);
/* Returns the number of CPUs of a balloon of the type, not composite, that serves mcpu. */
int64_t balloon_wanted(const struct type *t, int64_t mcpu);

/* Chooses n of the free CPUs for a balloon, or n of its CPUs to release (place_size.c). Returns 0,
 * -RP_ENOSPC or -RP_ENOMEM. */
int32_t resize_grow(struct state *s, const struct balloon *b, uint32_t n, struct rp_idset *ret);
int32_t resize_shrink(struct state *s, const struct balloon *b, uint32_t n, struct rp_idset *ret);
/* Sets *ret to the CPUs of high-priority CPU classes, without those of balloon `but` (NULL:
 * include all). */
void resize_high(const struct state *s, const struct balloon *but, struct rp_idset *ret);
/* Finds the CPUs that loads of other balloons slow, for resize_misses(). */
void resize_look_at_others(struct state *s, struct balloon *b);
/* Returns how many of the CPUs violate a hint of the type. Hints are numbered: close devices in
 * their order, then far devices. */
uint32_t resize_misses(const struct state *s, const struct type *t, uint32_t hint,
		       struct rp_ids cpus);
