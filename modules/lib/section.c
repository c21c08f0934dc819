/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/lib/section.h"

#include <strings.h>

int section_word(const char *const *words, const char *text)
{
	for (int i = 0; words[i]; i++)
		if (strcasecmp(words[i], text) == 0)
			return i;
	return -1;
}
