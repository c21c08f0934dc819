/* SPDX-License-Identifier: Apache-2.0 */
/* Balloons and who is in them, and how both change. */
#ifndef BALLOONS_PLACE_STATE_H
#define BALLOONS_PLACE_STATE_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/plan.h"
#include "modules/lib/memalloc.h"
#include "modules/lib/pct.h"
#include "modules/lib/table.h"

struct balloon;

/* A container in a balloon. */
struct member {
	rp_ctr ctr;
	rp_pod pod;
	struct balloon *balloon;
	uint32_t index; /* in its balloon */
	uint32_t memory_types;
	int64_t request, mem_limit;
	struct member *pod_next, *pod_prev;
	char *space, *group; /* namespace and group, where its type ties by these; or NULL */
	uint32_t qos;
	bool hide_threads, pin_memory, preserve_memory;
	bool fresh; /* what depends on its request has to be set */
	bool follow; /* its memory has to follow its CPUs, even if they are near the same nodes */
	uint32_t moves; /* how often it was moved for the better */
};

struct near;

struct balloon {
	const struct type *type;
	uint32_t instance;
	uint32_t group; /* its members own its CPUs together; 0: it is a part of another */
	uint32_t n_parts, cap_parts;
	struct balloon **parts; /* of a composite one */
	struct balloon *whole; /* whose part this is, or NULL */
	struct balloon *next; /* of those that an undo has taken out */
	struct rp_idset cpus, shared;
	uint32_t n_cpus; /* in cpus */
	memalloc_mask nodes; /* where its members' memory was placed last */
	struct member **members;
	uint32_t n_members, cap_members;
	int64_t request; /* of all members, milli-CPU */
	int64_t request_before; /* of one from an image: when that was written */
	bool dirty; /* its members have to be pinned anew */
	struct near
		*near; /* devices of the container that it was made for; NULL: none that count */
};

struct undo;

struct state {
	const struct modhost *h;
	const struct rp_plan *plan;
	const struct pct *pct; /* NULL: CPU classes have nothing to do with Speed Select */
	struct rp_idset free;
	/* CPUs of balloons where containers without a place run, so that these are nobody's alone;
	 * as it was before the operation */
	struct rp_idset visited, visited_before;
	struct balloon **list;
	uint32_t n, cap;
	struct table by_ctr; /* struct member */
	struct table by_pod; /* its first member here */
	struct memalloc *memory; /* NULL: nobody's is pinned */
	struct rp_idset *load_cpus; /* of each load class */
	/* of each type: the least that there was no room for, while waiting containers are tried */
	int64_t *refused;
	uint8_t *counted; /* of each type: while those of a component are counted */
	/* What the running operation did. */
	struct undo *undo;
	uint32_t n_undo, cap_undo;
	struct balloon *undone;
	/* memory ran out: what was done cannot be taken back, all has to be rebuilt */
	bool failed_undo;
	const struct near *making; /* devices for the balloon that is being made */
	const struct near *near; /* those that count for the balloon that is being resized */
	bool sets_changed; /* some balloon's CPUs */
	bool image_stale;
};

int32_t state_new(const struct modhost *h, const struct rp_plan *plan, struct state **ret);
struct state *state_free(struct state *s); /* returns NULL */
/* An operation begins: what came before is final. */
void state_begin(struct state *s);
/* Takes everything back since state_begin, or since a mark. False: that was not possible. */
uint32_t state_mark(const struct state *s);
void state_undo_to(struct state *s, uint32_t mark);
bool state_undo(struct state *s);
/* Before CPUs, shared CPUs or nodes of a balloon change. */
void state_save(struct state *s, struct balloon *b);
void state_save_free(struct state *s);

int32_t state_add_balloon(struct state *s, struct balloon *b);
/* One that was there before, out of free CPUs; it is freed when there are enough of its type. */
int32_t state_bring_back(struct state *s, struct balloon *b);
void state_remove_balloon(struct state *s, struct balloon *b); /* freed with the next operation */
struct balloon *balloon_free(struct balloon *b); /* with its parts; returns NULL */
/* The one of this number in the list, or NULL. */
struct balloon *state_find(const struct state *s, const struct type *t, uint32_t instance);
uint32_t state_count(const struct state *s,
		     const struct type *t); /* top-level balloons of the type */

struct member *state_member(const struct state *s, rp_ctr ctr);
/* m is the state's from now on, also when it fails. */
int32_t state_join(struct state *s, struct balloon *b, struct member *m, const char *space,
		   const char *group);
void state_leave(struct state *s, struct member *m);
/* The same, but its memory stays: it is about to join another balloon. */
void state_detach(struct state *s, struct member *m);
/* Counts that rebalancing has moved the container. */
int32_t state_count_move(struct state *s, struct member *m);
int32_t state_set_request(struct state *s, struct member *m, int64_t request, int64_t mem_limit);

/* ---- balloons (place_balloon.c) -------------------------------------------------------------- */

int64_t balloon_avail(const struct balloon *b); /* milli-CPU it has */
int64_t balloon_max_avail(const struct state *s, const struct balloon *b); /* it could have now */
int64_t balloon_max_avail_of(const struct balloon *b, uint32_t n_free); /* with so many free CPUs */
/* Its CPUs have changed. */
void balloon_count_cpus(struct balloon *b);
/* Creates a balloon with the CPUs for mcpu, minCPUs at least, and adds it to the list. Takes over
 * near (NULL: nothing) in any case. 0; 1: not applicable, *why says why; or -RP_ENOMEM. */
int32_t balloon_create(struct state *s, const struct type *t, int64_t mcpu, struct near *near,
		       struct balloon **ret, const char **why);
/* Gives it the CPUs for so much, within its limits. 0; or -RP_ENOSPC or -RP_ENOMEM with the reason,
 * some parts may be resized then. */
int32_t balloon_resize(struct state *s, struct balloon *b, int64_t mcpu, const char **why);
/*
 * Members of it need less than before, or have left. It gets the size for those that are left,
 * and keeps what it has when that would take more CPUs than there are. 0 or -RP_ENOMEM.
 */
int32_t balloon_shrink(struct state *s, struct balloon *b, const char **why);
void balloon_delete(struct state *s, struct balloon *b);
/* The balloons that the configuration wants to be there from the start. */
int32_t balloon_precreate(struct state *s);
/* The balloon without members: shrinks it, and deletes it unless it is one of minBalloons. */
int32_t balloon_emptied(struct state *s, struct balloon *b);
void balloon_name(const struct balloon *b, char *buf, size_t size);
/* A bare one, for sync_image.c. */
struct balloon *balloon_alloc(const struct type *t, uint32_t instance);
int32_t balloon_add_part(struct balloon *b, struct balloon *part);
/*
 * The lowest number that no balloon of the type has, components included; `whole` (NULL: none)
 * is being made, and in no list.
 */
uint32_t balloon_free_instance(const struct state *s, const struct type *t,
			       const struct balloon *whole);
/* May one that was there before, with all its parts, be among those in the list? */
bool balloon_is_welcome(const struct state *s, const struct balloon *b);
/* CPUs of one of the type, not a composite one, for so much. */
int64_t balloon_wanted(const struct type *t, int64_t mcpu);

/* place_size.c: n CPUs of the free ones for a balloon, or n of its own to give up. 0, -RP_ENOSPC or
 * -RP_ENOMEM. */
int32_t resize_grow(struct state *s, const struct balloon *b, uint32_t n, struct rp_idset *ret);
int32_t resize_shrink(struct state *s, const struct balloon *b, uint32_t n, struct rp_idset *ret);
/* CPUs that classes of high priority have, but for one balloon (NULL: all). */
void resize_high(const struct state *s, const struct balloon *but, struct rp_idset *ret);
/* What the loads of others make slow at present, for resize_misses(). */
void resize_look_at_others(struct state *s, struct balloon *b);
/* Of some CPUs, how many a hint of the type would rather not have: the close ones first, in their
 * order, then the far ones. */
uint32_t resize_misses(const struct state *s, const struct type *t, uint32_t hint,
		       struct rp_ids cpus);

#endif
