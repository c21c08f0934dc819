/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation relief: the choice of containers to move so that one NUMA node has enough free CPUs
 * for another container. Nodes are called units here, since the search applies to caches and
 * packages as well.
 *
 * relief_find() is a pure function: equal arguments give equal results. The configuration that all
 * policies with relief share follows below.
 */
#ifndef NRI_RP_LIB_RELIEF_H
#define NRI_RP_LIB_RELIEF_H

#include <stdbool.h>

#include <nri-rp/lib/section.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RELIEF_MOVES_MAX 3u
#define RELIEF_UNITS_MAX 64u
/* largest number of candidates of one unit: those of the lowest relief_rank() */
#define RELIEF_CANDIDATES_MAX 14u
#define RELIEF_ITEMS_MAX (RELIEF_UNITS_MAX * RELIEF_CANDIDATES_MAX)
/* largest number of tried moves; the search then returns the best list so far */
#define RELIEF_WORK_MAX 20000u
/* Cost of an exchange of exclusive CPUs, in bytes of migrated memory. */
#define RELIEF_COST_EXCLUSIVE (INT64_C(1) << 30)
/* largest cost of memory; sums of costs stay far below the limits of the type */
#define RELIEF_COST_MEMORY_MAX (INT64_C(1) << 50)

struct relief_unit {
	int64_t free; /* free capacity of the unit, at least 0 */
};

/* A container whose CPUs lie in exactly one unit. */
struct relief_item {
	uint32_t unit;
	uint32_t pad;
	int64_t size; /* capacity that the item needs, more than 0 */
	uint64_t allowed; /* units in which the container may lie, as bits */
	int64_t cost; /* cost of moving the item, relief_cost(), or a small number of such costs */
};

/* Returns the cost of moving a container with so many bytes of memory; below 0: unlimited. */
static inline int64_t relief_cost(bool exclusive, int64_t memory)
{
	int64_t cost = exclusive ? RELIEF_COST_EXCLUSIVE : 0;
	cost += memory < 0 ? 0 : memory < RELIEF_COST_MEMORY_MAX ? memory : RELIEF_COST_MEMORY_MAX;
	return cost;
}

struct relief_move {
	uint32_t item, to; /* indexes of the item and of its new unit */
};

/*
 * Finds the cheapest list of at most max_moves moves after which one of the wanted units has `size`
 * free and no unit is overfull. Shorter lists come first, then those with lower total cost, then
 * those with lower indexes. All moves are made at once: an item may take the place of another one
 * that is moved.
 *
 * Returns the number of moves (0: a unit has enough already) and stores the unit, or returns
 * -RP_ENOSPC. The result is exact if no unit has more than RELIEF_CANDIDATES_MAX movable items and
 * RELIEF_WORK_MAX suffices.
 */
int32_t relief_find(const struct relief_unit *units, uint32_t n_units,
		    const struct relief_item *items, uint32_t n_items, int64_t size,
		    uint64_t wanted, uint32_t max_moves, struct relief_move ret[RELIEF_MOVES_MAX],
		    uint32_t *ret_unit);

/*
 * Ranks an item of a unit that lacks so much. At least one of the items that leave the unit is as
 * large as the lacking amount divided by the moves: the smallest of these comes first. All others
 * follow, the largest first.
 */
int64_t relief_rank(int64_t size, int64_t lacks, uint32_t moves);

struct relief_candidate {
	int64_t rank, size;
	uint64_t key;
	int64_t cost;
};

/* The best candidates of a unit that were not checked before, by relief_rank() and key. */
struct relief_candidates {
	int64_t part; /* size from which relief_rank() prefers small containers */
	struct relief_candidate list[RELIEF_CANDIDATES_MAX], last; /* last: the last checked one */
	uint32_t n, n_items;
	bool all; /* the list is complete: no further candidates are added */
};

/* A search whose items the policy names by keys: the handle of a container, or an index. */
struct relief_question {
	uint32_t n_units;
	struct relief_unit units[RELIEF_UNITS_MAX];
	void *ctx;
	/* Names all containers that lie in one unit, by relief_offer() or relief_offer_cost(). It
	 * is called again as long as containers were refused. */
	void (*offer)(void *ctx, struct relief_question *q);
	/* Returns true if the container may be moved, and stores its cost and units. It is called
	 * for the best candidates only, as it may be expensive. NULL: all may be moved to each unit
	 * at the offered cost. */
	bool (*accept)(void *ctx, uint64_t key, struct relief_item *ret);
	/* Returns true if an accepted container may be moved. It is called for the containers of
	 * the best moves, and if one of them must stay, for all candidates. NULL: all may. */
	bool (*may_move)(void *ctx, uint64_t key);
	/* Results of relief_ask(). */
	struct relief_item items[RELIEF_ITEMS_MAX];
	uint64_t keys[RELIEF_ITEMS_MAX]; /* key of each item */
	uint32_t n_items, n_moves;
	struct relief_move moves[RELIEF_MOVES_MAX];
	uint32_t unit; /* the unit that has room after the moves */
	bool checks; /* may_move is called for all candidates */
	struct relief_candidates candidates[RELIEF_UNITS_MAX]; /* used by relief_ask() itself */
};

/* Finds items and moves. The caller has set the units, ctx and the functions, nothing else.
 * Returns the number of moves, or -RP_ENOSPC if there are none. */
int32_t relief_ask(struct relief_question *q, int64_t size, uint64_t wanted, uint32_t max_moves);
/* Offers one container. Each call of `offer` must name the same containers by the same
 * keys; keys are at least 1. */
void relief_offer(struct relief_question *q, uint32_t unit, int64_t size, uint64_t key);
/* Offers one container whose cost is at hand, so that `accept` need not store it. */
void relief_offer_cost(struct relief_question *q, uint32_t unit, int64_t size, int64_t cost,
		       uint64_t key);

/* ---- configuration --------------------------------------------------------------------------- */

enum relief_when { RELIEF_REBALANCE, RELIEF_ADMISSION };
enum relief_exclusive { RELIEF_NEVER, RELIEF_ANNOTATED, RELIEF_ALL };

struct relief_settings {
	uint32_t moves; /* largest number of containers moved at once; 0: no relief */
	enum relief_when at;
	enum relief_exclusive exclusive;
	int64_t cooldown_ms;
};

#define RELIEF_KEYS                                                                                \
	SECTION_MAP("relief",                                                                      \
		    "Moves of containers so that another container fits into one NUMA node."),     \
		SECTION_KEY("relief.moves", INT,                                                   \
			    "Maximum number of containers that are moved for one container; 0: "   \
			    "none. Default 3, with parity 0.",                                     \
			    .max = RELIEF_MOVES_MAX),                                              \
		SECTION_CHOICE("relief.at", "rebalance|admission", "rebalance",                    \
			       "Whether containers are moved during rebalancing, or already when " \
			       "the container is created."),                                       \
		SECTION_CHOICE("relief.exclusive", "never|annotated|all", "annotated",             \
			       "Which containers with exclusive CPUs are moved: none, those "      \
			       "annotated movable.resource-policy.nri.io: \"true\", or all."),     \
		SECTION_KEY("relief.cooldown", DURATION,                                           \
			    "Time for which a container that was moved for another one is not "    \
			    "moved again.",                                                        \
			    .fallback = "10m")

/* Reads the section `relief` of a policy's section. */
void relief_read(const struct modhost *h, rp_cfg section, bool parity, struct relief_settings *ret);

/* The annotation that allows a running container's exclusive CPUs to be exchanged, or forbids
 * moves. */
#define RELIEF_MOVABLE "movable.resource-policy.nri.io"

/* ---- movable containers ---------------------------------------------------------------------- */

#define RELIEF_MOVED_MAX 256u
#define RELIEF_SAVED_MAX (RELIEF_MOVED_MAX * 16)

/* The containers that were moved last, with the times of the moves. All zeros: none. */
struct relief_moved {
	struct relief_record {
		uint64_t key; /* hash of the runtime's id, which survives restarts; 0: unused */
		int64_t at_ms;
	} list[RELIEF_MOVED_MAX];
	uint32_t next;
};

/* Records that a container was moved for another one. */
void relief_note_move(const struct modhost *h, struct relief_moved *m, rp_ctr ctr);
/* Removes the last n records. */
void relief_forget_moves(struct relief_moved *m, uint32_t n);
/* Saves the records, and restores them in a later process. relief_save() returns the size;
 * relief_load() returns false if the bytes are none of its own. */
uint32_t relief_save(const struct relief_moved *m, uint8_t ret[RELIEF_SAVED_MAX]);
bool relief_load(const struct modhost *h, const void *data, uint32_t size,
		 struct relief_moved *ret);
/* Returns true if an annotation keeps a running container where it is, also when the node is
 * rebalanced. */
bool relief_must_stay(const struct modhost *h, rp_ctr ctr);
/* Returns true if annotations and configuration allow that a running container is moved. */
bool relief_may_be_moved(const struct modhost *h, const struct relief_settings *s,
			 const struct rp_ctr_info *info, bool exclusive);
/* Returns true if the container may be moved for another one now: it also runs, and was not moved
 * within the cooldown. The policy checks devices, hints and affinities. */
bool relief_may_move(const struct modhost *h, const struct relief_settings *s,
		     const struct relief_moved *m, const struct rp_ctr_info *info, bool exclusive);

/* Explains both sides of a move in the trails of the containers, by the numbers of NUMA nodes. */
void relief_note_moved(const struct modhost *h, rp_ctr moved, uint32_t from, uint32_t to,
		       const struct rp_ctr_info *other);
void relief_note_placed(const struct modhost *h, rp_ctr ctr, uint32_t node, uint32_t n_moves);

#ifdef __cplusplus
}
#endif
#endif
