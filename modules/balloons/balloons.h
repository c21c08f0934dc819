/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The balloons policy: containers run in balloons, disjoint sets of CPUs that grow and shrink with
 * what their containers ask for.
 *
 * A configuration on the machine as it is makes a `struct rp_plan`; what is placed where under it
 * is a `struct state`. A state is always made anew in the same way, by a reload, a reconnect and a
 * restart alike: an image of the one before says which CPUs each balloon had (image.c), and what is
 * kept with each container says in which balloon it was (pin.c):
 *
 *	state ── image_write ──> image ── image_restore ──> balloons ── rejoin ──> members
 *	                                                            record of each container ─┘
 *
 * Where there is no image, the containers have come from another policy, which adopt.c looks at.
 *
 *	keys.c, config.c   section → types
 *	match.c            globs, expressions, groups
 *	resize.c           which CPUs come and go
 *	balloon.c          create, resize, delete
 *	pin.c              into the transaction
 *	sync.c             everything at once
 *	plan.c             types + machine → plan; built-ins, hints, checks
 *	tree.c             the machine as a tree
 *	state.c            balloons, members, undo
 *	choose.c           which type, which balloon
 *	image.c            everything as bytes, and back
 *	adopt.c            balloons of what another policy gave
 *	devices.c          devices that containers have
 *	rebalance.c        who would be placed better
 *	outside.c          CPU classes, interrupts
 *	compact.c          better CPUs for a balloon
 *	report.c           zones, metrics, explanations
 *	extended.c         extended resources            balloons.c the callbacks
 */
#ifndef BALLOONS_BALLOONS_H
#define BALLOONS_BALLOONS_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/tree.h"
#include "modules/lib/amount.h"
#include "modules/lib/cpualloc.h"
#include "modules/lib/cpuclass.h"
#include "modules/lib/ctr.h"
#include "modules/lib/glob.h"
#include "modules/lib/host.h"
#include "modules/lib/irq.h"
#include "modules/lib/life.h"
#include "modules/lib/match.h"
#include "modules/lib/memalloc.h"
#include "modules/lib/pct.h"
#include "modules/lib/reserve.h"
#include "modules/lib/schedclass.h"
#include "modules/lib/table.h"

#define ANNOTATION_DOMAIN "resource-policy.nri.io"

/* ---- configuration --------------------------------------------------------------------------- */

/* What CPUs can be near to, or far from. */
enum device_kind {
	DEVICE_PATH,
	DEVICE_RESERVED,
	DEVICE_ISOLATED,
	DEVICE_PERFORMANCE,
	DEVICE_EFFICIENT,
	DEVICE_LOAD, /* CPUs that a load class makes slow; they change with the balloons */
	DEVICE_POD, /* what the kubelet gave the container that a balloon is made for */
};

struct device {
	enum device_kind kind;
	uint32_t load; /* of a LOAD: the class */
	const char *path; /* of a PATH; of a POD: a glob of resources */
	struct rp_idset cpus; /* not of a LOAD or POD */
};

struct load_class {
	const char *name;
	enum tree_level level; /* CORE or L2 */
	bool in_balloon; /* CPUs of one balloon should not load each other either */
};

enum irq_mode { IRQ_NORMAL, IRQ_SINK, IRQ_ISOLATE };

struct indexes {
	uint32_t *list;
	uint32_t n;
};

struct type {
	const char *name;
	uint32_t index;
	rp_cfg at; /* NULL: built in */
	struct texts namespaces;
	struct exprs match;
	const char *group_by; /* "": none */
	int64_t min_cpus, max_cpus, min_balloons,
		max_balloons; /* max 0: no limit; max_cpus < 0: nothing fits */
	bool prefer_new, spread_pods, per_namespace, balancing, spread_cores, hide_threads;
	bool pin_memory, show_containers, prefer_isolated, balance_parts;
	enum cpualloc_prio priority;
	const char *core_type; /* "", "performance", "efficient" */
	struct texts close_paths, irq_claim;
	enum irq_mode irq_mode;
	struct indexes loads;
	struct indexes close, far; /* devices */
	bool overloads_itself; /* one of its load classes counts within a balloon */
	int share; /* enum tree_level, or -1 */
	uint32_t memory_types; /* MEMALLOC_…; 0: any near */
	const char *cpu_class_name;
	uint32_t cpu_class; /* CPUCLASS_NONE: none */
	int32_t sched; /* or SCHEDCLASS_NONE */
	struct texts part_names;
	struct indexes parts; /* types; some: it is composite */
};

struct rp_plan {
	struct blocks memory;
	rp_cfg section;
	struct amount available, reserved;
	bool pin_cpu, pin_memory, balancing, spread_cores, show_containers;
	struct texts reserved_namespaces, controllable;
	struct exprs preserve;
	struct type *types;
	uint32_t n_types;
	struct type *reserved_type, *default_type;
	struct load_class *loads;
	uint32_t n_loads;
	struct schedclasses scheds;
	struct cpuclass_defs classes;
	uint32_t idle_class;
	bool uses_irq, uses_pods;
	/* From the machine. */
	struct machine *machine;
	struct cpualloc *alloc;
	struct rp_idset allowed, reserved_cpus,
		sharable; /* sharable: what balloons may share when idle */
	struct device *devices;
	uint32_t n_devices;
	uint32_t idle_at_start; /* CPUs left when the first balloons were made */
};

extern const struct rp_schema balloons_schema;
/* Section → plan without its machine part. Errors name the place. */
int32_t config_read(const struct modhost *h, rp_cfg section, struct rp_plan *p);
/* past->hotplug: CPUs have gone away under a configuration that was fine; what is missing is no
 * error. */
int32_t plan_new(const struct modhost *h, rp_cfg section, const struct reserve_past *past,
		 struct rp_plan **ret);
void plan_past(const struct rp_plan *p, struct reserve_past *ret); /* for the next one */
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */
struct type *plan_type(const struct rp_plan *p, const char *name); /* or NULL */

/* ---- state ----------------------------------------------------------------------------------- */

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
	const char *space, *group; /* tags of its balloon; NULL: not kept */
	uint32_t qos;
	bool hide_threads, pin_memory, preserve_memory;
	bool fresh; /* what depends on its request has to be set */
	bool follow; /* its memory has to follow its CPUs, even if they are near the same nodes */
	uint32_t moves; /* how often it was moved for the better */
};

/* A text that members of a balloon have in common, and how many of them do. */
struct tag {
	char *text;
	uint32_t n;
	uint64_t emptied; /* operation that made it 0 */
};

struct tags {
	struct tag **list;
	uint32_t n;
};

struct near;

struct balloon {
	const struct type *type;
	uint32_t instance;
	uint32_t group; /* its members own its CPUs together; 0: it is a part of another */
	uint32_t n_parts;
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
	struct tags spaces, groups;
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
	uint64_t *words; /* sets as they were */
	uint32_t n_words, cap_words;
	uint64_t operation;
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
uint32_t state_count(const struct state *s,
		     const struct type *t); /* top-level balloons of the type */

struct member *state_member(const struct state *s, rp_ctr ctr);
/* m is the state's from now on, also when it fails. */
int32_t state_join(struct state *s, struct balloon *b, struct member *m, const char *space,
		   const char *group);
void state_leave(struct state *s, struct member *m);
/* The same, but its memory stays: it is about to join another balloon. */
void state_detach(struct state *s, struct member *m);
int32_t state_set_request(struct state *s, struct member *m, int64_t request, int64_t mem_limit);
const struct tag *tags_find(const struct tags *tags, const char *text); /* with members, or NULL */

/* ---- balloons (balloon.c) -------------------------------------------------------------------- */

int64_t balloon_avail(const struct balloon *b); /* milli-CPU it has */
int64_t balloon_max_avail(const struct state *s, const struct balloon *b); /* it could have now */
int64_t balloon_max_avail_of(const struct balloon *b, uint32_t n_free); /* with so many free CPUs */
/* Its CPUs have changed. */
void balloon_count_cpus(struct balloon *b);
/* 0; 1: not applicable, *why says why; or -RP_ENOMEM. The balloon is in the list then. near (NULL:
 * nothing) is its own in any case. */
int32_t balloon_create(struct state *s, const struct type *t, struct near *near,
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
#define BALLOON_NAME_MAX 160u
/* A bare one, for image.c. */
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

/* resize.c: n CPUs of the free ones for a balloon, or n of its own to give up. 0, -RP_ENOSPC or
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

/* ---- devices of containers (devices.c) ------------------------------------------------------- */

#define POD_RESOURCE "podresourceapi:"
#define DEVICES_TEXT_MAX 2900u /* RESOURCE=NODES lines, as they are kept with a container */

/* What counts of a container's devices for a balloon of the type that is made for it. NULL:
 * nothing. 0 or -RP_ENOMEM. */
int32_t devices_near(struct rp_instance *inst, rp_ctr ctr, const struct type *t, bool quiet,
		     struct near **ret);
struct near *near_free(struct near *near); /* returns NULL */
/* The balloon is about to be resized, or compared: s->near. */
void devices_look(struct state *s, const struct balloon *b);
struct rp_ids devices_cpus(const struct state *s, uint32_t device); /* of s->near */
/* A member has come or gone: what counts because of it does so as long as it is there. */
void devices_moved(const struct member *m, bool joined);
/* Do devices of this member count for its balloon? And, after a restart, that they do so again: 0
 * or -RP_ENOMEM. */
bool devices_owns(const struct member *m);
int32_t devices_restore(struct rp_instance *inst, const struct member *m);
/* The lines of a container; "": it has none. */
void devices_text(struct rp_instance *inst, rp_ctr ctr, char *text, size_t size);

/* ---- instance -------------------------------------------------------------------------------- */

struct image {
	uint8_t *data;
	uint32_t size, cap;
};

struct counters {
	uint64_t placed, refused, resized, rebalanced;
};

struct rp_instance {
	LIFE;
	struct state *state;
	struct image image; /* of the state, for save() */
	struct image before; /* of the one that sync() is to restore */
	struct cpuclass *classes;
	struct irq *irq;
	bool outside_ready; /* they were told the present configuration */
	struct counters counters;
	struct unplaced {
		rp_ctr ctr;
		/* runs unmanaged: it has no CPUs to keep, and follows those that are idle */
		bool roams;
		/* waits for nothing: it is left alone, on the CPUs that it has from an earlier
		 * time */
		bool left;
	} * unplaced; /* containers without a place; perhaps more than there still are */
	uint32_t n_unplaced, cap_unplaced;
	uint32_t rebalance_at; /* where the last rebalancing stopped as it had looked at enough */
	bool in_sync; /* the running operation is one */
};

/* ---- choosing (choose.c) --------------------------------------------------------------------- */

#define CHOOSE_TEXT_MAX 512u

struct choice {
	const struct type *type;
	struct balloon *balloon;
	const char *method;
	bool created;
	char group[MATCH_VALUE_MAX];
	char text[CHOOSE_TEXT_MAX]; /* why the type */
	char error[CHOOSE_TEXT_MAX];
	rp_cfg decided_at;
};

/* What holds a container in its balloon, the strongest first. */
enum tie { TIE_GROUP, TIE_POD, TIE_SPACE, TIE_OWN, TIE_NONE };

/* Leaves the sentence in c->error and returns code. */
int32_t choose_fail(struct choice *c, int32_t code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Whether the policy leaves the container alone entirely. */
bool choose_untouched(struct rp_instance *inst, const struct rp_ctr_info *info);
/* 0, or -RP_EINVAL, as all of these with c->error. */
int32_t choose_type(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c);
/* 0, or -RP_ENOSPC. May create a balloon. */
int32_t choose_balloon(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c);
/* Puts the container in a balloon, that is made large enough. */
int32_t choose_join(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c);
struct member *choose_member(struct rp_instance *inst, const struct rp_ctr_info *info,
			     const struct type *t);
enum tie choose_tie(const struct member *m);
/* For one that has left a balloon of c->type: one that it has a stronger tie to than `than`.
 * c->balloon is NULL when there is none. */
void choose_stronger(struct rp_instance *inst, const struct rp_ctr_info *info, enum tie than,
		     struct choice *c);
/* The balloon with most room that is not `but`, without resizing any; or NULL. */
struct balloon *choose_roomier(struct rp_instance *inst, const struct rp_ctr_info *info,
			       const struct balloon *but);

/* ---- into the transaction (pin.c) ------------------------------------------------------------ */

/* Pins `m` (NULL: nobody in particular) and the members of all balloons whose sets have changed. */
int32_t pin_changed(struct rp_instance *inst, rp_txn txn, struct member *m);
/* All CPUs, or all memory nodes, for a container that is confined to some. Nothing else can take a
 * set away again; who never had one is left alone. */
#define PIN_CPUS 0x1u
#define PIN_MEMORY 0x2u
int32_t pin_loosen(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint32_t what);
/* What it may have owned with others of a balloon is not its any more. */
int32_t pin_own_nothing(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
int32_t pin_scheduling(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const struct type *t);
/* Kept with a container: where it was, and how often it was moved there. */
struct record {
	uint32_t instance, moves;
	bool owns; /* its devices count for the balloon */
	bool roams; /* runs unmanaged: the type is "" */
	bool loose; /* its CPUs are not those of its balloon, as none are pinned */
	const char *type, *devices;
};
int32_t pin_record(struct rp_instance *inst, rp_txn txn, const struct member *m);
/* Of one that runs unmanaged. Needs neither a plan nor a state. */
int32_t pin_record_roaming(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
bool pin_read_record(struct rp_instance *inst, rp_ctr ctr, struct record *ret);
/* CPUs its members may use. */
void pin_pinnable(const struct balloon *b, struct rp_idset *ret);

/* ---- all at once (sync.c, image.c, adopt.c) -------------------------------------------------- */

int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* After room was made: places those that wait. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn);
/* It does not wait any more. */
void sync_forget(struct rp_instance *inst, rp_ctr ctr);
/* CPUs where containers run that are in no balloon. */
void sync_visited(struct rp_instance *inst, struct rp_idset *ret);
/* One that runs without a place: the CPUs it may use, and a note to place it later. After balloons
 * have changed: those of all such ones. */
int32_t sync_roam(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
int32_t sync_follow(struct rp_instance *inst, rp_txn txn);
int32_t image_write(const struct state *s, struct image *image);
/* The balloons of an image, with what is reserved now: for when they are yet to be made. Without
 * one: empty. */
int32_t image_renew(const struct rp_plan *p, const struct image *before, struct image *image);
/* What was reserved when it was written; without an image: nothing. */
void image_past(const struct image *image, struct reserve_past *ret);
/* Makes the balloons of an image that the plan still has room for, without members. Garbage is
 * ignored. */
int32_t image_restore(struct state *s, const struct image *image);
bool image_valid(const void *data, uint32_t size);
/* Without an image: makes balloons for the first n of inst->list.ctrs out of the CPUs that they
 * have. 0 or -RP_ENOMEM. */
int32_t adopt_balloons(struct rp_instance *inst, uint32_t n, struct choice *c);

/* ---- better places (rebalance.c, compact.c) -------------------------------------------------- */

/* Moves containers that would be placed better now, at most `budget` (0: any number). */
int32_t rebalance_all(struct rp_instance *inst, rp_txn txn, uint64_t budget);
/* Moves one that lacks something, if that is better for it. */
int32_t rebalance_one(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint64_t lacks);
/* Better CPUs for a balloon, as many as it has. 1: *ret_why says why they are better; 0: there are
 * none; or -RP_ENOMEM. */
int32_t compact(struct state *s, struct balloon *b, const char **ret_why);
/* Units of a level that a set of CPUs is in. */
uint32_t compact_count(const struct machine *m, enum tree_level level, struct rp_ids cpus);

/* ---- out of band (outside.c) ----------------------------------------------------------------- */

/* Hands CPU classes and interrupts to the worker as they follow from the state. */
void outside_follow(struct rp_instance *inst);

/* ---- reports (report.c) ---------------------------------------------------------------------- */

extern const struct rp_zones balloons_zones;
extern const struct rp_metrics balloons_metrics;
extern const struct rp_state balloons_state;
extern const struct rp_extended balloons_extended;
void report_placed(struct rp_instance *inst, const struct rp_ctr_info *info,
		   const struct choice *c);

#endif
