/* SPDX-License-Identifier: Apache-2.0 */
/* State that only the controllers room changes: the loaded controllers. */
#pragma once

#include "core/nri-rpd/pipeline/controllers/controllers.h"

struct controller_change; /* life.c */

struct controllers {
	struct controller *list[CONTROLLERS_MAX]; /* in the order of the configuration */
	unsigned n;
	struct controller_change *change; /* exists while a configuration is activated */
};
