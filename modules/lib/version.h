/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The version of this library, which is independent of the version of the module ABI. Each module
 * contains its own copy of the library, so the host may be older or newer. The promise concerns the
 * source: a module's source compiles with every later minor.
 *
 * Within a major, functions, structs, members and constants of the installed headers are added, but
 * never removed, renamed or changed in type or meaning. Structs may grow, and their layout is not
 * promised: all sources of a module are compiled with the headers of the library that they are
 * linked with. A new minor means that something was added.
 */
#ifndef LIB_VERSION_H
#define LIB_VERSION_H

#define NRI_RP_LIB_MAJOR 1
#define NRI_RP_LIB_MINOR 0

#endif
