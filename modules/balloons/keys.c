/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/balloons/balloons.h"
#include "modules/lib/section.h"

#define EXPRESSIONS(path_, doc_)                                                                   \
	SECTION_MAPS(path_, doc_, "One expression; any of them suffices."),                        \
		{.path = path_ "[].key",                                                           \
		 .type = RP_T_STRING,                                                              \
		 .doc = "What is looked at: name, namespace, qosclass, labels/KEY, id, or pod/ "   \
			"and one of these or uid."},                                               \
		{.path = path_ "[].operator",                                                      \
		 .type = RP_T_STRING,                                                              \
		 .flags = RP_KEY_REQUIRED,                                                         \
		 .doc = "Equals, NotEqual, In, NotIn, Exists, NotExist, AlwaysTrue, Matches, "     \
			"MatchesNot, MatchesAny or MatchesNone."},                                 \
		SECTION_TEXTS(path_ "[].values", "What it is compared with.",                      \
			      "A value, or a glob.")

#define T "balloonTypes[]."
#define CPUS_LIMIT INT32_MAX /* a thousand times that is a number, too */

static const struct rp_key keys[] = {
	SECTION_MAP("availableResources", "What containers may use."),
	SECTION_AMOUNT("availableResources.cpu",
		       "CPUs that balloons may have, as a set; by default all."),
	SECTION_ANY("availableResources.memory", "Accepted, not used."),
	SECTION_MAP("reservedResources",
		    "What the reserved balloon has for the system's containers."),
	SECTION_AMOUNT("reservedResources.cpu",
		       "A quantity is the least size of the reserved balloon; a set are the CPUs "
		       "it prefers and others avoid."),
	SECTION_ANY("reservedResources.memory", "Accepted, not used."),
	SECTION_BOOL("pinCPU", "true", "Containers run on the CPUs of their balloon."),
	SECTION_BOOL("pinMemory", "true", "Containers get memory near the CPUs of their balloon."),
	SECTION_TEXTS(
		"reservedPoolNamespaces",
		"Namespaces whose containers run in the reserved balloon; kube-system always does.",
		"A glob."),
	SECTION_TEXT("idleCPUClass", "Class of the CPUs that no balloon has."),
	SECTION_BOOL("allocatorTopologyBalancing", "false",
		     "Spread balloons over the machine; otherwise pack them."),
	SECTION_BOOL("preferSpreadOnPhysicalCores", "false",
		     "Give a balloon threads of different cores first."),
	SECTION_BOOL("showContainersInNrt", "false",
		     "Report containers as zones below their balloon's."),
	SECTION_TEXTS("controllableInterrupts",
		      "Interrupts that may be moved; all when it is empty.",
		      "A glob over an interrupt's description."),
	SECTION_MAP("preserve", "Containers that are left alone."),
	EXPRESSIONS("preserve.matchExpressions", "Which ones."),
	CPUCLASS_KEYS,
	SECTION_MAP("control", "Where custom resources had CPU classes."),
	SECTION_MAP("control.cpu", "As above."),
	CPUCLASS_OLD_KEYS("control.cpu.classes"),
	SECTION_MAPS("loadClasses", "Kinds of load that make neighbouring CPUs slow.", "A class."),
	SECTION_NAME("loadClasses[].name", "Its name, unique."),
	{.path = "loadClasses[].level",
	 .type = RP_T_ENUM,
	 .flags = RP_KEY_REQUIRED,
	 .choices = "core|l2cache",
	 .doc = "What CPUs have in common that slow each other."},
	SECTION_BOOL("loadClasses[].overloadsLevelInBalloon", "false",
		     "CPUs of one balloon should be kept apart as well."),
	SCHEDCLASS_KEYS,
	SECTION_MAPS("balloonTypes",
		     "Types of balloons. The first one that takes a container gets it.",
		     "A type; those named reserved and default replace the built-in ones."),
	SECTION_NAME(T "name", "Its name, unique."),
	SECTION_TEXTS(T "namespaces", "Namespaces whose containers it takes.", "A glob."),
	EXPRESSIONS(T "matchExpressions", "Containers that it takes."),
	SECTION_TEXT(T "groupBy",
		     "Containers for which this text is the same share a balloon; ${KEY} "
		     "stands for a value as in matchExpressions."),
	SECTION_NUMBER(T "minCPUs", -CPUS_LIMIT, CPUS_LIMIT, "0",
		       "A balloon never has fewer CPUs."),
	SECTION_NUMBER(T "maxCPUs", -CPUS_LIMIT, CPUS_LIMIT, "0",
		       "A balloon never has more CPUs; 0: no limit; negative: no container fits."),
	SECTION_NUMBER(T "minBalloons", 0, RP_CPUS_MAX, "0", "So many balloons always exist."),
	SECTION_NUMBER(T "maxBalloons", 0, INT32_MAX, "0", "There are never more; 0: no limit."),
	SECTION_BOOL(T "preferNewBalloons", "false",
		     "Make a new balloon rather than use one with room."),
	SECTION_BOOL(T "preferSpreadingPods", "false",
		     "Containers of a pod need not be in the same balloon."),
	SECTION_BOOL(T "preferPerNamespaceBalloon", "false",
		     "Containers of a namespace share a balloon, those of different ones do not."),
	SECTION_CHOICE(
		T "allocatorPriority", "high|normal|low|none", "high",
		"Order in which balloons are made at the start, and the kind of CPUs they like."),
	SECTION_BOOL(T "allocatorTopologyBalancing", NULL, "As above, for this type."),
	SECTION_BOOL(T "preferSpreadOnPhysicalCores", NULL, "As above, for this type."),
	SECTION_BOOL(T "hideHyperthreads", "false", "Containers see one thread of each core."),
	SECTION_TEXTS(T "preferCloseToDevices", "Devices that balloons should be near to.",
		      "A path in sysfs, or a device file; most important first."),
	SECTION_BOOL(T "preferIsolCpus", "false", "Prefer CPUs that the kernel isolates."),
	SECTION_CHOICE(T "preferCoreType", "|efficient|performance", NULL,
		       "Kind of cores to prefer."),
	SECTION_TEXTS(T "loads", "Load classes of its containers.", "Name of a load class."),
	SECTION_CHOICE(T "shareIdleCPUsInSame", "|system|package|die|numa|l2cache|core|thread",
		       NULL,
		       "Containers may also run on idle CPUs in the same part of the machine."),
	SECTION_TEXTS(T "memoryTypes", "Kinds of memory that containers get.",
		      "DRAM, HBM or PMEM."),
	SECTION_BOOL(T "pinMemory", NULL, "As above, for this type."),
	SECTION_TEXT(T "cpuClass", "Class of its CPUs."),
	SECTION_TEXT(T "schedulingClass", "Scheduling class of its containers."),
	SECTION_TEXTS(T "irqClaim", "Interrupts that run on its CPUs only.",
		      "The number of an interrupt, or a glob over its description."),
	SECTION_CHOICE(T "irqMode", "|sink|isolate", NULL,
		       "Whether its CPUs take all other interrupts, or none of them."),
	SECTION_MAPS(T "components", "Types of the balloons that one of this type consists of.",
		     "A component."),
	SECTION_NAME(T "components[].balloonType", "Name of a type."),
	SECTION_CHOICE(T "componentCreation", "|all|balance-balloons", NULL,
		       "A balloon of each component, or one of the component that has fewest."),
	SECTION_BOOL(T "showContainersInNrt", NULL, "As above, for this type."),
};

const struct rp_schema balloons_schema = {
	.size = sizeof(struct rp_schema),
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof(struct rp_key),
	.cr_kind = "BalloonsPolicy",
};
