/* SPDX-License-Identifier: Apache-2.0 */
/* State that only the wait room changes: deferred requests and the answers they wait for. */
#pragma once

#include "core/nri-rpd/pipeline/wait/admit.h"
#include "core/nri-rpd/pipeline/wait/claim_check.h"
#include "core/nri-rpd/pipeline/wait/devices.h"
#include "core/nri-rpd/pipeline/wait/hold.h"
#include "core/nri-rpd/pipeline/wait/plugins.h"

struct waits {
	struct hold hold;
	struct devices *devices; /* the kubelet's devices; NULL: the kubelet is not queried */
	struct plugins plugins;
	struct claim_check claim_check;
	struct admit_counts admit;
};
