/* SPDX-License-Identifier: Apache-2.0 */
/* Names of NRI's services and methods, for both ends. The messages are in proto/nri.proto. */
#pragma once

#include "proto/nri.pb-c.h"

#define NRI_PLUGIN_SERVICE "nri.pkg.api.v1alpha1.Plugin"
#define NRI_RUNTIME_SERVICE "nri.pkg.api.v1alpha1.Runtime"

/* Returns the name of an event's own method; NULL: the event is unknown. */
const char *nri_event_method(Nri__Event event);
