/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/balloons/balloons.h"

#define BOOL(path_, fallback_, doc_)                                                               \
	{                                                                                          \
		.path = path_, .type = RP_T_BOOL, .fallback = fallback_, .doc = doc_               \
	}
#define TEXT(path_, doc_)                                                                          \
	{                                                                                          \
		.path = path_, .type = RP_T_STRING, .doc = doc_                                    \
	}
#define TEXTS(path_, doc_, each_)                                                                  \
	{.path = path_, .type = RP_T_LIST, .doc = doc_},                                           \
	{                                                                                          \
		.path = path_ "[]", .type = RP_T_STRING, .doc = each_                              \
	}
#define MAPS(path_, doc_, each_)                                                                   \
	{.path = path_, .type = RP_T_LIST, .doc = doc_},                                           \
	{                                                                                          \
		.path = path_ "[]", .type = RP_T_MAP, .doc = each_                                 \
	}
#define CHOICE(path_, choices_, fallback_, doc_)                                                   \
	{                                                                                          \
		.path = path_, .type = RP_T_ENUM, .choices = choices_, .fallback = fallback_,      \
		.doc = doc_                                                                        \
	}
#define NUMBER(path_, min_, max_, fallback_, doc_)                                                 \
	{                                                                                          \
		.path = path_, .type = RP_T_INT, .min = min_, .max = max_, .fallback = fallback_,  \
		.doc = doc_                                                                        \
	}
#define EXPRESSIONS(path_, doc_)                                                                   \
	MAPS(path_, doc_, "One expression; any of them suffices."),                                \
		{.path = path_ "[].key",                                                           \
		 .type = RP_T_STRING,                                                              \
		 .doc = "What is looked at: name, namespace, qosclass, labels/KEY, id, or pod/ "   \
			"and one of these or uid."},                                               \
		{.path = path_ "[].operator",                                                      \
		 .type = RP_T_STRING,                                                              \
		 .flags = RP_KEY_REQUIRED,                                                         \
		 .doc = "Equals, NotEqual, In, NotIn, Exists, NotExist, AlwaysTrue, Matches, "     \
			"MatchesNot, MatchesAny or MatchesNone."},                                 \
		TEXTS(path_ "[].values", "What it is compared with.", "A value, or a glob.")

#define T "balloonTypes[]."
#define CPUS_LIMIT INT32_MAX /* a thousand times that is a number, too */

static const struct rp_key keys[] = {
	{.path = "availableResources", .type = RP_T_MAP, .doc = "What containers may use."},
	{.path = "availableResources.cpu",
	 .type = RP_T_AMOUNT,
	 .doc = "CPUs that balloons may have, as a set; by default all."},
	{.path = "availableResources.memory", .type = RP_T_ANY, .doc = "Accepted, not used."},
	{.path = "reservedResources",
	 .type = RP_T_MAP,
	 .doc = "What the reserved balloon has for the system's containers."},
	{.path = "reservedResources.cpu",
	 .type = RP_T_AMOUNT,
	 .doc = "A quantity is the least size of the reserved balloon; a set are the CPUs it "
		"prefers and others avoid."},
	{.path = "reservedResources.memory", .type = RP_T_ANY, .doc = "Accepted, not used."},
	BOOL("pinCPU", "true", "Containers run on the CPUs of their balloon."),
	BOOL("pinMemory", "true", "Containers get memory near the CPUs of their balloon."),
	TEXTS("reservedPoolNamespaces",
	      "Namespaces whose containers run in the reserved balloon; kube-system always does.",
	      "A glob."),
	TEXT("idleCPUClass", "Class of the CPUs that no balloon has."),
	BOOL("allocatorTopologyBalancing", "false",
	     "Spread balloons over the machine; otherwise pack them."),
	BOOL("preferSpreadOnPhysicalCores", "false",
	     "Give a balloon threads of different cores first."),
	BOOL("showContainersInNrt", "false", "Report containers as zones below their balloon's."),
	TEXTS("controllableInterrupts", "Interrupts that may be moved; all when it is empty.",
	      "A glob over an interrupt's description."),
	{.path = "preserve", .type = RP_T_MAP, .doc = "Containers that are left alone."},
	EXPRESSIONS("preserve.matchExpressions", "Which ones."),
	CPUCLASS_KEYS,
	{.path = "control", .type = RP_T_MAP, .doc = "Where custom resources had CPU classes."},
	{.path = "control.cpu", .type = RP_T_MAP, .doc = "As above."},
	CPUCLASS_OLD_KEYS("control.cpu.classes"),
	MAPS("loadClasses", "Kinds of load that make neighbouring CPUs slow.", "A class."),
	{.path = "loadClasses[].name",
	 .type = RP_T_STRING,
	 .flags = RP_KEY_REQUIRED,
	 .doc = "Its name, unique."},
	{.path = "loadClasses[].level",
	 .type = RP_T_ENUM,
	 .flags = RP_KEY_REQUIRED,
	 .choices = "core|l2cache",
	 .doc = "What CPUs have in common that slow each other."},
	BOOL("loadClasses[].overloadsLevelInBalloon", "false",
	     "CPUs of one balloon should be kept apart as well."),
	SCHEDCLASS_KEYS,
	MAPS("balloonTypes", "Types of balloons. The first one that takes a container gets it.",
	     "A type; those named reserved and default replace the built-in ones."),
	{.path = T "name",
	 .type = RP_T_STRING,
	 .flags = RP_KEY_REQUIRED,
	 .doc = "Its name, unique."},
	TEXTS(T "namespaces", "Namespaces whose containers it takes.", "A glob."),
	EXPRESSIONS(T "matchExpressions", "Containers that it takes."),
	TEXT(T "groupBy", "Containers for which this text is the same share a balloon; ${KEY} "
			  "stands for a value as in matchExpressions."),
	NUMBER(T "minCPUs", -CPUS_LIMIT, CPUS_LIMIT, "0", "A balloon never has fewer CPUs."),
	NUMBER(T "maxCPUs", -CPUS_LIMIT, CPUS_LIMIT, "0",
	       "A balloon never has more CPUs; 0: no limit; negative: no container fits."),
	NUMBER(T "minBalloons", 0, RP_CPUS_MAX, "0", "So many balloons always exist."),
	NUMBER(T "maxBalloons", 0, INT32_MAX, "0", "There are never more; 0: no limit."),
	BOOL(T "preferNewBalloons", "false", "Make a new balloon rather than use one with room."),
	BOOL(T "preferSpreadingPods", "false",
	     "Containers of a pod need not be in the same balloon."),
	BOOL(T "preferPerNamespaceBalloon", "false",
	     "Containers of a namespace share a balloon, those of different ones do not."),
	CHOICE(T "allocatorPriority", "high|normal|low|none", "high",
	       "Order in which balloons are made at the start, and the kind of CPUs they like."),
	BOOL(T "allocatorTopologyBalancing", NULL, "As above, for this type."),
	BOOL(T "preferSpreadOnPhysicalCores", NULL, "As above, for this type."),
	BOOL(T "hideHyperthreads", "false", "Containers see one thread of each core."),
	TEXTS(T "preferCloseToDevices", "Devices that balloons should be near to.",
	      "A path in sysfs, or a device file; most important first."),
	BOOL(T "preferIsolCpus", "false", "Prefer CPUs that the kernel isolates."),
	CHOICE(T "preferCoreType", "|efficient|performance", NULL, "Kind of cores to prefer."),
	TEXTS(T "loads", "Load classes of its containers.", "Name of a load class."),
	CHOICE(T "shareIdleCPUsInSame", "|system|package|die|numa|l2cache|core|thread", NULL,
	       "Containers may also run on idle CPUs in the same part of the machine."),
	TEXTS(T "memoryTypes", "Kinds of memory that containers get.", "DRAM, HBM or PMEM."),
	BOOL(T "pinMemory", NULL, "As above, for this type."),
	TEXT(T "cpuClass", "Class of its CPUs."),
	TEXT(T "schedulingClass", "Scheduling class of its containers."),
	TEXTS(T "irqClaim", "Interrupts that run on its CPUs only.",
	      "The number of an interrupt, or a glob over its description."),
	CHOICE(T "irqMode", "|sink|isolate", NULL,
	       "Whether its CPUs take all other interrupts, or none of them."),
	MAPS(T "components", "Types of the balloons that one of this type consists of.",
	     "A component."),
	{.path = T "components[].balloonType",
	 .type = RP_T_STRING,
	 .flags = RP_KEY_REQUIRED,
	 .doc = "Name of a type."},
	CHOICE(T "componentCreation", "|all|balance-balloons", NULL,
	       "A balloon of each component, or one of the component that has fewest."),
	BOOL(T "showContainersInNrt", NULL, "As above, for this type."),
};

const struct rp_schema balloons_schema = {
	.size = sizeof(struct rp_schema),
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof(struct rp_key),
	.cr_kind = "BalloonsPolicy",
};
