/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that manage nri-rp's services, in texts for people. The texts name systemd's commands;
 * in a pod of a cluster, which has no systemd, they are replaced by kubectl's.
 */
#pragma once

#include <stddef.h>

/* Copies the text with the commands for the place that this process runs in, cut if it does not
 * fit. Returns ret, or NULL for NULL. */
const char *service_text(const char *text, char *ret, size_t size);
