/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/pipeline/observe/kubelet.h"

#include <jansson.h>
#include <stdio.h>

#include "core/lib/util/cleanup.h"

bool kubelet_policy(const struct fs_root *root, const char *path, char *ret, size_t size)
{
	_free_ char *text = NULL;
	size_t len;
	if (fs_read_all(root, path, KUBELET_STATE_MAX, &text, &len))
		return false;
	json_t *state = json_loadb(text, len, 0, NULL);
	const char *name = json_string_value(json_object_get(state, "policyName"));
	if (name)
		(void)snprintf(ret, size, "%s", name);
	json_decref(state);
	return name != NULL;
}
