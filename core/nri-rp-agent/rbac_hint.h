/* SPDX-License-Identifier: Apache-2.0 */
/* What helps against an answer of the API server's that says no: a rule of a role, or a kind. */
#ifndef NRI_RP_AGENT_RIGHTS_H
#define NRI_RP_AGENT_RIGHTS_H

#include <stddef.h>

#define RIGHTS_TEXT_MAX 400u

/*
 * For a request with that method and path that was answered with that status: "needs {apiGroups:
 * [""], resources: [nodes/status], verbs: [patch]}" for 403, "the cluster has no such kind" for the
 * 404 of a list or of a kind's object; "" when nothing is known to help.
 */
void rights_remedy(const char *method, const char *path, unsigned status, char *ret, size_t size);

#endif
