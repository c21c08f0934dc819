/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uthash for modules, which must not end the process: without memory HASH_ADD leaves hh.tbl of the
 * added element NULL, and the table as it was. Every caller has to check that.
 */
#ifndef MODLIB_HASH_H
#define MODLIB_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
