/* SPDX-License-Identifier: Apache-2.0 */
#define HAND_NAME "hand3"
#define HAND_ENV "HAND3"
#include "hand.c"
