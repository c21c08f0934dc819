/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/nri-runtime/release.h"

#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

static const struct nri_release releases[] = {
	{3, "v1.7.0", "1.28.0", ""},  {4, "v1.7.7", "1.28.4", ""},
	{5, "v1.7.13", "1.29.0", ""}, {6, "v1.7.16", "1.30.0", ""},
	{7, "v1.7.25", "1.31.0", ""}, {8, "v2.1.0", "1.31.4", ""},
	{9, "v2.1.4", "1.33.0", ""},  {10, "v2.2.0", "1.34.0", ""},
	{11, "v2.2.1", "1.35.0", ""}, {12, "v2.3.0", "1.36.0", "v0.12.2"},
};
#define N_RELEASES (sizeof releases / sizeof releases[0])

const struct nri_release *release_latest(void)
{
	return &releases[N_RELEASES - 1];
}

int release_find(const char *name, const struct nri_release **ret, struct err *err)
{
	uint64_t minor;
	const char *digits = str_has_prefix(name, "v") ? name + 1 : name;
	if (str_has_prefix(digits, "0.") && str_to_u64(digits + 2, &minor) == 0)
		for (unsigned i = 0; i < N_RELEASES; i++)
			if (releases[i].minor == minor) {
				*ret = &releases[i];
				return 0;
			}
	return err_set(err, -EINVAL, "NRI %s: expected 0.%u to 0.%u", name, releases[0].minor,
		       release_latest()->minor);
}
