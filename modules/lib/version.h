/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The version of this library, which is not that of the module ABI: a module carries its own copy
 * of the library, so that both sides of the border may be older or newer. What counts is that a
 * module's source goes on compiling.
 *
 * Within a major functions, structs, members and constants of the headers that are installed are
 * added, and never removed, renamed or given another type or meaning. Structs may grow, and none
 * has a promised layout: every source of a module is compiled with the headers of the library that
 * it is linked with. A minor more: something was added.
 */
#ifndef LIB_VERSION_H
#define LIB_VERSION_H

#define NRI_RP_LIB_MAJOR 1
#define NRI_RP_LIB_MINOR 0

#endif
