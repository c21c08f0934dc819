/* SPDX-License-Identifier: Apache-2.0 */
/* What both ends of the connection between nri-rpd and nri-rp-agent know. The messages are in
 * proto/agent.proto. */
#ifndef AGENT_PROTOCOL_H
#define AGENT_PROTOCOL_H

#define AGENT_SERVICE "nri-rp.v1.Agent"
#define AGENT_HOST_SERVICE "nri-rp.v1.AgentHost"
#define AGENT_DEFAULT_SOCKET "/run/nri-rp/agent.sock"
#define AGENT_DEFAULT_USER "nri-rp-agent"

/* The agent answers GetPod, ListPods and ForgetPod. */
#define AGENT_FEATURE_POD_RESOURCES "pod-resources"
/* The agent calls SetConfig, SetAdjustments, SetState, SetNode and SetPods, and answers Published,
 * Evict and Tell. */
#define AGENT_FEATURE_CLUSTER "cluster"
/* The agent calls SetPlugins and CheckPods, and answers PluginHints, PluginAllocate, PluginPreStart
 * and PluginRemove. */
#define AGENT_FEATURE_PLUGINS "resource-plugins"

#define AGENT_CONFIG_TIMEOUT_MS 60000u /* trying a configuration and putting it in force */
#define AGENT_EVICT_TIMEOUT_MS 45000u /* longer than the API server is given */
#define AGENT_EVENTS_MAX 32u /* of one message */
#define AGENT_ADJUSTMENTS "Adjustments" /* kind of the object of SetAdjustments */
#define AGENT_CONFIG_MAX (1u << 20) /* bytes of all sections of a configuration */
#define AGENT_SECTIONS_MAX 48u
#define AGENT_NODE_MAX (1u << 20) /* bytes of a Node as it is sent */
#define AGENT_SET_PODS_MAX (2u << 20) /* bytes of one SetPods */
#define AGENT_NODE_ITEMS_MAX 1024u /* of each of its lists */

/* What the kubelet is given to answer, in either direction of time: the agent gives up by then. */
#define AGENT_GET_MS 1000u
#define AGENT_LIST_MS 2000u

/* Bytes of a message; a list of all pods of a node with their devices is the largest. */
#define AGENT_MESSAGE_MAX (16u << 20)
#define AGENT_NAME_MAX 256u /* of a pod, namespace, container or resource */
#define AGENT_PODS_MAX 8192u /* of one list */
#define AGENT_CONTAINERS_MAX 1024u /* of one pod */
#define AGENT_RESOURCES_MAX 64u /* of one container */
#define AGENT_FEATURES_MAX 32u

#define AGENT_ALLOCATIONS_MS 2000u /* of ListAllocations and GetAllocatable */

#define AGENT_PLUGINS_MAX 32u
#define AGENT_HINTS_MAX 512u /* of one resource of one container */
#define AGENT_WANTED_MAX 512u /* of one pod */
#define AGENT_PLUGINS_ARENA (64u << 20) /* memory that a message about plugins may take */

#endif
