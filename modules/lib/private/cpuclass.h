/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU classes: frequencies, governor, energy preference and C-states of CPUs, and uncore
 * frequencies of dies, by the class of each CPU.
 *
 * A policy puts CPUs into classes with cpuclass_use() and calls cpuclass_commit() at the end of an
 * operation. This submits the changes to the host's worker, which writes sysfs, reads the values
 * back and records the original values. A property that a CPU's class does not set is restored to
 * its original value, or to the value that another module set since (nri-rp.host.settings/1). No
 * function blocks, and no file is accessed while a request is answered.
 *
 * A failed write is logged once. If it may succeed later, it is repeated with the next change and,
 * after cpuclass_retry(), by a timer with growing delays and a limited number of attempts. Setup of
 * the Speed Select platform (pct.h) and its removal are repeated by the timer only.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/host.h>
#include <nri-rp/lib/section.h>

#define CPUCLASS_NONE UINT32_MAX
#define CPUCLASS_MAX 64u
#define CPUCLASS_CSTATES_MAX 16u
#define CPUCLASS_NAME_MAX 64u

/* A class. Frequencies are in kHz or RP_FREQ_…; 0: not set. Texts are borrowed from the
 * configuration until the next configure. */
struct cpuclass_def {
	const char *name;
	int64_t min_khz, max_khz, uncore_min_khz, uncore_max_khz;
	const char *governor; /* cpufreq governor of the class; "": not set */
	int64_t epp; /* energy performance preference of the class; 0: not set */
	const char *disabled_cstates[CPUCLASS_CSTATES_MAX];
	uint32_t n_disabled_cstates;
	int64_t turbo_priority;
	/* Speed Select (pct.h); -1: not set */
	int32_t pct_high; /* priority in Speed Select: 1 high, 0 low */
	int32_t clos;
	int64_t pct_min_khz, pct_max_khz;
	bool publish;
};

struct cpuclass_defs {
	struct cpuclass_def list[CPUCLASS_MAX];
	uint32_t n;
	bool turbo_system; /* turbo is granted for the whole system instead of for each package */
};

/* Rows of a policy's schema for `cpuClasses` and `turboDomain`. */
#define CPUCLASS_KEYS                                                                              \
	SECTION_LIST("cpuClasses",                                                                 \
		     "Classes of CPUs: frequencies, governor, energy preference, C-states."),      \
		SECTION_MAP("cpuClasses[]", "A class."),                                           \
		SECTION_KEY("cpuClasses[].name", STRING, "Unique name.",                           \
			    .flags = RP_KEY_REQUIRED),                                             \
		SECTION_KEY("cpuClasses[].minFreq", FREQ, "Lowest core frequency."),               \
		SECTION_KEY("cpuClasses[].maxFreq", FREQ, "Highest core frequency."),              \
		SECTION_KEY("cpuClasses[].energyPerformancePreference", INT,                       \
			    "Energy/performance bias from 1 (performance) to 255 (power saving); " \
			    "0: unchanged.",                                                       \
			    .max = 255, .fallback = "0"),                                          \
		SECTION_KEY("cpuClasses[].uncoreMinFreq", FREQ,                                    \
			    "Lowest uncore frequency of dies with CPUs of the class."),            \
		SECTION_KEY("cpuClasses[].uncoreMaxFreq", FREQ,                                    \
			    "Highest uncore frequency of dies with CPUs of the class."),           \
		SECTION_TEXT("cpuClasses[].freqGovernor", "Frequency governor."),                  \
		SECTION_LIST("cpuClasses[].disabledCstates",                                       \
			     "Names of idle states that are disabled."),                           \
		SECTION_TEXT("cpuClasses[].disabledCstates[]",                                     \
			     "A name as in cpuidle/state*/name."),                                 \
		SECTION_KEY("cpuClasses[].turboPriority", INT,                                     \
			    "Of the classes in a turbo domain, only those with the highest "       \
			    "priority get turbo.",                                                 \
			    .max = INT32_MAX, .fallback = "0"),                                    \
		SECTION_KEY("cpuClasses[].pctPriority", ENUM,                                      \
			    "Priority core turbo, configured by the policy.",                      \
			    .choices = "|high|low"),                                               \
		SECTION_KEY("cpuClasses[].sstClosID", INT,                                         \
			    "Class of service of Speed Select that another program configured.",   \
			    .min = 0, .max = 3),                                                   \
		SECTION_KEY("cpuClasses[].pctMinFreq", FREQ,                                       \
			    "Lowest frequency of the class of service."),                          \
		SECTION_KEY("cpuClasses[].pctMaxFreq", FREQ,                                       \
			    "Highest frequency of the class of service."),                         \
		SECTION_BOOL(                                                                      \
			"cpuClasses[].publishExtendedResource", "false",                           \
			"Publish free CPUs of the class as an extended resource of the node."),    \
		SECTION_CHOICE("turboDomain", "|package|system", "package",                        \
			       "Domain in which classes compete for turbo.")

/* Reads and checks `cpuClasses` and `turboDomain` of a section. Checks for the uncore driver, so it
 * belongs in prepare(). */
int32_t cpuclass_read(const struct modhost *h, rp_cfg section, struct cpuclass_defs *ret);
/* Reads a class whose name is given by another node. An error has the line of the configuration
 * file. */
int32_t cpuclass_read_one(const struct modhost *h, rp_cfg node, const char *name,
			  struct cpuclass_def *ret);
/* Rows of a schema for the older form, a map by name at a path. */
#define CPUCLASS_OLD_KEYS(at_)                                                                     \
	SECTION_MAP(at_, "Obsolete form of cpuClasses: a map by name."),                           \
		SECTION_MAP(at_ ".*", "A class."),                                                 \
		SECTION_KEY(at_ ".*.minFreq", FREQ, "Lowest core frequency."),                     \
		SECTION_KEY(at_ ".*.maxFreq", FREQ, "Highest core frequency."),                    \
		SECTION_KEY(at_ ".*.uncoreMinFreq", FREQ, "Lowest uncore frequency."),             \
		SECTION_KEY(at_ ".*.uncoreMaxFreq", FREQ, "Highest uncore frequency."),            \
		SECTION_KEY(at_ ".*.energyPerformancePreference", INT,                             \
			    "Energy/performance bias from 1 (performance) to 255 (power saving); " \
			    "0: unchanged.",                                                       \
			    .max = 255, .fallback = "0"),                                          \
		SECTION_TEXT(at_ ".*.freqGovernor", "Frequency governor."),                        \
		SECTION_LIST(at_ ".*.disabledCstates", "Names of idle states that are disabled."), \
		SECTION_TEXT(at_ ".*.disabledCstates[]", "A name as in cpuidle/state*/name.")
/*
 * Adds the classes of a map in the older form, by name in ascending order. A name that is already
 * defined keeps its definition, with a warning if the two differ.
 */
int32_t cpuclass_read_old(const struct modhost *h, rp_cfg map, struct cpuclass_defs *defs);
/* Returns the index of a class by name, or CPUCLASS_NONE. */
uint32_t cpuclass_find(const struct cpuclass_defs *defs, const char *name);

struct cpuclass;
struct pct;

/* Returns NULL if out of memory. If the host has no worker, all functions do nothing. */
struct cpuclass *cpuclass_new(const struct modhost *h);
struct cpuclass *cpuclass_free(struct cpuclass *c); /* returns NULL */
/*
 * Replaces the definitions, which are copied except for the texts. `allowed` are the CPUs that may
 * be changed. All CPUs leave their classes until the next cpuclass_use(). Reads the topology again.
 */
int32_t cpuclass_configure(struct cpuclass *c, const struct cpuclass_defs *defs,
			   struct rp_ids allowed);
/* Assigns CPUs to a class; CPUCLASS_NONE: removes them from their class. */
void cpuclass_use(struct cpuclass *c, uint32_t class, struct rp_ids cpus);
/* Returns the CPU class of a CPU, as an index. */
uint32_t cpuclass_of(const struct cpuclass *c, uint32_t cpu);
/* Submits the changes to the worker. */
void cpuclass_commit(struct cpuclass *c);
/*
 * Ends the control of CPUs (rp_policy.stop, rp_controller.stop). The worker restores the values
 * that classes have set, unless another module has set them since, and removes the setup of Speed
 * Select. Classes may be configured again afterwards.
 */
void cpuclass_stop(struct cpuclass *c);
/* Returns the Speed Select part of the classes (pct.h), valid until the next configure; NULL:
 * none. */
const struct pct *cpuclass_pct(const struct cpuclass *c);
/* Returns true if the platform could not be set up; cpuclass_why() returns the reason. */
bool cpuclass_platform_fails(const struct cpuclass *c);
/*
 * Reports the published classes, each with the number of CPUs that can be in it, for
 * rp_extended.extended. `defs` NULL: no classes yet. `domain` ends with a slash. `held` stores the
 * CPUs that containers use in a class; NULL: none.
 */
void cpuclass_extended(const struct cpuclass *c, const struct cpuclass_defs *defs,
		       const struct rp_extended_sink *sink, const char *domain,
		       void (*held)(void *arg, uint32_t class, struct rp_idset *ret), void *arg);

/*
 * Enables attempts by a timer. `cookie` is the caller's timer, whose expiry it passes to
 * cpuclass_timer(). `done`, if not NULL, is called when the worker has finished a commit.
 */
void cpuclass_retry(struct cpuclass *c, uint64_t cookie, void (*done)(void *arg), void *arg);
void cpuclass_timer(struct cpuclass *c, uint64_t cookie);
/* Returns the number of CPUs that differ from their class after the last attempt. */
uint32_t cpuclass_n_failing(const struct cpuclass *c);
/* Returns true if a CPU differs from its class after the last attempt. */
bool cpuclass_fails(const struct cpuclass *c, uint32_t cpu);
/* Returns the reason of one of the failures, and whether it will be repeated, in one line. */
const char *cpuclass_why(const struct cpuclass *c);

struct cpuclass_stats {
	/* differing: values that the kernel changed on writing */
	uint64_t writes, failures, differing;
};
void cpuclass_stats(const struct cpuclass *c, struct cpuclass_stats *ret);
