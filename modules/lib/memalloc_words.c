/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of QoS classes and type names to the allocator's constants. */
#include <string.h>
#include <strings.h>

#include <nri-rp/cache.h>

#include <nri-rp/lib/memalloc.h>

static const struct {
	const char *name;
	uint32_t types;
} words[] = {{"dram", MEMALLOC_DRAM},
	     {"pmem", MEMALLOC_PMEM},
	     {"hbm", MEMALLOC_HBM},
	     {"mixed", MEMALLOC_ALL_TYPES}};
#define N_WORDS 4u
#define N_TYPES 3u

uint32_t memalloc_prio_of(uint32_t qos)
{
	return qos == RP_QOS_GUARANTEED	 ? MEMALLOC_PRIO_GUARANTEED
	       : qos == RP_QOS_BURSTABLE ? MEMALLOC_PRIO_BURSTABLE
					 : MEMALLOC_PRIO_BEST_EFFORT;
}

static uint32_t memalloc_words_find(const char *text, size_t len, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (strlen(words[i].name) == len && strncasecmp(words[i].name, text, len) == 0)
			return words[i].types;
	return 0;
}

uint32_t memalloc_type_of(const char *name)
{
	return memalloc_words_find(name, strlen(name), N_TYPES);
}

uint32_t memalloc_types_of(const char *text)
{
	static const char blanks[] = " \t";
	uint32_t types = 0;
	for (;;) {
		text += strspn(text, blanks);
		size_t len = strcspn(text, ", \t");
		uint32_t found = memalloc_words_find(text, len, N_WORDS);
		if (!found)
			return 0;
		types |= found;
		text += len;
		text += strspn(text, blanks);
		if (!*text)
			return types;
		if (*text++ != ',')
			return 0;
	}
}
