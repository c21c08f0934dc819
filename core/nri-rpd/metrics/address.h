/* SPDX-License-Identifier: Apache-2.0 */
/* An address becomes a socket. */
#ifndef METRICS_ADDRESS_H
#define METRICS_ADDRESS_H

#include "core/lib/util/address.h"

/* A listening socket, non-blocking; -errno. */
int address_listen(const struct address *a, struct err *err);

#endif
