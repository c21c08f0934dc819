/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the remedy for a refusal by the API server: a missing rule of a role, or a missing kind. */
#pragma once

#include <stddef.h>

#define RIGHTS_TEXT_MAX 400u

/*
 * Writes the remedy for a request with this method, path and status: "needs {apiGroups: [""],
 * resources: [nodes/status], verbs: [patch]}" for 403, "the cluster has no such kind" for 404 of a
 * list or of a kind's object; "" for other answers.
 */
void rights_remedy(const char *method, const char *path, unsigned status, char *ret, size_t size);
