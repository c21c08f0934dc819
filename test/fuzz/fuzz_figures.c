/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of files in cgroups. */
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/metrics/figures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	uint64_t a = 0, b = 0;
	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	(void)figures_number(text, &a);
	static const char *const keys[] = {"usage_usec", "anon"};
	uint64_t values[2];
	(void)figures_keys(text, keys, 2, values);
	(void)figures_wait(text, &a);
	(void)figures_io(text, &a, &b);
	(void)figures_io_v1(text, &a, &b);
	free(text);
	return 0;
}
