/* SPDX-License-Identifier: Apache-2.0 */
#define HAND_NAME "hand2"
#define HAND_ENV "HAND2"
#include "hand.c"
