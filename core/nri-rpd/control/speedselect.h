/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of documents about Intel Speed Select and the extended resources that depend on it. */
#pragma once

#include "core/nri-rpd/control/internal.h"

void put_extended(struct json *j, struct pipeline *p);
void put_speedselect(struct json *j, struct topo *topo, const struct fs_root *root);
