/* SPDX-License-Identifier: Apache-2.0 */
/* What of a configuration works and is hardly what was meant, on this machine. */
#ifndef PIPELINE_ADVICE_H
#define PIPELINE_ADVICE_H

#include "core/lib/conf/conf.h"
#include "core/lib/topo/topo.h"
#include "core/lib/util/buf.h"

/* Appends a warning a line. */
void config_advise(const struct conf *conf, const struct topo *topo, struct buf *warnings);

#endif
