/* SPDX-License-Identifier: Apache-2.0 */
/* CPU lists of annotations: what is read stays within the bounds, and written down it reads the
 * same. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/cpulist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[RP_IDSET_TEXT_MAX];
	char why[CPULIST_WHY_MAX], *list = calloc(1, size + 1);
	struct rp_idset cpus, again;
	uint32_t beyond;
	if (!list)
		return 0;
	memcpy(list, data, size);
	if (cpulist_parse(list, &cpus, &beyond, why)) {
		assert(beyond <= CPULIST_CPU_MAX && (beyond == 0 || beyond >= RP_CPUS_MAX));
		if (!rp_ids_empty(rp_ids_of(&cpus)) &&
		    rp_ids_format(rp_ids_of(&cpus), text, sizeof text) <= CPULIST_TEXT_MAX) {
			assert(cpulist_parse(text, &again, &beyond, why) && !beyond);
			assert(rp_ids_equal(rp_ids_of(&cpus), rp_ids_of(&again)));
		}
	} else {
		assert(memchr(why, '\0', sizeof why));
	}
	free(list);
	return 0;
}
