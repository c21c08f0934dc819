/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/wire/nri_protocol.h"

static const char *const methods[] = {
	[NRI__EVENT__RUN_POD_SANDBOX] = "RunPodSandbox",
	[NRI__EVENT__STOP_POD_SANDBOX] = "StopPodSandbox",
	[NRI__EVENT__REMOVE_POD_SANDBOX] = "RemovePodSandbox",
	[NRI__EVENT__CREATE_CONTAINER] = "CreateContainer",
	[NRI__EVENT__POST_CREATE_CONTAINER] = "PostCreateContainer",
	[NRI__EVENT__START_CONTAINER] = "StartContainer",
	[NRI__EVENT__POST_START_CONTAINER] = "PostStartContainer",
	[NRI__EVENT__UPDATE_CONTAINER] = "UpdateContainer",
	[NRI__EVENT__POST_UPDATE_CONTAINER] = "PostUpdateContainer",
	[NRI__EVENT__STOP_CONTAINER] = "StopContainer",
	[NRI__EVENT__REMOVE_CONTAINER] = "RemoveContainer",
	[NRI__EVENT__UPDATE_POD_SANDBOX] = "UpdatePodSandbox",
	[NRI__EVENT__POST_UPDATE_POD_SANDBOX] = "PostUpdatePodSandbox",
	[NRI__EVENT__VALIDATE_CONTAINER_ADJUSTMENT] = "ValidateContainerAdjustment",
};

const char *nri_event_method(Nri__Event event)
{
	return (unsigned)event < sizeof methods / sizeof *methods ? methods[event] : NULL;
}
