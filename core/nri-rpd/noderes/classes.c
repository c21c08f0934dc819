/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/noderes/classes.h"

#include "core/lib/util/str.h"

uint32_t class_qos(const char *text)
{
	static const char *const names[] = {"", "LSE", "LSR", "LS", "BE", "SYSTEM"};
	for (uint32_t i = 1; text && i < sizeof names / sizeof *names; i++)
		if (str_eq(names[i], text))
			return i;
	return RP_KOORD_NONE;
}

uint32_t class_prio(const char *text, int64_t priority)
{
	static const struct {
		const char *name;
		int64_t from;
	} rows[] = {[RP_PRIO_PROD] = {"prod", 9000},
		    [RP_PRIO_MID] = {"mid", 7000},
		    [RP_PRIO_BATCH] = {"batch", 5000},
		    [RP_PRIO_FREE] = {"free", 3000}};
	if (text && str_has_prefix(text, "koord-"))
		text += sizeof "koord-" - 1;
	for (uint32_t i = RP_PRIO_PROD; i <= RP_PRIO_FREE; i++)
		if (text ? str_eq(rows[i].name, text)
			 : priority >= rows[i].from && priority < rows[i].from + 1000)
			return i;
	return RP_PRIO_NONE;
}

uint32_t class_prio_with_default(uint32_t prio, uint32_t qos)
{
	if (prio != RP_PRIO_NONE || qos == RP_KOORD_NONE)
		return prio;
	return qos == RP_KOORD_BE ? RP_PRIO_BATCH : RP_PRIO_PROD;
}
