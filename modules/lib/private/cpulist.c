/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of CPU lists in annotations. */
#include "modules/lib/private/cpulist.h"

#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 16u

/* Parses "5" or "2-4" that fills the whole item. */
static bool read_item(const char *item, uint32_t len, struct rp_idset *ret, uint32_t *ret_beyond)
{
	const char *p = item;
	uint32_t first, last;
	if (rp_idset_parse_number(&p, CPULIST_CPU_MAX + 1, &first))
		return false;
	last = first;
	if (p < item + len && *p == '-') {
		p++;
		if (rp_idset_parse_number(&p, CPULIST_CPU_MAX + 1, &last))
			return false;
	}
	if (p != item + len || last < first)
		return false;
	if (first < RP_CPUS_MAX)
		rp_idset_add_range(ret, first, last < RP_CPUS_MAX ? last : RP_CPUS_MAX - 1);
	if (last >= RP_CPUS_MAX && !*ret_beyond)
		*ret_beyond = first < RP_CPUS_MAX ? RP_CPUS_MAX : first;
	return true;
}

bool cpulist_parse(const char *text, struct rp_idset *ret, uint32_t *ret_beyond,
		   char why[CPULIST_WHY_MAX])
{
	uint32_t n = 0;
	*ret_beyond = 0;
	rp_idset_clear(ret);
	if (strnlen(text, CPULIST_TEXT_MAX + 1) > CPULIST_TEXT_MAX) {
		(void)snprintf(why, CPULIST_WHY_MAX, "longer than %u characters", CPULIST_TEXT_MAX);
		return false;
	}
	if (!text[strspn(text, " \t")]) {
		(void)snprintf(why, CPULIST_WHY_MAX, "empty");
		return false;
	}
	for (const char *p = text, *end; p; p = *end ? end + 1 : NULL) {
		end = p + strcspn(p, ",");
		p += strspn(p, " \t");
		uint32_t len = (uint32_t)(end > p ? end - p : 0);
		while (len && (p[len - 1] == ' ' || p[len - 1] == '\t'))
			len--;
		if (!len) {
			(void)snprintf(why, CPULIST_WHY_MAX, "empty CPU value");
			return false;
		}
		if (n++ == CPULIST_ITEMS_MAX) {
			(void)snprintf(why, CPULIST_WHY_MAX, "more than %u elements",
				       CPULIST_ITEMS_MAX);
			return false;
		}
		if (!read_item(p, len, ret, ret_beyond)) {
			(void)snprintf(why, CPULIST_WHY_MAX, "%.*s", (int)(len < 64 ? len : 64), p);
			return false;
		}
	}
	return true;
}

const char *cpulist_few(struct rp_ids cpus, char buf[CPULIST_FEW_MAX])
{
	size_t n = (size_t)snprintf(buf, CPULIST_FEW_MAX, "[");
	uint32_t shown = 0;
	RP_IDS_EACH (cpu, cpus) {
		if (shown == SHOWN_MAX) {
			n += (size_t)snprintf(buf + n, CPULIST_FEW_MAX - n, " …");
			break;
		}
		n += (size_t)snprintf(buf + n, CPULIST_FEW_MAX - n, "%s%u", shown++ ? " " : "",
				      cpu);
	}
	(void)snprintf(buf + n, CPULIST_FEW_MAX - n, "]");
	return buf;
}
