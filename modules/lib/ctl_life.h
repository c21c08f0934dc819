/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a controller: the parts of the callbacks that are the same in every controller, as
 * life.h has them for policies. A controller provides its own parts as a struct ctl_life_ops,
 * begins its struct rp_instance with CTL_LIFE and its struct rp_plan with CTL_PLAN, and is defined
 * with CTL_MODULE. Its way of a change:
 *
 *   apply (a container has started, was updated, or is synchronized) adds an item to the queue
 *   run   [worker] writes files of the item's container
 *   done  the result has been reported; the item is freed afterwards
 *
 * A failed item is repeated with growing delays (ops.retries). Containers that have received values
 * are recorded, so that ctl_life_item() can tell whether there is something to revoke, also after a
 * restart of the daemon (ops.records).
 */
#ifndef NRI_RP_LIB_CTL_LIFE_H
#define NRI_RP_LIB_CTL_LIFE_H

#include <stdbool.h>

#include <nri-rp/controller.h>
#include <nri-rp/decision.h>
#include <nri-rp/policy.h>

#include <nri-rp/lib/ctl_file.h>

#define CTL_TEXT_MAX 256u
#define CTL_CLASS_MAX 128u /* size of a buffer for a class's name, with its NUL */

/* Work for the worker, the first member of a module's own struct. */
struct ctl_item {
	struct ctl_item *next;
	rp_ctr ctr; /* container of the item, whose earlier item it replaces; 0: none */
	uint32_t kind; /* below 4; only items of one kind and container replace each other */
	uint32_t result; /* RP_APPLY_…, set by run */
	uint32_t final; /* another attempt would be of no use; set by run() */
	uint32_t n_writes; /* number of written files, set by run() and summed up in the instance */
	char *ref; /* reference to the container's cgroup, for cgroup_find() */
	/* plan at the time when the item was added; the plan exists as long as the item */
	struct rp_plan *plan;
	uint32_t serial; /* number of the container's change (ctl_life_item) */
	bool revokes; /* all values of the container are to be revoked */
	bool again; /* the item must be queued once more; set by done() */
	char text[CTL_TEXT_MAX]; /* the reason, unless the result is RP_APPLY_DONE */
};

/* Sets the result and text of an item. */
void ctl_say(struct ctl_item *item, uint32_t result, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* [worker] Finds the directory of an item's cgroup like cgroup_find(); reports a failure in the
 * item. */
int32_t ctl_find_cgroup(const struct modhost *h, struct ctl_item *item, const char *controller,
			char *buf, uint32_t size);

/* The first member of a controller's struct rp_plan. */
#define CTL_PLAN                                                                                   \
	bool enable; /* the section's key, set before ops.plan; true without it */                 \
	uint32_t refs /* users: the instance and items */

enum ctl_cause { CTL_SYNC, CTL_UPDATE, CTL_START, CTL_RETRY };

/* The controller's own parts. All functions run on the main thread unless marked [worker]; all but
 * `plan_size` and `schema` are optional. Hooks of containers are called while the controller runs
 * and its section has not disabled it. */
struct ctl_life_ops {
	uint32_t need; /* MODHOST_… besides cache, config and work */
	uint32_t takes; /* RP_TAKES_…; inst->controller.takes may be changed in `commit` */
	uint32_t changes; /* RP_CHANGED_… after which a container is applied again */
	bool retries; /* failed items are repeated */
	bool records; /* the record of containers with values is the module's state */
	size_t plan_size; /* size of struct rp_plan */
	/* Initializes the instance. fini() follows also after an error. */
	int32_t (*init)(struct rp_instance *inst);
	/* Frees the memory that the instance owns. */
	void (*fini)(struct rp_instance *inst);
	/* Reads a section into a zeroed plan; errors have a message. */
	int32_t (*plan)(struct rp_instance *inst, rp_cfg section, struct rp_plan *ret);
	/* Frees the members of a plan, but not the plan. */
	void (*plan_fini)(struct rp_plan *p);
	/* Handles the activation of a plan; former: the previous plan, or NULL. */
	void (*commit)(struct rp_instance *inst, const struct rp_plan *former);
	/* Starts the controller. An error leaves it stopped. */
	int32_t (*start)(struct rp_instance *inst);
	/* Stops the controller. Waiting items were dropped before. */
	void (*stop)(struct rp_instance *inst);
	/* Stages values of a container before it is created. */
	int32_t (*pre_create)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);
	/* Adds an item for a container that is created and has not ended, if it needs one. */
	int32_t (*apply)(struct rp_instance *inst, const struct rp_ctr_info *info,
			 enum ctl_cause cause);
	/* Handles changed values of a container (RP_CHANGED_…), before `changes` is checked. */
	int32_t (*updated)(struct rp_instance *inst, rp_ctr ctr, uint32_t changed);
	/* Handles the end of a container. */
	void (*gone)(struct rp_instance *inst, rp_ctr ctr);
	/* Synchronizes all containers; NULL: ctl_life_apply_all() does. */
	void (*sync)(struct rp_instance *inst);
	/* Handles a timer that the controller armed. */
	void (*timer)(struct rp_instance *inst, uint64_t cookie);
	/* Measures usage, as rp_controller.measure does. */
	void (*measure)(struct rp_instance *inst);
	/* [worker] Writes the files of an item. */
	void (*run)(struct rp_instance *inst, struct ctl_item *item);
	/* Handles the result of an item; ran: false if the item was dropped. */
	void (*done)(struct rp_instance *inst, struct ctl_item *item, bool ran);
	/* Reports the metrics of the controller. */
	int32_t (*collect)(struct rp_instance *inst, const struct rp_metric_sink *sink);
	const struct rp_schema *schema;
	const struct rp_state *state; /* state of the module, instead of `records` */
	const struct rp_decision *decision;
	const struct rp_devices *devices;
};

struct ctl_queue;
struct ctl_table;

#define CTL_LIFE_MEMBERS                                                                           \
	struct modhost h;                                                                          \
	const struct ctl_life_ops *ops;                                                            \
	struct rp_controller controller; /* the service of this instance */                        \
	struct rp_plan *plan; /* active; NULL before the first commit */                           \
	struct ctl_queue *queue;                                                                   \
	struct ctl_table *table; /* containers with applied values */                              \
	uint64_t n_writes; /* sum over all items */                                                \
	bool running /* between start and stop */

struct ctl_life {
	CTL_LIFE_MEMBERS;
};

/* The first member of a controller's struct rp_instance. */
#define CTL_LIFE                                                                                   \
	union {                                                                                    \
		struct ctl_life life;                                                              \
		struct {                                                                           \
			CTL_LIFE_MEMBERS;                                                          \
		};                                                                                 \
	}

/* Returns true while hooks are called: the controller runs and is enabled. */
bool ctl_life_active(const struct rp_instance *inst);

/*
 * Returns an item of `size` bytes, zeroed but for its struct ctl_item, with a reference to the
 * container's cgroup (ctr 0: none). The caller adds it with ctl_life_add(). NULL: out of memory, or
 * the cgroup is unknown.
 */
void *ctl_life_item(struct rp_instance *inst, rp_ctr ctr, uint32_t kind, size_t size);
/* Queues an item and takes ownership of it. */
void ctl_life_add(struct rp_instance *inst, struct ctl_item *item);
/* Frees an item that was not added. */
void ctl_life_drop(struct rp_instance *inst, struct ctl_item *item);
/*
 * Records the class whose values a container receives, and stores a work item for it in *ret. class
 * NULL: earlier values are revoked. *ret is NULL if there is nothing to do: the container never had
 * values, or already has those of this class and `all` is false. -RP_ENOMEM with a message.
 */
int32_t ctl_life_give(struct rp_instance *inst, const struct rp_ctr_info *info, const char *class,
		      bool all, size_t size, struct ctl_item **ret);
/* Calls ops.apply with CTL_SYNC for all live containers, and frees the items of containers that
 * have ended. */
void ctl_life_apply_all(struct rp_instance *inst);
/* Reports the recorded containers and the writes of items, for ops.collect. */
void ctl_life_collect(const struct rp_instance *inst, const struct rp_metric_sink *sink,
		      const char *containers_help);

/* Calls fn for every live container, in order of creation. Returns 0 or -RP_ENOMEM. */
int32_t ctl_each_container(const struct modhost *h, void (*fn)(void *arg, rp_ctr ctr), void *arg);
/*
 * Returns the class that the policy has decided (`field`, RP_F_…), else the value of an annotation
 * (`key`), else NULL. *ret_source describes the source for people. Valid until the callback
 * returns.
 */
const char *ctl_class_of(const struct modhost *h, rp_ctr ctr, uint32_t field, const char *key,
			 const char **ret_source);
/* Returns "Guaranteed", "Burstable" or "BestEffort". */
const char *ctl_qos_name(uint32_t qos);

/* The callbacks of struct rp_module, used by CTL_MODULE. */
int32_t ctl_life_create(const struct rp_host *host, size_t size, const struct ctl_life_ops *ops,
			struct rp_instance **ret);
void ctl_life_destroy(struct rp_instance *inst);
const void *ctl_life_service(const struct ctl_life_ops *ops, struct rp_instance *inst,
			     const char *id);

/* Defines a controller module, like RP_MODULE_DEFINE. The last arguments are .summary and
 * .licence. */
#define CTL_MODULE(name_, version_, ops_, ...)                                                     \
	static int32_t ctl_module_create(const struct rp_host *host, struct rp_instance **ret)     \
	{                                                                                          \
		return ctl_life_create(host, sizeof(struct rp_instance), &(ops_), ret);            \
	}                                                                                          \
	static const void *ctl_module_service(struct rp_instance *inst, const char *id)            \
	{                                                                                          \
		return ctl_life_service(&(ops_), inst, id);                                        \
	}                                                                                          \
	RP_MODULE_DEFINE(name_, version_, RP_KIND_CONTROLLER, .create = ctl_module_create,         \
			 .destroy = ctl_life_destroy, .service = ctl_module_service, __VA_ARGS__)

#endif
