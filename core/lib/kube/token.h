/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the token of a kubeconfig, for programs that use nothing else of it. */
#pragma once

#include "core/lib/kube/kubeconfig.h"

/*
 * Returns the token to send now, malloc'd; *ret NULL: none. -EINVAL: the file has no valid token;
 * another error: it is not readable.
 */
int kubeconfig_token(const struct kubeconfig *k, char **ret, struct err *err);
/* Reads a file of at most max bytes, malloc'd and NUL-terminated. */
int kube_read_file(const char *path, size_t max, char **ret, size_t *ret_len, struct err *err);
