/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduling classes: kernel scheduling of a container's threads and I/O. They are set at creation
 * and never changed later.
 */
#ifndef NRI_RP_LIB_SCHEDCLASS_H
#define NRI_RP_LIB_SCHEDCLASS_H

#include <nri-rp/lib/blocks.h>

#define SCHEDCLASS_NONE (-1)
#define SCHEDCLASS_FIELDS_MAX 9u

struct schedclass_field {
	uint32_t field; /* RP_F_… */
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
	{                                                                                          \
		.path = "schedulingClasses[]." key_, .type = RP_T_INT, .min = 0,                   \
		.max = SCHEDCLASS_US_MAX, .doc = doc_                                              \
	}

/* Rows of a policy's schema. */
#define SCHEDCLASS_KEYS                                                                            \
	SECTION_LIST("schedulingClasses", "Classes of kernel scheduling."),                        \
		SECTION_MAP("schedulingClasses[]", "A class."),                                    \
		{.path = "schedulingClasses[].name",                                               \
		 .type = RP_T_STRING,                                                              \
		 .flags = RP_KEY_REQUIRED | RP_KEY_NON_EMPTY,                                      \
		 .doc = "Its name, unique."},                                                      \
		{.path = "schedulingClasses[].policy",                                             \
		 .type = RP_T_ENUM,                                                                \
		 .choices = "|none|other|fifo|rr|batch|iso|idle|deadline",                         \
		 .doc = "Scheduling policy of the kernel; none leaves it as it is."},              \
		{.path = "schedulingClasses[].priority",                                           \
		 .type = RP_T_INT,                                                                 \
		 .min = 0,                                                                         \
		 .max = 99,                                                                        \
		 .doc = "Priority within the policy, for fifo and rr."},                           \
		{.path = "schedulingClasses[].flags",                                              \
		 .type = RP_T_LIST,                                                                \
		 .doc = "Flags of sched_setattr(2)."},                                             \
		{.path = "schedulingClasses[].flags[]",                                            \
		 .type = RP_T_ENUM,                                                                \
		 .choices = "reset-on-fork|reclaim|dl-overrun|keep-policy|keep-params|"            \
			    "util-clamp-min|util-clamp-max",                                       \
		 .doc = "A flag."},                                                                \
		{.path = "schedulingClasses[].nice",                                               \
		 .type = RP_T_INT,                                                                 \
		 .min = -20,                                                                       \
		 .max = 19,                                                                        \
		 .doc = "Nice value, for other and batch."},                                       \
		SCHEDCLASS_TIME("runtime", "Of deadline, in microseconds."),                       \
		SCHEDCLASS_TIME("deadline", "Of deadline, in microseconds."),                      \
		SCHEDCLASS_TIME("period", "Of deadline, in microseconds."),                        \
		{.path = "schedulingClasses[].ioClass",                                            \
		 .type = RP_T_ENUM,                                                                \
		 .choices = "|none|rt|be|idle",                                                    \
		 .doc = "I/O scheduling class; none leaves it as it is."},                         \
	{                                                                                          \
		.path = "schedulingClasses[].ioPriority", .type = RP_T_INT, .min = 0, .max = 7,    \
		.doc = "Priority within the I/O class; 0 is the highest."                          \
	}

/* Reads schedulingClasses of a section. Texts are borrowed from the configuration. Returns 0, or an
 * error with its place. */
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

#endif
