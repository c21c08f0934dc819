/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of both ends of the connection between nri-rpd and nri-rp-agent. The messages are in
 * proto/agent.proto. */
#pragma once

#define AGENT_SERVICE "nri-rp.v1.Agent"
#define AGENT_HOST_SERVICE "nri-rp.v1.AgentHost"
#define AGENT_DEFAULT_SOCKET "/run/nri-rp/agent.sock"
#define AGENT_DEFAULT_USER "nri-rp-agent"

/* Feature: the agent answers GetPod, ListPods and ForgetPod. */
#define AGENT_FEATURE_POD_RESOURCES "pod-resources"
/* Feature: the agent calls SetConfig, SetAdjustments, SetState, SetNode and SetPods, and answers
 * Published, Evict and Tell. */
#define AGENT_FEATURE_CLUSTER "cluster"
/* Feature: the agent calls SetPlugins and CheckPods, and answers PluginHints, PluginAllocate,
 * PluginPreStart and PluginRemove. */
#define AGENT_FEATURE_PLUGINS "resource-plugins"

/* time limit for trying and applying a pushed configuration */
#define AGENT_CONFIG_TIMEOUT_MS 60000u
/* time limit of an eviction, longer than the limit of the API server */
#define AGENT_EVICT_TIMEOUT_MS 45000u
#define AGENT_EVENTS_MAX 32u /* largest number of events per message */
#define AGENT_ADJUSTMENTS "Adjustments" /* kind of the object of SetAdjustments */
#define AGENT_CONFIG_MAX (1u << 20) /* largest size of all sections of a configuration, in bytes */
#define AGENT_SECTIONS_MAX 48u
#define AGENT_NODE_MAX (1u << 20) /* largest size of an encoded Node, in bytes */
#define AGENT_SET_PODS_MAX (2u << 20) /* largest size of one SetPods, in bytes */
#define AGENT_NODE_ITEMS_MAX 1024u /* largest number of entries of each list of a Node */

/* Time limit for the kubelet's answer, after which the agent gives up. */
#define AGENT_GET_MS 1000u
#define AGENT_LIST_MS 2000u

/* Bytes of a message; the largest is a list of all pods of a node with their devices. */
#define AGENT_MESSAGE_MAX (16u << 20)
#define AGENT_NAME_MAX 256u /* longest name of a pod, namespace, container or resource, in bytes */
#define AGENT_PODS_MAX 8192u /* largest number of pods of one list */
#define AGENT_CONTAINERS_MAX 1024u /* largest number of containers of one pod */
#define AGENT_RESOURCES_MAX 64u /* largest number of resources of one container */
#define AGENT_CLAIM_DEVICES_MAX 64u /* largest number of devices of the claims of one container */
#define AGENT_FEATURES_MAX 32u
/* largest number of namespaces of custom resources, besides the agent's own */
#define AGENT_NAMESPACES_MAX 8u

#define AGENT_ALLOCATIONS_MS 2000u /* time limit of ListAllocations and GetAllocatable */

#define AGENT_PLUGINS_MAX 32u
#define AGENT_HINTS_MAX 512u /* largest number of hints for one resource of one container */
#define AGENT_WANTED_MAX 512u /* largest number of requested resources of one pod */
/* Time limit of PrepareClaim, ReleaseClaim and ListClaims. */
#define AGENT_CLAIM_MS 5000u
#define AGENT_CLAIM_PODS_MAX 256u /* largest number of pods that may use one claim */
#define AGENT_CLAIM_CPUS_MAX 8192
#define AGENT_CLAIM_PARTS_MAX 16u /* largest number of our devices of one claim */
#define AGENT_DEVICES_MAX 128u /* largest number of devices of the policy */
/* largest number of capacities, and of attributes, of one device */
#define AGENT_DEVICE_ITEMS_MAX 16u

#define AGENT_PLUGINS_ARENA (64u << 20) /* memory for a message about plugins */
