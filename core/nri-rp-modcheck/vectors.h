/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of inputs and results of node-resource calculations, run through the real modules and the
 * host's own functions. A document has `kind`, `defaults` and `cases`, each with `name`, `in`
 * (which replaces keys of the defaults; of strategy, node and metrics key by key) and `out`.
 * nri-rp-modcheck(1) lists the kinds with their keys.
 */
#ifndef MODCHECK_VECTORS_H
#define MODCHECK_VECTORS_H

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/host/loader.h"
#include "core/nri-rpd/host/noderes.h"
#include "core/nri-rpd/noderes/result.h"
#include "core/lib/util/buf.h"

/* Runs a file with the calculators of a folder, and prints what it finds as TAP. The exit
 * status. */
int vectors_run(const char *file, const char *dir);

/* ---- a case ---- */

struct vector {
	rp_cfg defaults, in, out;
	struct instance **list; /* calculators in their order, and then others that decide */
	unsigned n_list;
	struct host_env *env;
	struct buf *why; /* what differs; empty: nothing */
};

struct vector_kind {
	const char *name;
	/* 0, with v->why if the result is another one; an error: the case cannot be run. */
	int (*run)(struct vector *v, struct err *err);
};

/* The input of that key, NULL when it is not there or null. */
rp_cfg vector_in(const struct vector *v, const char *key);
/* Of strategy, node or metrics: a key of it. */
rp_cfg vector_sub(const struct vector *v, const char *of, const char *key);
int64_t vector_cpu(rp_cfg node, int64_t fallback); /* milli-CPU */
int64_t vector_bytes(rp_cfg node, int64_t fallback);
int64_t vector_int(rp_cfg node, int64_t fallback);
/* Notes a difference unless they are equal; RP_NOT_SET: not there. */
void vector_compare(struct vector *v, const char *what, int64_t expected, int64_t found);
void vector_compare_bool(struct vector *v, const char *what, bool found);
void vector_compare_text(struct vector *v, const char *what, const char *expected,
			 const char *found);
/* The calculator of that name; -ENOENT with a message. */
int vector_module(struct vector *v, const char *name, struct instance **ret, struct err *err);
/* Gives it a section, which has to live as long as the case. */
int vector_configure(struct instance *i, rp_cfg section, struct err *err);

/* Asks the module's own rule of that kind. */
int vector_decide(struct vector *v, struct instance *i, const char *kind, struct err *err);

/* What calculators look at, filled from strategy, node, pods and metrics. */
struct vector_input {
	struct nr_input in;
	struct rp_nr_pod *pods;
	struct rp_nr_app *apps;
	struct rp_nr_zone *zones;
	struct rp_idset *bound; /* of pods */
	struct kv labels[1], annotations[1];
};
/* RP_PRIO_… of a pod or an application: by its priorityClass, its priority, its qos. */
uint32_t vector_class(rp_cfg pod);
int vector_input_fill(const struct vector *v, struct vector_input *ret, struct err *err);
void vector_input_fini(struct vector_input *in);

extern const struct vector_kind vector_kinds_calculators[]; /* end with one without a name */
extern const struct vector_kind vector_kinds_host[];

#endif
