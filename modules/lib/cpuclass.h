/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU classes: frequencies, governor, energy preference and C-states of CPUs, uncore frequencies of
 * dies, by the class that each CPU is in.
 *
 * A policy says which class CPUs have (cpuclass_use) and, at the end of an operation,
 * cpuclass_commit(). That hands what has changed to the host's worker, which writes sysfs, reads
 * back what the kernel made of it, and remembers what was there before: a property that a CPU's
 * class does not have gets back the value it had before we first changed it, or that another module
 * has given it since (nri-rp.host.settings/1). Nothing blocks, and nothing is read or written while
 * a request is answered. What cannot be written is logged once and, unless that would be of no use,
 * tried again with the next change and, after cpuclass_retry(), by the clock: later and later, and
 * given up after a while. Setting up the platform of Speed Select (pct.h) and taking that back is
 * tried again by the clock alone, if there is one.
 */
#ifndef NRI_RP_LIB_CPUCLASS_H
#define NRI_RP_LIB_CPUCLASS_H

#include <stdbool.h>

#include "modules/lib/host.h"

#define CPUCLASS_NONE UINT32_MAX
#define CPUCLASS_MAX 64u
#define CPUCLASS_CSTATES_MAX 16u
#define CPUCLASS_NAME_MAX 64u

/* One class. Frequencies in kHz or RP_FREQ_…; 0: left alone. Texts are borrowed from the
 * configuration until the next configure. */
struct cpuclass_def {
	const char *name;
	int64_t min_khz, max_khz, uncore_min_khz, uncore_max_khz;
	const char *governor; /* "": left alone */
	int64_t epp; /* 0: left alone */
	const char *disabled_cstates[CPUCLASS_CSTATES_MAX];
	uint32_t n_disabled_cstates;
	int64_t turbo_priority;
	/* Speed Select (pct.h): -1 unset. */
	int32_t pct_high; /* 1 high, 0 low */
	int32_t clos;
	int64_t pct_min_khz, pct_max_khz;
	bool publish;
};

struct cpuclass_defs {
	struct cpuclass_def list[CPUCLASS_MAX];
	uint32_t n;
	bool turbo_system; /* turbo is given out for the whole system, not for each package */
};

/* Rows for a policy's schema: `cpuClasses` and `turboDomain`. */
#define CPUCLASS_KEYS                                                                              \
	{.path = "cpuClasses",                                                                     \
	 .type = RP_T_LIST,                                                                        \
	 .doc = "Classes of CPUs: frequencies, governor, energy preference, C-states."},           \
		{.path = "cpuClasses[]", .type = RP_T_MAP, .doc = "A class."},                     \
		{.path = "cpuClasses[].name",                                                      \
		 .type = RP_T_STRING,                                                              \
		 .flags = RP_KEY_REQUIRED,                                                         \
		 .doc = "Its name, unique."},                                                      \
		{.path = "cpuClasses[].minFreq",                                                   \
		 .type = RP_T_FREQ,                                                                \
		 .doc = "Lowest core frequency."},                                                 \
		{.path = "cpuClasses[].maxFreq",                                                   \
		 .type = RP_T_FREQ,                                                                \
		 .doc = "Highest core frequency."},                                                \
		{.path = "cpuClasses[].energyPerformancePreference",                               \
		 .type = RP_T_INT,                                                                 \
		 .max = 255,                                                                       \
		 .fallback = "0",                                                                  \
		 .doc = "1, performance, to 255, power saving; 0 leaves it alone."},               \
		{.path = "cpuClasses[].uncoreMinFreq",                                             \
		 .type = RP_T_FREQ,                                                                \
		 .doc = "Lowest uncore frequency of dies with CPUs of the class."},                \
		{.path = "cpuClasses[].uncoreMaxFreq",                                             \
		 .type = RP_T_FREQ,                                                                \
		 .doc = "Highest uncore frequency of dies with CPUs of the class."},               \
		{.path = "cpuClasses[].freqGovernor",                                              \
		 .type = RP_T_STRING,                                                              \
		 .doc = "Frequency governor."},                                                    \
		{.path = "cpuClasses[].disabledCstates",                                           \
		 .type = RP_T_LIST,                                                                \
		 .doc = "Names of idle states that are off."},                                     \
		{.path = "cpuClasses[].disabledCstates[]",                                         \
		 .type = RP_T_STRING,                                                              \
		 .doc = "As in cpuidle/state*/name."},                                             \
		{.path = "cpuClasses[].turboPriority",                                             \
		 .type = RP_T_INT,                                                                 \
		 .max = INT32_MAX,                                                                 \
		 .fallback = "0",                                                                  \
		 .doc = "Of the classes in use in a turbo domain only those of the highest "       \
			"priority get "                                                            \
			"turbo."},                                                                 \
		{.path = "cpuClasses[].pctPriority",                                               \
		 .type = RP_T_ENUM,                                                                \
		 .choices = "|high|low",                                                           \
		 .doc = "Priority core turbo, set up by the policy."},                             \
		{.path = "cpuClasses[].sstClosID",                                                 \
		 .type = RP_T_INT,                                                                 \
		 .min = 0,                                                                         \
		 .max = 3,                                                                         \
		 .doc = "Class of service of Speed Select that was set up by somebody else."},     \
		{.path = "cpuClasses[].pctMinFreq",                                                \
		 .type = RP_T_FREQ,                                                                \
		 .doc = "Lowest frequency of the class of service."},                              \
		{.path = "cpuClasses[].pctMaxFreq",                                                \
		 .type = RP_T_FREQ,                                                                \
		 .doc = "Highest frequency of the class of service."},                             \
		{.path = "cpuClasses[].publishExtendedResource",                                   \
		 .type = RP_T_BOOL,                                                                \
		 .fallback = "false",                                                              \
		 .doc = "Free CPUs of the class become an extended resource of the node."},        \
	{                                                                                          \
		.path = "turboDomain", .type = RP_T_ENUM, .choices = "|package|system",            \
		.fallback = "package", .doc = "Where classes compete for turbo."                   \
	}

/* Reads and checks `cpuClasses` and `turboDomain` of a section. For prepare(): it looks for the
 * uncore driver. */
int32_t cpuclass_read(const struct modhost *h, rp_cfg section, struct cpuclass_defs *ret);
/* Rows for the older form, a map by name at a path. */
#define CPUCLASS_OLD_KEYS(at_)                                                                     \
	{.path = at_, .type = RP_T_MAP, .doc = "The older form of cpuClasses: a map by name."},    \
		{.path = at_ ".*", .type = RP_T_MAP, .doc = "A class."},                           \
		{.path = at_ ".*.minFreq", .type = RP_T_FREQ, .doc = "Lowest core frequency."},    \
		{.path = at_ ".*.maxFreq", .type = RP_T_FREQ, .doc = "Highest core frequency."},   \
		{.path = at_ ".*.uncoreMinFreq",                                                   \
		 .type = RP_T_FREQ,                                                                \
		 .doc = "Lowest uncore frequency."},                                               \
		{.path = at_ ".*.uncoreMaxFreq",                                                   \
		 .type = RP_T_FREQ,                                                                \
		 .doc = "Highest uncore frequency."},                                              \
		{.path = at_ ".*.energyPerformancePreference",                                     \
		 .type = RP_T_INT,                                                                 \
		 .max = 255,                                                                       \
		 .fallback = "0",                                                                  \
		 .doc = "1, performance, to 255, power saving; 0 leaves it alone."},               \
		{.path = at_ ".*.freqGovernor",                                                    \
		 .type = RP_T_STRING,                                                              \
		 .doc = "Frequency governor."},                                                    \
		{.path = at_ ".*.disabledCstates",                                                 \
		 .type = RP_T_LIST,                                                                \
		 .doc = "Names of idle states that are off."},                                     \
	{                                                                                          \
		.path = at_ ".*.disabledCstates[]", .type = RP_T_STRING,                           \
		.doc = "As in cpuidle/state*/name."                                                \
	}
/*
 * Adds those of a map in the older form, by name in ascending order. A name that there is already
 * keeps its definition, with a warning when the two differ.
 */
int32_t cpuclass_read_old(const struct modhost *h, rp_cfg map, struct cpuclass_defs *defs);
/* Index of a class by name, or CPUCLASS_NONE. */
uint32_t cpuclass_find(const struct cpuclass_defs *defs, const char *name);

struct cpuclass;
struct pct;

/* NULL: out of memory. Without a worker on the host all calls do nothing. */
struct cpuclass *cpuclass_new(const struct modhost *h);
struct cpuclass *cpuclass_free(struct cpuclass *c); /* returns NULL */
/*
 * New definitions; copied, but for the texts. `from` and `allowed`: the CPUs that may be touched.
 * All CPUs are in no class until cpuclass_use() says otherwise. The topology is read anew.
 */
int32_t cpuclass_configure(struct cpuclass *c, const struct cpuclass_defs *defs,
			   struct rp_ids allowed);
/* Puts CPUs in a class (CPUCLASS_NONE: none). */
void cpuclass_use(struct cpuclass *c, uint32_t class, struct rp_ids cpus);
/* The class of a CPU. */
uint32_t cpuclass_of(const struct cpuclass *c, uint32_t cpu);
/* Has the worker make it so. */
void cpuclass_commit(struct cpuclass *c);
/*
 * Nobody follows the classes any more (rp_policy.stop, rp_controller.stop): has the worker put back
 * what they have set, but for what another module has set since, and take back what was set up of
 * Speed Select. They may be configured again.
 */
void cpuclass_stop(struct cpuclass *c);
/* What the classes have to do with Speed Select (pct.h); NULL: nothing. Until the next
 * configure. */
const struct pct *cpuclass_pct(const struct cpuclass *c);
/* It could not be set up; cpuclass_why() says why. */
bool cpuclass_platform_fails(const struct cpuclass *c);
/*
 * For rp_extended.extended: the published ones of these classes (NULL: there are none yet), as many
 * CPUs as can be in each. `domain` ends in a slash. `held` (NULL: nobody has any) tells of CPUs
 * that are in use, and in another class.
 */
void cpuclass_extended(const struct cpuclass *c, const struct cpuclass_defs *defs,
		       const struct rp_extended_sink *sink, const char *domain,
		       void (*held)(void *arg, uint32_t class, struct rp_idset *ret), void *arg);

/*
 * Tries again by the clock. `cookie` is the caller's timer for that; it hands what goes off to
 * cpuclass_timer(). `done` (NULL: nobody) is called when the worker is through with a commit.
 */
void cpuclass_retry(struct cpuclass *c, uint64_t cookie, void (*done)(void *arg), void *arg);
void cpuclass_timer(struct cpuclass *c, uint64_t cookie);
/* CPUs that are not what their class says, after the last attempt. */
uint32_t cpuclass_n_failing(const struct cpuclass *c);
bool cpuclass_fails(const struct cpuclass *c, uint32_t cpu);
/* Why, for one of them, and whether it is tried again: one line. */
const char *cpuclass_why(const struct cpuclass *c);

struct cpuclass_stats {
	uint64_t writes, failures, differing; /* differing: the kernel made something else of it */
};
void cpuclass_stats(const struct cpuclass *c, struct cpuclass_stats *ret);

#endif
