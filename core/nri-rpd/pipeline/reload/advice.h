/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about settings that are valid but probably a mistake on this node. */
#pragma once

#include "core/lib/conf/conf.h"
#include "core/lib/topo/topo.h"
#include "core/lib/util/buf.h"

/* Appends one line for each warning. */
void config_advise(const struct conf *conf, const struct topo *topo, struct buf *warnings);
