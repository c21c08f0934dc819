/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uthash for modules, which must not end the process. Without memory HASH_ADD leaves the table
 * unchanged and hh.tbl of the added element NULL; every caller must check this.
 */
#ifndef MODLIB_HASH_H
#define MODLIB_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
