/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over the files it is given, or over standard input: to look at a finding with
 * any compiler and debugger. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_MAX (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(FILE *f)
{
	size_t cap = 1 << 16, size = 0;
	uint8_t *data = malloc(cap);
	while (data && size < INPUT_MAX) {
		size_t n = fread(data + size, 1, cap - size, f);
		if (!n)
			break;
		size += n;
		if (size < cap)
			continue;
		uint8_t *grown = realloc(data, cap *= 2);
		if (!grown)
			break;
		data = grown;
	}
	if (!data)
		return 1;
	(void)LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = argc == 1 ? replay(stdin) : 0;
	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		if (!f) {
			perror(argv[i]);
			return 1;
		}
		failed |= replay(f);
		(void)fclose(f);
	}
	return failed;
}
