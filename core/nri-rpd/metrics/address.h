/* SPDX-License-Identifier: Apache-2.0 */
/* Turns an address of the configuration into a listening socket. */
#pragma once

#include "core/lib/util/address.h"

/* Returns a listening socket, non-blocking; -errno. */
int address_listen(const struct address *a, struct err *err);
