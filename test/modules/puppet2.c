/* SPDX-License-Identifier: Apache-2.0 */
#define PUPPET_NAME "puppet2"
#include "puppet.c"
