/* SPDX-License-Identifier: Apache-2.0 */
/* Made by layout.py. The module ABI on machines with pointers of 64 bits, which modules rely on. */
#include <nri-rp/cache.h>
#include <nri-rp/calculator.h>
#include <nri-rp/config.h>
#include <nri-rp/controller.h>
#include <nri-rp/decision.h>
#include <nri-rp/host.h>
#include <nri-rp/module.h>
#include <nri-rp/node.h>
#include <nri-rp/policy.h>
#include <nri-rp/set.h>
#include <nri-rp/speedselect.h>
#include <nri-rp/topology.h>

#define AT(s, field, n) _Static_assert(offsetof(struct s, field) == (n), #s "." #field " has moved")
#define SIZE(s, n) _Static_assert(sizeof(struct s) == (n), #s " has another size")
#define AT_LEAST(s, n) _Static_assert(sizeof(struct s) >= (n), #s " has become shorter")
#define VALUE(name, n) _Static_assert((name) == (n), #name " has another value")
#define TEXT(name, t) _Static_assert(__builtin_strcmp(name, t) == 0, #name " has another text")

AT_LEAST(rp_host, 40);
AT(rp_host, size, 0);
AT(rp_host, abi_minor, 4);
AT(rp_host, ctx, 8);
AT(rp_host, service, 16);
AT(rp_host, log, 24);
AT(rp_host, fail, 32);

AT_LEAST(rp_module, 72);
AT(rp_module, size, 0);
AT(rp_module, abi_minor, 4);
AT(rp_module, min_host_minor, 8);
AT(rp_module, kinds, 12);
AT(rp_module, name, 16);
AT(rp_module, version, 24);
AT(rp_module, summary, 32);
AT(rp_module, licence, 40);
AT(rp_module, create, 48);
AT(rp_module, destroy, 56);
AT(rp_module, service, 64);

SIZE(rp_note, 72);
AT(rp_note, abi_major, 0);
AT(rp_note, abi_minor, 4);
AT(rp_note, min_host_minor, 8);
AT(rp_note, kinds, 12);
AT(rp_note, name, 16);
AT(rp_note, version, 48);

SIZE(rp_elf_note, 92);
AT(rp_elf_note, owner_size, 0);
AT(rp_elf_note, desc_size, 4);
AT(rp_elf_note, type, 8);
AT(rp_elf_note, owner, 12);
AT(rp_elf_note, note, 20);

AT_LEAST(rp_key, 64); /* since 1.3 */
AT(rp_key, path, 0);
AT(rp_key, type, 8);
AT(rp_key, flags, 12);
AT(rp_key, min, 16);
AT(rp_key, max, 24);
AT(rp_key, choices, 32);
AT(rp_key, fallback, 40);
AT(rp_key, doc, 48);
AT(rp_key, expected, 56); /* since 1.3 */

AT_LEAST(rp_schema, 32);
AT(rp_schema, size, 0);
AT(rp_schema, flags, 4);
AT(rp_schema, keys, 8);
AT(rp_schema, n_keys, 16);
AT(rp_schema, key_size, 20);
AT(rp_schema, cr_kind, 24);

AT_LEAST(rp_host_config, 96);
AT(rp_host_config, size, 0);
AT(rp_host_config, pad, 4);
AT(rp_host_config, kind, 8);
AT(rp_host_config, get, 16);
AT(rp_host_config, count, 24);
AT(rp_host_config, item, 32);
AT(rp_host_config, key, 40);
AT(rp_host_config, text, 48);
AT(rp_host_config, value, 56);
AT(rp_host_config, number, 64);
AT(rp_host_config, fail_at, 72);
AT(rp_host_config, where, 80);
AT(rp_host_config, parse, 88);

AT_LEAST(rp_event, 40); /* since 1.3 */
AT(rp_event, size, 0);
AT(rp_event, type, 4);
AT(rp_event, object, 8);
AT(rp_event, cookie, 16);
AT(rp_event, data, 24); /* since 1.3 */
AT(rp_event, data_size, 32); /* since 1.3 */
AT(rp_event, pad, 36); /* since 1.3 */

AT_LEAST(rp_policy, 112); /* since 1.3 */
AT(rp_policy, size, 0);
AT(rp_policy, pad, 4);
AT(rp_policy, prepare, 8);
AT(rp_policy, commit, 16);
AT(rp_policy, abort, 24);
AT(rp_policy, sync, 32);
AT(rp_policy, allocate, 40);
AT(rp_policy, update, 48);
AT(rp_policy, release, 56);
AT(rp_policy, event, 64);
AT(rp_policy, rolled_back, 72);
AT(rp_policy, stop, 80); /* since 1.2 */
AT(rp_policy, unmanaged, 88); /* since 1.2 */
AT(rp_policy, admit_pod, 96); /* since 1.3 */
AT(rp_policy, pod_removed, 104); /* since 1.3 */

AT_LEAST(rp_zone_sink, 48);
AT(rp_zone_sink, size, 0);
AT(rp_zone_sink, pad, 4);
AT(rp_zone_sink, ctx, 8);
AT(rp_zone_sink, zone, 16);
AT(rp_zone_sink, resource, 24);
AT(rp_zone_sink, attribute, 32);
AT(rp_zone_sink, cost, 40);

AT_LEAST(rp_zones, 16);
AT(rp_zones, size, 0);
AT(rp_zones, pad, 4);
AT(rp_zones, zones, 8);

AT_LEAST(rp_extended_sink, 32); /* since 1.2 */
AT(rp_extended_sink, size, 0); /* since 1.2 */
AT(rp_extended_sink, pad, 4); /* since 1.2 */
AT(rp_extended_sink, ctx, 8); /* since 1.2 */
AT(rp_extended_sink, own, 16); /* since 1.2 */
AT(rp_extended_sink, resource, 24); /* since 1.2 */

AT_LEAST(rp_extended, 16); /* since 1.2 */
AT(rp_extended, size, 0); /* since 1.2 */
AT(rp_extended, pad, 4); /* since 1.2 */
AT(rp_extended, extended, 8); /* since 1.2 */

AT_LEAST(rp_memory_sink, 24); /* since 1.3 */
AT(rp_memory_sink, size, 0); /* since 1.3 */
AT(rp_memory_sink, pad, 4); /* since 1.3 */
AT(rp_memory_sink, ctx, 8); /* since 1.3 */
AT(rp_memory_sink, part, 16); /* since 1.3 */

AT_LEAST(rp_allocation, 24); /* since 1.3 */
AT(rp_allocation, size, 0); /* since 1.3 */
AT(rp_allocation, pad, 4); /* since 1.3 */
AT(rp_allocation, allocatable, 8); /* since 1.3 */
AT(rp_allocation, memory, 16); /* since 1.3 */

AT_LEAST(rp_devices_sink, 56); /* since 1.3 */
AT(rp_devices_sink, size, 0); /* since 1.3 */
AT(rp_devices_sink, pad, 4); /* since 1.3 */
AT(rp_devices_sink, ctx, 8); /* since 1.3 */
AT(rp_devices_sink, device, 16); /* since 1.3 */
AT(rp_devices_sink, capacity, 24); /* since 1.3 */
AT(rp_devices_sink, number, 32); /* since 1.3 */
AT(rp_devices_sink, text, 40); /* since 1.3 */
AT(rp_devices_sink, limits, 48); /* since 1.3 */

AT_LEAST(rp_devices, 32); /* since 1.3 */
AT(rp_devices, size, 0); /* since 1.3 */
AT(rp_devices, pad, 4); /* since 1.3 */
AT(rp_devices, devices, 8); /* since 1.3 */
AT(rp_devices, allocate, 16); /* since 1.3 */
AT(rp_devices, release, 24); /* since 1.3 */

AT_LEAST(rp_metric_sink, 32);
AT(rp_metric_sink, size, 0);
AT(rp_metric_sink, pad, 4);
AT(rp_metric_sink, ctx, 8);
AT(rp_metric_sink, gauge, 16);
AT(rp_metric_sink, counter, 24);

AT_LEAST(rp_metrics, 16);
AT(rp_metrics, size, 0);
AT(rp_metrics, pad, 4);
AT(rp_metrics, collect, 8);

AT_LEAST(rp_state, 24);
AT(rp_state, size, 0);
AT(rp_state, pad, 4);
AT(rp_state, save, 8);
AT(rp_state, load, 16);

SIZE(rp_ids, 16);
AT(rp_ids, w, 0);
AT(rp_ids, nw, 8);
AT(rp_ids, pad, 12);

SIZE(rp_idset, 1032);
AT(rp_idset, nw, 0);
AT(rp_idset, pad, 4);
AT(rp_idset, w, 8);

AT_LEAST(rp_ctr_info, 240); /* since 1.3 */
AT(rp_ctr_info, size, 0);
AT(rp_ctr_info, state, 4);
AT(rp_ctr_info, qos, 8);
AT(rp_ctr_info, flags, 12);
AT(rp_ctr_info, ctr, 16);
AT(rp_ctr_info, pod, 24);
AT(rp_ctr_info, id, 32);
AT(rp_ctr_info, name, 40);
AT(rp_ctr_info, pod_name, 48);
AT(rp_ctr_info, pod_namespace, 56);
AT(rp_ctr_info, created_ns, 64);
AT(rp_ctr_info, cpu_request, 72);
AT(rp_ctr_info, cpu_limit, 80);
AT(rp_ctr_info, mem_request, 88);
AT(rp_ctr_info, mem_limit, 96);
AT(rp_ctr_info, cpus, 104);
AT(rp_ctr_info, mems, 120);
AT(rp_ctr_info, exclusive, 136);
AT(rp_ctr_info, shares, 152);
AT(rp_ctr_info, quota, 160);
AT(rp_ctr_info, period, 168);
AT(rp_ctr_info, has_cpus, 176); /* since 1.2 */
AT(rp_ctr_info, has_mems, 192); /* since 1.2 */
AT(rp_ctr_info, asked_shares, 208); /* since 1.3 */
AT(rp_ctr_info, asked_quota, 216); /* since 1.3 */
AT(rp_ctr_info, asked_period, 224); /* since 1.3 */
AT(rp_ctr_info, pod_cpu_extra, 232); /* since 1.3 */

AT_LEAST(rp_pod_info, 104); /* since 1.3 */
AT(rp_pod_info, size, 0);
AT(rp_pod_info, qos, 4);
AT(rp_pod_info, pod, 8);
AT(rp_pod_info, id, 16);
AT(rp_pod_info, name, 24);
AT(rp_pod_info, pod_namespace, 32);
AT(rp_pod_info, uid, 40);
AT(rp_pod_info, runtime_handler, 48);
AT(rp_pod_info, cgroup_parent, 56);
AT(rp_pod_info, flags, 64); /* since 1.3 */
AT(rp_pod_info, priority, 68); /* since 1.3 */
AT(rp_pod_info, cpu_request, 72); /* since 1.3 */
AT(rp_pod_info, cpu_limit, 80); /* since 1.3 */
AT(rp_pod_info, mem_limit, 88); /* since 1.3 */
AT(rp_pod_info, mem_request, 96); /* since 1.3 */

AT_LEAST(rp_pod_ctr_info, 48); /* since 1.3 */
AT(rp_pod_ctr_info, size, 0); /* since 1.3 */
AT(rp_pod_ctr_info, kind, 4); /* since 1.3 */
AT(rp_pod_ctr_info, name, 8); /* since 1.3 */
AT(rp_pod_ctr_info, cpu_request, 16); /* since 1.3 */
AT(rp_pod_ctr_info, cpu_limit, 24); /* since 1.3 */
AT(rp_pod_ctr_info, mem_request, 32); /* since 1.3 */
AT(rp_pod_ctr_info, mem_limit, 40); /* since 1.3 */

AT_LEAST(rp_mount_info, 32);
AT(rp_mount_info, size, 0);
AT(rp_mount_info, read_only, 4);
AT(rp_mount_info, source, 8);
AT(rp_mount_info, destination, 16);
AT(rp_mount_info, type, 24);

AT_LEAST(rp_device_info, 40);
AT(rp_device_info, size, 0);
AT(rp_device_info, writable, 4);
AT(rp_device_info, path, 8);
AT(rp_device_info, type, 16);
AT(rp_device_info, major, 24);
AT(rp_device_info, minor, 32);

AT_LEAST(rp_mount, 40); /* since 1.3 */
AT(rp_mount, size, 0); /* since 1.3 */
AT(rp_mount, read_only, 4); /* since 1.3 */
AT(rp_mount, source, 8); /* since 1.3 */
AT(rp_mount, destination, 16); /* since 1.3 */
AT(rp_mount, type, 24); /* since 1.3 */
AT(rp_mount, options, 32); /* since 1.3 */

AT_LEAST(rp_device, 48); /* since 1.3 */
AT(rp_device, size, 0); /* since 1.3 */
AT(rp_device, mode, 4); /* since 1.3 */
AT(rp_device, path, 8); /* since 1.3 */
AT(rp_device, type, 16); /* since 1.3 */
AT(rp_device, major, 24); /* since 1.3 */
AT(rp_device, minor, 32); /* since 1.3 */
AT(rp_device, uid, 40); /* since 1.3 */
AT(rp_device, gid, 44); /* since 1.3 */

AT_LEAST(rp_pod_resource_info, 32); /* since 1.2 */
AT(rp_pod_resource_info, size, 0); /* since 1.2 */
AT(rp_pod_resource_info, pad, 4); /* since 1.2 */
AT(rp_pod_resource_info, resource, 8); /* since 1.2 */
AT(rp_pod_resource_info, nodes, 16); /* since 1.2 */

AT_LEAST(rp_hugepages_info, 56); /* since 1.3 */
AT(rp_hugepages_info, size, 0); /* since 1.3 */
AT(rp_hugepages_info, pad, 4); /* since 1.3 */
AT(rp_hugepages_info, resource, 8); /* since 1.3 */
AT(rp_hugepages_info, page, 16); /* since 1.3 */
AT(rp_hugepages_info, total, 24); /* since 1.3 */
AT(rp_hugepages_info, others, 32); /* since 1.3 */
AT(rp_hugepages_info, left, 40); /* since 1.3 */
AT(rp_hugepages_info, claimed, 48); /* since 1.3 */

AT_LEAST(rp_host_cache, 344); /* since 1.3 */
AT(rp_host_cache, size, 0);
AT(rp_host_cache, pad, 4);
AT(rp_host_cache, list, 8);
AT(rp_host_cache, get_ctr, 16);
AT(rp_host_cache, get_pod, 24);
AT(rp_host_cache, annotation, 32);
AT(rp_host_cache, pod_annotation, 40);
AT(rp_host_cache, pod_label, 48);
AT(rp_host_cache, ctr_label, 56);
AT(rp_host_cache, ctr_annotation, 64);
AT(rp_host_cache, env, 72);
AT(rp_host_cache, mount, 80);
AT(rp_host_cache, device, 88);
AT(rp_host_cache, get_int, 96);
AT(rp_host_cache, get_text, 104);
AT(rp_host_cache, get_private, 112);
AT(rp_host_cache, extended, 120);
AT(rp_host_cache, set_cpus, 128);
AT(rp_host_cache, set_mems, 136);
AT(rp_host_cache, set_exclusive, 144);
AT(rp_host_cache, set_int, 152);
AT(rp_host_cache, set_text, 160);
AT(rp_host_cache, set_pair, 168);
AT(rp_host_cache, set_private, 176);
AT(rp_host_cache, set_degraded, 184);
AT(rp_host_cache, set_data, 192);
AT(rp_host_cache, pod_resource, 200); /* since 1.2 */
AT(rp_host_cache, arg, 208); /* since 1.3 */
AT(rp_host_cache, set_args, 216); /* since 1.3 */
AT(rp_host_cache, set_group, 224); /* since 1.3 */
AT(rp_host_cache, list_pods, 232); /* since 1.3 */
AT(rp_host_cache, get_pod_private, 240); /* since 1.3 */
AT(rp_host_cache, set_pod_private, 248); /* since 1.3 */
AT(rp_host_cache, may_wait, 256); /* since 1.3 */
AT(rp_host_cache, pod_ctr, 264); /* since 1.3 */
AT(rp_host_cache, add_mount, 272); /* since 1.3 */
AT(rp_host_cache, add_device, 280); /* since 1.3 */
AT(rp_host_cache, add_cdi, 288); /* since 1.3 */
AT(rp_host_cache, cdi, 296); /* since 1.3 */
AT(rp_host_cache, hugepages, 304); /* since 1.3 */
AT(rp_host_cache, node_hugepages, 312); /* since 1.3 */
AT(rp_host_cache, pod_annotations, 320); /* since 1.3 */
AT(rp_host_cache, memory, 328); /* since 1.3 */
AT(rp_host_cache, leave_unpinned, 336); /* since 1.3 */

AT_LEAST(rp_nr_node, 56); /* since 1.3 */
AT(rp_nr_node, size, 0); /* since 1.3 */
AT(rp_nr_node, n_zones, 4); /* since 1.3 */
AT(rp_nr_node, capacity, 8); /* since 1.3 */
AT(rp_nr_node, allocatable, 24); /* since 1.3 */
AT(rp_nr_node, reserved, 40); /* since 1.3 */

AT_LEAST(rp_nr_measured, 80); /* since 1.3 */
AT(rp_nr_measured, size, 0); /* since 1.3 */
AT(rp_nr_measured, degraded, 4); /* since 1.3 */
AT(rp_nr_measured, age_ms, 8); /* since 1.3 */
AT(rp_nr_measured, node, 16); /* since 1.3 */
AT(rp_nr_measured, system, 32); /* since 1.3 */
AT(rp_nr_measured, prod_reclaimable, 48); /* since 1.3 */
AT(rp_nr_measured, prod_peak, 64); /* since 1.3 */

AT_LEAST(rp_nr_aggregated, 176); /* since 1.3 */
AT(rp_nr_aggregated, size, 0); /* since 1.3 */
AT(rp_nr_aggregated, n, 4); /* since 1.3 */
AT(rp_nr_aggregated, duration_ms, 8); /* since 1.3 */
AT(rp_nr_aggregated, node, 16); /* since 1.3 */
AT(rp_nr_aggregated, system, 96); /* since 1.3 */

AT_LEAST(rp_nr_pod, 80); /* since 1.3 */
AT(rp_nr_pod, size, 0); /* since 1.3 */
AT(rp_nr_pod, flags, 4); /* since 1.3 */
AT(rp_nr_pod, name, 8); /* since 1.3 */
AT(rp_nr_pod, qos, 16); /* since 1.3 */
AT(rp_nr_pod, prio, 20); /* since 1.3 */
AT(rp_nr_pod, reported, 24); /* since 1.3 */
AT(rp_nr_pod, pad, 28); /* since 1.3 */
AT(rp_nr_pod, request, 32); /* since 1.3 */
AT(rp_nr_pod, usage, 48); /* since 1.3 */
AT(rp_nr_pod, zones, 64); /* since 1.3 */

AT_LEAST(rp_nr_app, 24); /* since 1.3 */
AT(rp_nr_app, size, 0); /* since 1.3 */
AT(rp_nr_app, prio, 4); /* since 1.3 */
AT(rp_nr_app, usage, 8); /* since 1.3 */

AT_LEAST(rp_nr_zone, 24); /* since 1.3 */
AT(rp_nr_zone, size, 0); /* since 1.3 */
AT(rp_nr_zone, id, 4); /* since 1.3 */
AT(rp_nr_zone, allocatable, 8); /* since 1.3 */

AT_LEAST(rp_nr_cpu, 24); /* since 1.3 */
AT(rp_nr_cpu, size, 0); /* since 1.3 */
AT(rp_nr_cpu, hyper_threads, 4); /* since 1.3 */
AT(rp_nr_cpu, turbo, 8); /* since 1.3 */
AT(rp_nr_cpu, pad, 12); /* since 1.3 */
AT(rp_nr_cpu, model, 16); /* since 1.3 */

AT_LEAST(rp_nr_device, 40); /* since 1.3 */
AT(rp_nr_device, size, 0); /* since 1.3 */
AT(rp_nr_device, healthy, 4); /* since 1.3 */
AT(rp_nr_device, type, 8); /* since 1.3 */
AT(rp_nr_device, vendor, 16); /* since 1.3 */
AT(rp_nr_device, model, 24); /* since 1.3 */
AT(rp_nr_device, driver, 32); /* since 1.3 */

AT_LEAST(rp_host_noderes, 104); /* since 1.3 */
AT(rp_host_noderes, size, 0); /* since 1.3 */
AT(rp_host_noderes, pad, 4); /* since 1.3 */
AT(rp_host_noderes, strategy, 8); /* since 1.3 */
AT(rp_host_noderes, node, 16); /* since 1.3 */
AT(rp_host_noderes, label, 24); /* since 1.3 */
AT(rp_host_noderes, annotation, 32); /* since 1.3 */
AT(rp_host_noderes, measured, 40); /* since 1.3 */
AT(rp_host_noderes, pod, 48); /* since 1.3 */
AT(rp_host_noderes, app, 56); /* since 1.3 */
AT(rp_host_noderes, zone, 64); /* since 1.3 */
AT(rp_host_noderes, cpu, 72); /* since 1.3 */
AT(rp_host_noderes, device, 80); /* since 1.3 */
AT(rp_host_noderes, device_amount, 88); /* since 1.3 */
AT(rp_host_noderes, aggregated, 96); /* since 1.3 */

AT_LEAST(rp_nr_item, 48); /* since 1.3 */
AT(rp_nr_item, size, 0); /* since 1.3 */
AT(rp_nr_item, flags, 4); /* since 1.3 */
AT(rp_nr_item, name, 8); /* since 1.3 */
AT(rp_nr_item, quantity, 16); /* since 1.3 */
AT(rp_nr_item, zones, 24); /* since 1.3 */
AT(rp_nr_item, n_zones, 32); /* since 1.3 */
AT(rp_nr_item, pad, 36); /* since 1.3 */
AT(rp_nr_item, message, 40); /* since 1.3 */

AT_LEAST(rp_nr_sink, 40); /* since 1.3 */
AT(rp_nr_sink, size, 0); /* since 1.3 */
AT(rp_nr_sink, pad, 4); /* since 1.3 */
AT(rp_nr_sink, ctx, 8); /* since 1.3 */
AT(rp_nr_sink, item, 16); /* since 1.3 */
AT(rp_nr_sink, label, 24); /* since 1.3 */
AT(rp_nr_sink, annotation, 32); /* since 1.3 */

AT_LEAST(rp_nr_edit, 96); /* since 1.3 */
AT(rp_nr_edit, size, 0); /* since 1.3 */
AT(rp_nr_edit, pad, 4); /* since 1.3 */
AT(rp_nr_edit, ctx, 8); /* since 1.3 */
AT(rp_nr_edit, result, 16); /* since 1.3 */
AT(rp_nr_edit, result_annotation, 24); /* since 1.3 */
AT(rp_nr_edit, get, 32); /* since 1.3 */
AT(rp_nr_edit, set, 40); /* since 1.3 */
AT(rp_nr_edit, remove, 48); /* since 1.3 */
AT(rp_nr_edit, annotation, 56); /* since 1.3 */
AT(rp_nr_edit, set_annotation, 64); /* since 1.3 */
AT(rp_nr_edit, set_label, 72); /* since 1.3 */
AT(rp_nr_edit, get_zone, 80); /* since 1.3 */
AT(rp_nr_edit, set_zone, 88); /* since 1.3 */

AT_LEAST(rp_calculator, 88); /* since 1.3 */
AT(rp_calculator, size, 0); /* since 1.3 */
AT(rp_calculator, flags, 4); /* since 1.3 */
AT(rp_calculator, prepare, 8); /* since 1.3 */
AT(rp_calculator, commit, 16); /* since 1.3 */
AT(rp_calculator, abort, 24); /* since 1.3 */
AT(rp_calculator, resources, 32); /* since 1.3 */
AT(rp_calculator, annotations, 40); /* since 1.3 */
AT(rp_calculator, calculate, 48); /* since 1.3 */
AT(rp_calculator, reset, 56); /* since 1.3 */
AT(rp_calculator, apply, 64); /* since 1.3 */
AT(rp_calculator, need_sync, 72); /* since 1.3 */
AT(rp_calculator, meta_changed, 80); /* since 1.3 */

AT_LEAST(rp_controller, 112); /* since 1.1 */
AT(rp_controller, size, 0);
AT(rp_controller, pad, 4);
AT(rp_controller, prepare, 8);
AT(rp_controller, commit, 16);
AT(rp_controller, abort, 24);
AT(rp_controller, start, 32);
AT(rp_controller, stop, 40);
AT(rp_controller, pre_create, 48);
AT(rp_controller, post_start, 56);
AT(rp_controller, post_update, 64);
AT(rp_controller, post_stop, 72);
AT(rp_controller, takes, 80);
AT(rp_controller, pad2, 84);
AT(rp_controller, sync, 88);
AT(rp_controller, timer, 96);
AT(rp_controller, measure, 104); /* since 1.1 */

AT_LEAST(rp_question, 32); /* since 1.3 */
AT(rp_question, size, 0); /* since 1.3 */
AT(rp_question, pad, 4); /* since 1.3 */
AT(rp_question, kind, 8); /* since 1.3 */
AT(rp_question, ctx, 16); /* since 1.3 */
AT(rp_question, input, 24); /* since 1.3 */

AT_LEAST(rp_answer, 24); /* since 1.3 */
AT(rp_answer, size, 0); /* since 1.3 */
AT(rp_answer, pad, 4); /* since 1.3 */
AT(rp_answer, ctx, 8); /* since 1.3 */
AT(rp_answer, result, 16); /* since 1.3 */

AT_LEAST(rp_decision, 24); /* since 1.3 */
AT(rp_decision, size, 0); /* since 1.3 */
AT(rp_decision, pad, 4); /* since 1.3 */
AT(rp_decision, kinds, 8); /* since 1.3 */
AT(rp_decision, decide, 16); /* since 1.3 */

AT_LEAST(rp_host_explain, 24);
AT(rp_host_explain, size, 0);
AT(rp_host_explain, pad, 4);
AT(rp_host_explain, note, 8);
AT(rp_host_explain, decided_by, 16);

AT_LEAST(rp_host_timer, 24);
AT(rp_host_timer, size, 0);
AT(rp_host_timer, pad, 4);
AT(rp_host_timer, arm, 8);
AT(rp_host_timer, now_ms, 16);

AT_LEAST(rp_host_work, 128); /* since 1.3 */
AT(rp_host_work, size, 0);
AT(rp_host_work, pad, 4);
AT(rp_host_work, submit, 8);
AT(rp_host_work, read_file, 16);
AT(rp_host_work, write_file, 24);
AT(rp_host_work, report, 32);
AT(rp_host_work, cgroup_dir, 40);
AT(rp_host_work, cgroup_ref, 48);
AT(rp_host_work, cgroup_find, 56);
AT(rp_host_work, list_dir, 64);
AT(rp_host_work, make_dir, 72);
AT(rp_host_work, remove_dir, 80);
AT(rp_host_work, move_pages, 88);
AT(rp_host_work, read_link, 96);
AT(rp_host_work, figure, 104); /* since 1.1 */
AT(rp_host_work, post, 112); /* since 1.3 */
AT(rp_host_work, read_node, 120); /* since 1.3 */

AT_LEAST(rp_usage, 96); /* since 1.1 */
AT(rp_usage, size, 0); /* since 1.1 */
AT(rp_usage, pressure, 4); /* since 1.1 */
AT(rp_usage, age_ms, 8); /* since 1.1 */
AT(rp_usage, cpu, 16); /* since 1.1 */
AT(rp_usage, throttled, 24); /* since 1.1 */
AT(rp_usage, memory, 32); /* since 1.1 */
AT(rp_usage, cpu_wait, 40); /* since 1.1 */
AT(rp_usage, memory_wait, 48); /* since 1.1 */
AT(rp_usage, io_wait, 56); /* since 1.1 */
AT(rp_usage, io_read, 64); /* since 1.1 */
AT(rp_usage, io_written, 72); /* since 1.1 */
AT(rp_usage, llc, 80); /* since 1.1 */
AT(rp_usage, traffic, 88); /* since 1.1 */

AT_LEAST(rp_host_usage, 16); /* since 1.1 */
AT(rp_host_usage, size, 0); /* since 1.1 */
AT(rp_host_usage, pad, 4); /* since 1.1 */
AT(rp_host_usage, get, 8); /* since 1.1 */

AT_LEAST(rp_host_settings, 40); /* since 1.2 */
AT(rp_host_settings, size, 0); /* since 1.2 */
AT(rp_host_settings, pad, 4); /* since 1.2 */
AT(rp_host_settings, keep, 8); /* since 1.2 */
AT(rp_host_settings, without, 16); /* since 1.2 */
AT(rp_host_settings, drop, 24); /* since 1.2 */
AT(rp_host_settings, found, 32); /* since 1.2 */

AT_LEAST(rp_host_evict, 40); /* since 1.3 */
AT(rp_host_evict, size, 0); /* since 1.3 */
AT(rp_host_evict, pad, 4); /* since 1.3 */
AT(rp_host_evict, available, 8); /* since 1.3 */
AT(rp_host_evict, evict, 16); /* since 1.3 */
AT(rp_host_evict, withdraw, 24); /* since 1.3 */
AT(rp_host_evict, state, 32); /* since 1.3 */

AT_LEAST(rp_host_runtime, 32); /* since 1.3 */
AT(rp_host_runtime, size, 0); /* since 1.3 */
AT(rp_host_runtime, pad, 4); /* since 1.3 */
AT(rp_host_runtime, flags, 8); /* since 1.3 */
AT(rp_host_runtime, name, 16); /* since 1.3 */
AT(rp_host_runtime, version, 24); /* since 1.3 */

AT_LEAST(rp_hint_list, 32); /* since 1.3 */
AT(rp_hint_list, size, 0); /* since 1.3 */
AT(rp_hint_list, flags, 4); /* since 1.3 */
AT(rp_hint_list, ctr, 8); /* since 1.3 */
AT(rp_hint_list, resource, 16); /* since 1.3 */
AT(rp_hint_list, n, 24); /* since 1.3 */
AT(rp_hint_list, pad, 28); /* since 1.3 */

AT_LEAST(rp_hint, 24); /* since 1.3 */
AT(rp_hint, size, 0); /* since 1.3 */
AT(rp_hint, preferred, 4); /* since 1.3 */
AT(rp_hint, nodes, 8); /* since 1.3 */

AT_LEAST(rp_host_hints, 32); /* since 1.3 */
AT(rp_host_hints, size, 0); /* since 1.3 */
AT(rp_host_hints, pad, 4); /* since 1.3 */
AT(rp_host_hints, list, 8); /* since 1.3 */
AT(rp_host_hints, hint, 16); /* since 1.3 */
AT(rp_host_hints, choose, 24); /* since 1.3 */

AT_LEAST(rp_node_taint, 32); /* since 1.3 */
AT(rp_node_taint, size, 0); /* since 1.3 */
AT(rp_node_taint, pad, 4); /* since 1.3 */
AT(rp_node_taint, key, 8); /* since 1.3 */
AT(rp_node_taint, value, 16); /* since 1.3 */
AT(rp_node_taint, effect, 24); /* since 1.3 */

AT_LEAST(rp_host_node, 88); /* since 1.3 */
AT(rp_host_node, size, 0); /* since 1.3 */
AT(rp_host_node, pad, 4); /* since 1.3 */
AT(rp_host_node, name, 8); /* since 1.3 */
AT(rp_host_node, label, 16); /* since 1.3 */
AT(rp_host_node, annotation, 24); /* since 1.3 */
AT(rp_host_node, taint, 32); /* since 1.3 */
AT(rp_host_node, capacity, 40); /* since 1.3 */
AT(rp_host_node, allocatable, 48); /* since 1.3 */
AT(rp_host_node, set_label, 56); /* since 1.3 */
AT(rp_host_node, set_annotation, 64); /* since 1.3 */
AT(rp_host_node, set_taint, 72); /* since 1.3 */
AT(rp_host_node, set_resource, 80); /* since 1.3 */

SIZE(rp_clos, 16); /* since 1.2 */
AT(rp_clos, min_mhz, 0); /* since 1.2 */
AT(rp_clos, max_mhz, 4); /* since 1.2 */
AT(rp_clos, weight, 8); /* since 1.2 */
AT(rp_clos, pad, 12); /* since 1.2 */

AT_LEAST(rp_sst_punit, 160); /* since 1.2 */
AT(rp_sst_punit, size, 0); /* since 1.2 */
AT(rp_sst_punit, package_id, 4); /* since 1.2 */
AT(rp_sst_punit, punit_id, 8); /* since 1.2 */
AT(rp_sst_punit, supported, 12); /* since 1.2 */
AT(rp_sst_punit, enabled, 16); /* since 1.2 */
AT(rp_sst_punit, priority, 20); /* since 1.2 */
AT(rp_sst_punit, n_buckets, 24); /* since 1.2 */
AT(rp_sst_punit, hp_cores, 28); /* since 1.2 */
AT(rp_sst_punit, pad, 60); /* since 1.2 */
AT(rp_sst_punit, clos, 64); /* since 1.2 */
AT(rp_sst_punit, cpus, 128); /* since 1.2 */
AT(rp_sst_punit, bf_cpus, 144); /* since 1.2 */

SIZE(rp_sst_at, 12); /* since 1.2 */
AT(rp_sst_at, package_id, 0); /* since 1.2 */
AT(rp_sst_at, punit_id, 4); /* since 1.2 */
AT(rp_sst_at, cpu, 8); /* since 1.2 */

AT_LEAST(rp_host_speedselect, 96); /* since 1.2 */
AT(rp_host_speedselect, size, 0); /* since 1.2 */
AT(rp_host_speedselect, pad, 4); /* since 1.2 */
AT(rp_host_speedselect, n_punits, 8); /* since 1.2 */
AT(rp_host_speedselect, why, 16); /* since 1.2 */
AT(rp_host_speedselect, punit, 24); /* since 1.2 */
AT(rp_host_speedselect, clos_of, 32); /* since 1.2 */
AT(rp_host_speedselect, manage, 40); /* since 1.2 */
AT(rp_host_speedselect, punit_now, 48); /* since 1.2 */
AT(rp_host_speedselect, clos_now, 56); /* since 1.2 */
AT(rp_host_speedselect, set_cp, 64); /* since 1.2 */
AT(rp_host_speedselect, set_tf, 72); /* since 1.2 */
AT(rp_host_speedselect, set_clos, 80); /* since 1.2 */
AT(rp_host_speedselect, associate, 88); /* since 1.2 */

AT_LEAST(rp_cpu_info, 112);
AT(rp_cpu_info, size, 0);
AT(rp_cpu_info, cpu, 4);
AT(rp_cpu_info, package_id, 8);
AT(rp_cpu_info, die_id, 12);
AT(rp_cpu_info, cluster_id, 16);
AT(rp_cpu_info, core_id, 20);
AT(rp_cpu_info, node_id, 24);
AT(rp_cpu_info, kind, 28);
AT(rp_cpu_info, unit, 32);
AT(rp_cpu_info, base_khz, 80);
AT(rp_cpu_info, min_khz, 88);
AT(rp_cpu_info, max_khz, 96);
AT(rp_cpu_info, epp, 104);
AT(rp_cpu_info, capacity, 108);

AT_LEAST(rp_unit_info, 24);
AT(rp_unit_info, size, 0);
AT(rp_unit_info, id, 4);
AT(rp_unit_info, cpus, 8);

AT_LEAST(rp_node_info, 48);
AT(rp_node_info, size, 0);
AT(rp_node_info, id, 4);
AT(rp_node_info, type, 8);
AT(rp_node_info, normal, 12);
AT(rp_node_info, memory, 16);
AT(rp_node_info, cpus, 24);
AT(rp_node_info, package_id, 40);
AT(rp_node_info, die_id, 44);

AT_LEAST(rp_cache_info, 40);
AT(rp_cache_info, size, 0);
AT(rp_cache_info, id, 4);
AT(rp_cache_info, level, 8);
AT(rp_cache_info, type, 12);
AT(rp_cache_info, bytes, 16);
AT(rp_cache_info, cpus, 24);

AT_LEAST(rp_host_topology, 112); /* since 1.3 */
AT(rp_host_topology, size, 0);
AT(rp_host_topology, pad, 4);
AT(rp_host_topology, generation, 8);
AT(rp_host_topology, set, 16);
AT(rp_host_topology, cpu, 24);
AT(rp_host_topology, n_units, 32);
AT(rp_host_topology, unit, 40);
AT(rp_host_topology, node, 48);
AT(rp_host_topology, distance, 56);
AT(rp_host_topology, n_caches, 64);
AT(rp_host_topology, cache, 72);
AT(rp_host_topology, device, 80);
AT(rp_host_topology, memory, 88);
AT(rp_host_topology, device_path, 96);
AT(rp_host_topology, simulated, 104); /* since 1.3 */
VALUE(RP_ABI_MAJOR, 1);
TEXT(RP_ALLOCATION_1, "nri-rp.allocation/1"); /* since 1.3 */
VALUE(RP_ANNOTATION_MAX, 65536);
VALUE(RP_APPLY_DONE, 1);
VALUE(RP_APPLY_FAILED, 3);
VALUE(RP_APPLY_PARTIAL, 2);
VALUE(RP_APPLY_PENDING, 0);
VALUE(RP_ARGS_BYTES_MAX, 131072); /* since 1.3 */
VALUE(RP_ARGS_MAX, 4096); /* since 1.3 */
VALUE(RP_CACHE_DATA, 1);
VALUE(RP_CACHE_INSTRUCTION, 2);
VALUE(RP_CACHE_UNIFIED, 3);
TEXT(RP_CALCULATOR_1, "nri-rp.calculator/1"); /* since 1.3 */
VALUE(RP_CALCULATOR_FORECAST, 1); /* since 1.3 */
VALUE(RP_CGROUP_REF_MAX, 4352);
VALUE(RP_CHANGED_CLASS, 16);
VALUE(RP_CHANGED_CPUS, 1);
VALUE(RP_CHANGED_CPU_SHARE, 4);
VALUE(RP_CHANGED_MEMORY, 8);
VALUE(RP_CHANGED_MEMS, 2);
VALUE(RP_CLOS_COUNT, 4); /* since 1.2 */
VALUE(RP_CLOS_UNKNOWN, 4294967295); /* since 1.2 */
TEXT(RP_CONTROLLER_1, "nri-rp.controller/1");
VALUE(RP_CORE_EFFICIENT, 1);
VALUE(RP_CORE_PERFORMANCE, 0);
VALUE(RP_CPUS_EFFICIENT, 6);
VALUE(RP_CPUS_ISOLATED, 4);
VALUE(RP_CPUS_MAX, 8192);
VALUE(RP_CPUS_NOHZ_FULL, 7);
VALUE(RP_CPUS_ONLINE, 3);
VALUE(RP_CPUS_PERFORMANCE, 5);
VALUE(RP_CPUS_POSSIBLE, 1);
VALUE(RP_CPUS_PRESENT, 2);
VALUE(RP_CTR_CLAIM, 512); /* since 1.3 */
VALUE(RP_CTR_DEGRADED, 32);
VALUE(RP_CTR_ESTIMATED_MEM, 1);
VALUE(RP_CTR_EXACT_NEEDS, 64); /* since 1.3 */
VALUE(RP_CTR_INIT, 8);
VALUE(RP_CTR_POD_RESOURCES, 256); /* since 1.3 */
VALUE(RP_CTR_PRESERVE_CPU, 2);
VALUE(RP_CTR_PRESERVE_MEM, 4);
VALUE(RP_CTR_RESTORED, 16);
VALUE(RP_CTR_RUNS_ALREADY, 128); /* since 1.3 */
TEXT(RP_DATA_DIR, "/.nri-resource-policy");
TEXT(RP_DECISION_1, "nri-rp.decision/1"); /* since 1.3 */
TEXT(RP_DEVICES_1, "nri-rp.devices/1"); /* since 1.3 */
VALUE(RP_E2BIG, 7);
VALUE(RP_EAGAIN, 11);
VALUE(RP_EBUSY, 16);
VALUE(RP_EINVAL, 22);
VALUE(RP_ENOENT, 2);
VALUE(RP_ENOMEM, 12);
VALUE(RP_ENOSPC, 28);
VALUE(RP_ENOTSUP, 95);
VALUE(RP_EPERM, 1); /* since 1.3 */
VALUE(RP_EPP_UNKNOWN, 4294967295);
VALUE(RP_ESTALE, 116);
VALUE(RP_EVENT_POSTED, 7); /* since 1.3 */
VALUE(RP_EVENT_PRESSURE, 5); /* since 1.1 */
VALUE(RP_EVENT_REBALANCE, 4);
VALUE(RP_EVENT_RUNTIME, 6); /* since 1.3 */
VALUE(RP_EVENT_STARTED, 1);
VALUE(RP_EVENT_TIMER, 3);
VALUE(RP_EVENT_TOPOLOGY, 2);
VALUE(RP_EVICTIONS_MAX, 64); /* since 1.3 */
VALUE(RP_EVICTION_ASKED, 1); /* since 1.3 */
VALUE(RP_EVICTION_FAILED, 4); /* since 1.3 */
VALUE(RP_EVICTION_GRANTED, 3); /* since 1.3 */
VALUE(RP_EVICTION_NONE, 0); /* since 1.3 */
VALUE(RP_EVICTION_REFUSED, 2); /* since 1.3 */
TEXT(RP_EXTENDED_1, "nri-rp.extended/1"); /* since 1.2 */
VALUE(RP_FIGURE_LLC, 1); /* since 1.1 */
VALUE(RP_FIGURE_TRAFFIC, 2); /* since 1.1 */
VALUE(RP_FILE_DIR, 1);
VALUE(RP_FILE_LINK, 2);
VALUE(RP_FILE_OTHER, 0);
VALUE(RP_FREQ_BASE, -2);
VALUE(RP_FREQ_MIN, -1);
VALUE(RP_FREQ_TURBO, -3);
VALUE(RP_F_ANNOTATION, 201);
VALUE(RP_F_BLOCKIO_CLASS, 101);
VALUE(RP_F_CPU_CLASS, 102);
VALUE(RP_F_ENV, 200);
VALUE(RP_F_HUGEPAGES, 203); /* since 1.3 */
VALUE(RP_F_IO_CLASS, 8);
VALUE(RP_F_IO_PRIORITY, 9);
VALUE(RP_F_MEMORY_LIMIT, 4);
VALUE(RP_F_MEMPOLICY_FLAGS, 104);
VALUE(RP_F_MEMPOLICY_MODE, 15);
VALUE(RP_F_MEMPOLICY_NODES, 103);
VALUE(RP_F_NICE, 7);
VALUE(RP_F_OOM_SCORE_ADJ, 10);
VALUE(RP_F_PERIOD, 3);
VALUE(RP_F_QUOTA, 2);
VALUE(RP_F_RDT_CLASS, 100);
VALUE(RP_F_RDT_GROUP, 105); /* since 1.3 */
VALUE(RP_F_SCHED_DEADLINE, 13);
VALUE(RP_F_SCHED_FLAGS, 11);
VALUE(RP_F_SCHED_PERIOD, 14);
VALUE(RP_F_SCHED_POLICY, 5);
VALUE(RP_F_SCHED_PRIORITY, 6);
VALUE(RP_F_SCHED_RUNTIME, 12);
VALUE(RP_F_SHARES, 1);
VALUE(RP_F_SWAP, 16); /* since 1.3 */
VALUE(RP_F_TOPTIER_LIMIT, 17); /* since 1.3 */
VALUE(RP_F_UNIFIED, 202);
VALUE(RP_GROUP_MAX, 65535); /* since 1.3 */
VALUE(RP_HINTS_MAIN, 1); /* since 1.3 */
VALUE(RP_HINTS_NOTHING_FITS, 2); /* since 1.3 */
TEXT(RP_HOST_CACHE_1, "nri-rp.host.cache/1");
TEXT(RP_HOST_CONFIG_1, "nri-rp.host.config/1");
TEXT(RP_HOST_EVICT_1, "nri-rp.host.evict/1"); /* since 1.3 */
TEXT(RP_HOST_EXPLAIN_1, "nri-rp.host.explain/1");
TEXT(RP_HOST_HINTS_1, "nri-rp.host.hints/1"); /* since 1.3 */
TEXT(RP_HOST_NODERES_1, "nri-rp.host.noderes/1"); /* since 1.3 */
TEXT(RP_HOST_NODE_1, "nri-rp.host.node/1"); /* since 1.3 */
TEXT(RP_HOST_RUNTIME_1, "nri-rp.host.runtime/1"); /* since 1.3 */
TEXT(RP_HOST_SETTINGS_1, "nri-rp.host.settings/1"); /* since 1.2 */
TEXT(RP_HOST_SPEEDSELECT_1, "nri-rp.host.speedselect/1"); /* since 1.2 */
TEXT(RP_HOST_TIMER_1, "nri-rp.host.timer/1");
TEXT(RP_HOST_TOPOLOGY_1, "nri-rp.host.topology/1");
TEXT(RP_HOST_USAGE_1, "nri-rp.host.usage/1"); /* since 1.1 */
TEXT(RP_HOST_WORK_1, "nri-rp.host.work/1");
VALUE(RP_IDSET_NONE, 4294967295);
VALUE(RP_IDSET_TEXT_MAX, 32768);
VALUE(RP_IDSET_WORDS, 128);
VALUE(RP_IGNORED, 1); /* since 1.3 */
VALUE(RP_KEY_NON_EMPTY, 4);
VALUE(RP_KEY_REQUIRED, 1);
VALUE(RP_KEY_RESTART, 2);
VALUE(RP_KIND_CALCULATOR, 4);
VALUE(RP_KIND_CONTROLLER, 2);
VALUE(RP_KIND_POLICY, 1);
VALUE(RP_KOORD_BE, 4); /* since 1.3 */
VALUE(RP_KOORD_LS, 3); /* since 1.3 */
VALUE(RP_KOORD_LSE, 1); /* since 1.3 */
VALUE(RP_KOORD_LSR, 2); /* since 1.3 */
VALUE(RP_KOORD_NONE, 0); /* since 1.3 */
VALUE(RP_KOORD_SYSTEM, 5); /* since 1.3 */
VALUE(RP_LEVEL_CLUSTER, 9);
VALUE(RP_LEVEL_CORE, 7);
VALUE(RP_LEVEL_DIE, 3);
VALUE(RP_LEVEL_L2, 6);
VALUE(RP_LEVEL_L3, 5);
VALUE(RP_LEVEL_LLC, 10);
VALUE(RP_LEVEL_NODE, 4);
VALUE(RP_LEVEL_PACKAGE, 2);
VALUE(RP_LEVEL_SYSTEM, 1);
VALUE(RP_LEVEL_THREAD, 8);
VALUE(RP_LOG_DEBUG, 7);
VALUE(RP_LOG_ERROR, 3);
VALUE(RP_LOG_INFO, 6);
VALUE(RP_LOG_NOTICE, 5);
VALUE(RP_LOG_WARNING, 4);
VALUE(RP_MEM_CXL, 3);
VALUE(RP_MEM_DRAM, 0);
VALUE(RP_MEM_HBM, 2);
VALUE(RP_MEM_NONE, 4);
VALUE(RP_MEM_PMEM, 1);
TEXT(RP_METRICS_1, "nri-rp.metrics/1");
TEXT(RP_MODULE_SYMBOL, "rp_module_1");
VALUE(RP_MOUNT_OPTIONS_MAX, 32); /* since 1.3 */
VALUE(RP_NAME_MAX, 32);
VALUE(RP_NODES_MAX, 1024);
VALUE(RP_NODES_MEMORY, 21);
VALUE(RP_NODES_NORMAL, 22);
VALUE(RP_NODES_ONLINE, 20);
VALUE(RP_NODE_ANNOTATION_MAX, 16384); /* since 1.3 */
VALUE(RP_NODE_FILE_MAX, 1048576); /* since 1.3 */
VALUE(RP_NODE_KEY_MAX, 317); /* since 1.3 */
VALUE(RP_NODE_LABEL_MAX, 63); /* since 1.3 */
VALUE(RP_NODE_LIST, 2);
VALUE(RP_NODE_MAP, 3);
VALUE(RP_NODE_NULL, 0);
VALUE(RP_NODE_SCALAR, 1);
VALUE(RP_NODE_WISHES_MAX, 128); /* since 1.3 */
TEXT(RP_NOTE_OWNER, "nri-rp");
VALUE(RP_NOTE_TYPE, 1);
VALUE(RP_NOT_MEASURED, -1); /* since 1.1 */
VALUE(RP_NOT_SET, (-9223372036854775807 - 1));
VALUE(RP_NR_AGGREGATE_SECONDS, 1); /* since 1.3 */
VALUE(RP_NR_AMOUNTS, 2); /* since 1.3 */
VALUE(RP_NR_AMOUNT_MAX, 1125899906842624); /* since 1.3 */
VALUE(RP_NR_AVG, 0); /* since 1.3 */
VALUE(RP_NR_BATCH_CPU_PERCENT, 17); /* since 1.3 */
VALUE(RP_NR_BATCH_MEMORY_PERCENT, 18); /* since 1.3 */
VALUE(RP_NR_BY_MAX, 2); /* since 1.3 */
VALUE(RP_NR_BY_REQUEST, 1); /* since 1.3 */
VALUE(RP_NR_BY_USAGE, 0); /* since 1.3 */
VALUE(RP_NR_COLLECT_HOT_CACHE, 1); /* since 1.3 */
VALUE(RP_NR_COLLECT_WITHOUT_CACHE, 0); /* since 1.3 */
VALUE(RP_NR_COLLECT_WITH_CACHE, 2); /* since 1.3 */
VALUE(RP_NR_CPU, 0); /* since 1.3 */
VALUE(RP_NR_CPU_POLICY, 5); /* since 1.3 */
VALUE(RP_NR_CPU_RECLAIM_PERCENT, 4); /* since 1.3 */
VALUE(RP_NR_DEGRADE_MINUTES, 8); /* since 1.3 */
VALUE(RP_NR_DIFF_THRESHOLD, 10); /* since 1.3 */
VALUE(RP_NR_ENABLE, 0); /* since 1.3 */
VALUE(RP_NR_FIELDS, 19); /* since 1.3 */
VALUE(RP_NR_ITEM_RESET, 1); /* since 1.3 */
VALUE(RP_NR_MEMORY, 1); /* since 1.3 */
VALUE(RP_NR_MEMORY_COLLECT, 3); /* since 1.3 */
VALUE(RP_NR_MEMORY_POLICY, 7); /* since 1.3 */
VALUE(RP_NR_MEMORY_RECLAIM_PERCENT, 6); /* since 1.3 */
VALUE(RP_NR_MID_CPU_PERCENT, 12); /* since 1.3 */
VALUE(RP_NR_MID_MEMORY_PERCENT, 13); /* since 1.3 */
VALUE(RP_NR_MID_MODE, 11); /* since 1.3 */
VALUE(RP_NR_MID_STATIC_CPU_PERCENT, 15); /* since 1.3 */
VALUE(RP_NR_MID_STATIC_MEMORY_PERCENT, 16); /* since 1.3 */
VALUE(RP_NR_MID_UNALLOCATED_PERCENT, 14); /* since 1.3 */
VALUE(RP_NR_P50, 1); /* since 1.3 */
VALUE(RP_NR_P90, 2); /* since 1.3 */
VALUE(RP_NR_P95, 3); /* since 1.3 */
VALUE(RP_NR_P99, 4); /* since 1.3 */
VALUE(RP_NR_POD_ACTIVE, 1); /* since 1.3 */
VALUE(RP_NR_POD_SAMPLED, 2); /* since 1.3 */
VALUE(RP_NR_REPORT_SECONDS, 2); /* since 1.3 */
VALUE(RP_NR_STATISTICS, 5); /* since 1.3 */
VALUE(RP_NR_UPDATE_SECONDS, 9); /* since 1.3 */
VALUE(RP_N_LEVELS, 11);
VALUE(RP_ORDER_CREATED, 0);
VALUE(RP_ORDER_SYNC, 1);
VALUE(RP_OWNER_NOT_SET, 4294967295); /* since 1.3 */
VALUE(RP_POD_CTR_APP, 1); /* since 1.3 */
VALUE(RP_POD_CTR_INIT, 2); /* since 1.3 */
VALUE(RP_POD_CTR_SIDECAR, 3); /* since 1.3 */
VALUE(RP_POD_DAEMON_SET, 4); /* since 1.3 */
VALUE(RP_POD_FED, 2); /* since 1.3 */
VALUE(RP_POD_OWN_RESOURCES, 8); /* since 1.3 */
VALUE(RP_POD_STOPPED, 1); /* since 1.3 */
TEXT(RP_POLICY_1, "nri-rp.policy/1");
VALUE(RP_POSTS_MAX, 256); /* since 1.3 */
VALUE(RP_POST_BYTES_MAX, 4096); /* since 1.3 */
VALUE(RP_PRESSURE_CPU, 2); /* since 1.1 */
VALUE(RP_PRESSURE_IO, 8); /* since 1.1 */
VALUE(RP_PRESSURE_MEMORY, 4); /* since 1.1 */
VALUE(RP_PRESSURE_THROTTLED, 1); /* since 1.1 */
VALUE(RP_PRIO_BATCH, 3); /* since 1.3 */
VALUE(RP_PRIO_FREE, 4); /* since 1.3 */
VALUE(RP_PRIO_MID, 2); /* since 1.3 */
VALUE(RP_PRIO_NONE, 0); /* since 1.3 */
VALUE(RP_PRIO_PROD, 1); /* since 1.3 */
VALUE(RP_PRIVATE_MAX, 4096);
VALUE(RP_QOS_BEST_EFFORT, 2);
VALUE(RP_QOS_BURSTABLE, 1);
VALUE(RP_QOS_GUARANTEED, 0);
VALUE(RP_RESYNC, 1);
VALUE(RP_RUNTIME_CAN_ARGS, 16); /* since 1.3 */
VALUE(RP_RUNTIME_CAN_CDI, 8); /* since 1.3 */
VALUE(RP_RUNTIME_CAN_INJECT, 2); /* since 1.3 */
VALUE(RP_RUNTIME_CAN_MEMPOLICY, 128); /* since 1.3 */
VALUE(RP_RUNTIME_CAN_RDT, 256); /* since 1.3 */
VALUE(RP_RUNTIME_CAN_REFUSE, 1); /* since 1.3 */
VALUE(RP_RUNTIME_CAN_SCHEDULE, 32); /* since 1.3 */
VALUE(RP_RUNTIME_CAN_SWAP, 64); /* since 1.3 */
VALUE(RP_RUNTIME_CREATION_IS_LATE, 4); /* since 1.3 */
TEXT(RP_SCHEMA_1, "nri-rp.config-schema/1");
VALUE(RP_SCHEMA_FOLD_CASE, 1);
VALUE(RP_SCOPE_CONTAINER, 1);
VALUE(RP_SCOPE_POD, 2);
VALUE(RP_SCOPE_UNSCOPED, 3);
VALUE(RP_SETTING_MAX, 4096); /* since 1.2 */
VALUE(RP_SETTING_PATH_MAX, 4096); /* since 1.2 */
VALUE(RP_SST_BF, 4); /* since 1.2 */
VALUE(RP_SST_BUCKETS, 8); /* since 1.2 */
VALUE(RP_SST_CP, 1); /* since 1.2 */
VALUE(RP_SST_MHZ_MAX, 25500); /* since 1.2 */
VALUE(RP_SST_MHZ_STEP, 100); /* since 1.2 */
VALUE(RP_SST_ORDERED, 1); /* since 1.2 */
VALUE(RP_SST_PROPORTIONAL, 0); /* since 1.2 */
VALUE(RP_SST_TF, 2); /* since 1.2 */
VALUE(RP_SST_WEIGHT_MAX, 15); /* since 1.2 */
TEXT(RP_STATE_1, "nri-rp.state/1");
VALUE(RP_STATE_CREATED, 1);
VALUE(RP_STATE_CREATING, 0);
VALUE(RP_STATE_EXITED, 4);
VALUE(RP_STATE_MAX, 65536);
VALUE(RP_STATE_PAUSED, 3);
VALUE(RP_STATE_RUNNING, 2);
VALUE(RP_TAKES_AMOUNTS, 4); /* since 1.3 */
VALUE(RP_TAKES_BLOCKIO_CLASS, 2);
VALUE(RP_TAKES_RDT_CLASS, 1);
VALUE(RP_TAKES_TOPTIER_LIMIT, 8); /* since 1.3 */
VALUE(RP_TIMERS_MAX, 1024);
VALUE(RP_TRAIL_MAX, 2048);
VALUE(RP_T_AMOUNT, 9);
VALUE(RP_T_ANY, 13);
VALUE(RP_T_BOOL, 1);
VALUE(RP_T_BYTES, 7);
VALUE(RP_T_CPU, 6);
VALUE(RP_T_CPULIST, 10);
VALUE(RP_T_DURATION, 8);
VALUE(RP_T_ENUM, 5);
VALUE(RP_T_FREQ, 14);
VALUE(RP_T_INT, 2);
VALUE(RP_T_LIST, 12);
VALUE(RP_T_MAP, 11);
VALUE(RP_T_NUMBER, 3);
VALUE(RP_T_STRING, 4);
VALUE(RP_VERSION_MAX, 24);
VALUE(RP_WAIT_MAX_MS, 60000); /* since 1.3 */
TEXT(RP_ZONES_1, "nri-rp.zones/1");
