/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduling classes: kernel scheduling of a container's threads and I/O. They are set at creation
 * and never changed later.
 */
#pragma once

#include <nri-rp/lib/blocks.h>
#include <nri-rp/lib/section.h>

#define SCHEDCLASS_NONE (-1)
#define SCHEDCLASS_FIELDS_MAX 9u

struct schedclass_field {
	uint32_t field; /* field to set, RP_F_… */
	int64_t value;
};

struct schedclass {
	const char *name;
	struct schedclass_field fields[SCHEDCLASS_FIELDS_MAX];
	uint32_t n_fields;
};

struct schedclasses {
	struct schedclass *list;
	uint32_t n;
};

/*
 * Largest time. Times are microseconds in the configuration, nanoseconds in the kernel, in runtimes
 * and in RP_F_….
 */
#define SCHEDCLASS_US_MAX (INT64_MAX / 1000)

#define SCHEDCLASS_TIME(key_, doc_)                                                                \
	SECTION_KEY("schedulingClasses[]." key_, INT, doc_, .min = 0, .max = SCHEDCLASS_US_MAX)

/* Rows of a policy's schema. */
#define SCHEDCLASS_KEYS                                                                            \
	SECTION_LIST("schedulingClasses", "Scheduling classes of the kernel."),                    \
		SECTION_MAP("schedulingClasses[]", "A class."),                                    \
		SECTION_KEY("schedulingClasses[].name", STRING, "Unique name.",                    \
			    .flags = RP_KEY_REQUIRED | RP_KEY_NON_EMPTY),                          \
		SECTION_KEY("schedulingClasses[].policy", ENUM,                                    \
			    "Scheduling policy of the kernel; none: unchanged.",                   \
			    .choices = "|none|other|fifo|rr|batch|iso|idle|deadline"),             \
		SECTION_KEY("schedulingClasses[].priority", INT,                                   \
			    "Priority within the policy, for fifo and rr.", .min = 0, .max = 99),  \
		SECTION_LIST("schedulingClasses[].flags", "Flags of sched_setattr(2)."),           \
		SECTION_KEY("schedulingClasses[].flags[]", ENUM, "A flag.",                        \
			    .choices = "reset-on-fork|reclaim|dl-overrun|keep-policy|keep-params|" \
				       "util-clamp-min|util-clamp-max"),                           \
		SECTION_KEY("schedulingClasses[].nice", INT, "Nice value, for other and batch.",   \
			    .min = -20, .max = 19),                                                \
		SCHEDCLASS_TIME("runtime", "Parameter of the policy deadline, in microseconds."),  \
		SCHEDCLASS_TIME("deadline", "Parameter of the policy deadline, in microseconds."), \
		SCHEDCLASS_TIME("period", "Parameter of the policy deadline, in microseconds."),   \
		SECTION_KEY("schedulingClasses[].ioClass", ENUM,                                   \
			    "I/O scheduling class; none: unchanged.",                              \
			    .choices = "|none|rt|be|idle"),                                        \
		SECTION_KEY("schedulingClasses[].ioPriority", INT,                                 \
			    "Priority within the I/O class; 0 is the highest.", .min = 0,          \
			    .max = 7)

/* Reads schedulingClasses of a section. Texts are borrowed from the configuration. Returns 0, or an
 * error with the line of the configuration file. */
int32_t schedclass_read(const struct modhost *h, struct blocks *memory, rp_cfg section,
			struct schedclasses *ret);
/* Returns the index of a class, or SCHEDCLASS_NONE. */
int32_t schedclass_find(const struct schedclasses *classes, const char *name);
/*
 * Returns the class of a container's annotation, or `fallback` without an annotation.
 * SCHEDCLASS_NONE, with a warning: there is no class of this name.
 */
int32_t schedclass_annotated(const struct modhost *h, const struct schedclasses *classes,
			     rp_ctr ctr, int32_t fallback);
/*
 * Stages the class of a container that is being created. A value that the host refuses is skipped
 * with a warning. Returns 0 or -RP_ENOMEM.
 */
int32_t schedclass_stage(const struct modhost *h, rp_txn txn, rp_ctr ctr,
			 const struct schedclass *class);
