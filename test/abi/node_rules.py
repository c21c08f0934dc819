# SPDX-License-Identifier: Apache-2.0
"""The rules of node resources a second time, in fractions and without regard to speed, and random inputs for them.

Each kind of nri-rp-modcheck --vectors has a function `KIND(rng)` that returns `in` and `out` of one case.
"""
import math
from fractions import Fraction

NOTHING = 10 ** 9  # a bucket of a histogram: none
CLASSES = {'prod': 9500, 'mid': 7500, 'batch': 5500, 'free': 3500}
G = 10 ** 9
DEFAULTS = {'cpuReclaimThresholdPercent': 60, 'memoryReclaimThresholdPercent': 65, 'degradeTimeMinutes': 15, 'midCPUThresholdPercent': 100,
            'midMemoryThresholdPercent': 100, 'midUnallocatedPercent': 0, 'midStaticCPUReservedPercent': 0, 'midStaticMemoryReservedPercent': 0}


def trunc(x):
    return math.floor(x) if x >= 0 else -math.floor(-x)


def percent(value, p):
    return trunc(Fraction(value * p, 100))


def cpu_text(rng, milli):
    return str(milli // 1000) if milli % 1000 == 0 and rng.random() < .7 else '%dm' % milli


def bytes_text(rng, n):
    for unit, size in (('Gi', 1 << 30), ('G', G), ('Mi', 1 << 20), ('M', 10 ** 6)):
        if n and n % size == 0:
            return '%d%s' % (n // size, unit)
    return str(n)


def some_cpu(rng, most):
    return rng.choice([rng.randrange(0, most + 1) * 1000, rng.randrange(0, most * 1000 + 1)])


def some_bytes(rng, most):
    return rng.choice([rng.randrange(0, most + 1) * G, rng.randrange(0, most + 1) << 30, rng.randrange(0, most * G)])


def amounts(rng, cpu, memory, name='mem'):
    return {'cpu': cpu_text(rng, cpu), name: bytes_text(rng, memory)}


def class_of(pod):
    """By label, by number, and what follows from QoS."""
    label = pod.get('priorityClass')
    own = None
    if label is not None:
        own = label if label in CLASSES else None
    else:
        own = {9: 'prod', 7: 'mid', 5: 'batch', 3: 'free'}.get(pod.get('priority', 0) // 1000)
    if own is None:
        return {'BE': 'batch', None: None}.get(pod.get('qos'), 'prod')
    return own


def some_pod(rng, name, zones):
    pod, cpu, memory = {'name': name, 'phase': rng.choice(['Running', 'Running', 'Pending', 'Succeeded', 'Failed'])}, some_cpu(rng, 20), some_bytes(rng, 20)
    qos = rng.choice(['LSE', 'LSR', 'LS', 'BE', 'SYSTEM', None])
    if qos:
        pod['qos'] = qos
    if rng.random() < .3:
        pod['priorityClass'] = rng.choice(['prod', 'mid', 'batch', 'free', 'other'])
    if rng.random() < .4:
        pod['priority'] = rng.choice([9999, 9000, 10000, 8999, 7000, 7999, 5000, 5999, 6000, 3000, 3999, 0, -5])
    if rng.random() < .9:
        pod.update(amounts(rng, cpu, memory))
    else:
        cpu = memory = 0
    if zones and rng.random() < .5:
        pod['numaNodes'] = sorted(rng.sample(range(zones + 2), rng.randrange(1, 3)))
    return pod, (cpu, memory)


def some_node(rng):
    """Name of keys, capacity, reserved."""
    cap = (rng.randrange(1, 200) * 1000, some_bytes(rng, 400) + 1)
    node, reserved = {'capacity': amounts(rng, *cap, 'memory')}, [0, 0]
    if rng.random() < .5:
        alloc = (rng.randrange(0, cap[0] + 1), rng.randrange(0, cap[1] + 1))
        node['allocatable'] = amounts(rng, *alloc, 'memory')
        reserved = [cap[0] - alloc[0], cap[1] - alloc[1]]
    if rng.random() < .5:
        note, own = {}, [0, 0]
        if rng.random() < .6:
            own = [some_cpu(rng, 10), some_bytes(rng, 10)]
            note['resources'] = amounts(rng, *own, 'memory')
        if rng.random() < .5:
            n = rng.randrange(0, 6)
            note['reservedCPUs'] = '' if n == 0 else '0-%d' % (n - 1)
            own[0] = n * 1000 if n else own[0]
        node['reservation'] = note
        reserved = [max(a, b) for a, b in zip(reserved, own)]
    return node, cap, reserved


def some_apps(rng):
    apps, by_class = [], {}
    for i in range(rng.randrange(0, 3)):
        cls, used = rng.choice(['prod', 'mid', 'batch', 'free']), (some_cpu(rng, 4), some_bytes(rng, 4))
        apps.append({'name': 'app%d' % i, 'priorityClass': cls, **amounts(rng, *used)})
        has = by_class.setdefault(cls, [0, 0])
        by_class[cls] = [a + b for a, b in zip(has, used)]
    return apps, by_class


def share(value, n):
    """A part of it, in thousandths, rounded up."""
    return Fraction(math.ceil(Fraction(value * 1000, n)), 1000)


def batch(rng):
    n_zones = rng.choice([0, 0, 1, 2, 3, 4])
    node, cap, reserved = some_node(rng)
    zones = [(rng.randrange(0, 60) * 1000, some_bytes(rng, 60)) for _ in range(n_zones)]
    if zones:
        node['zones'] = [{'name': 'node-%d' % i, **amounts(rng, *z, 'memory')} for i, z in enumerate(zones)]
    strategy = {}
    for key in ('cpuReclaimThresholdPercent', 'memoryReclaimThresholdPercent'):
        if rng.random() < .7:
            strategy[key] = rng.choice([0, 40, 65, 80, 100, 120, 150])
    for key in ('batchCPUThresholdPercent', 'batchMemoryThresholdPercent'):
        if rng.random() < .3:
            strategy[key] = rng.choice([0, 10, 50, 100, 130])
    policies = [rng.choice(['usage', 'maxUsageRequest', 'request', None]), rng.choice(['usage', 'request', 'maxUsageRequest', None])]
    for key, value in zip(('cpuCalculatePolicy', 'memoryCalculatePolicy'), policies):
        if value:
            strategy[key] = value
    if rng.random() < .3:
        strategy['degradeTimeMinutes'] = rng.choice([1, 15, 30])
    pods, requests, samples, used = [], {}, [], {}
    for i in range(rng.randrange(0, 7)):
        pod, asked = some_pod(rng, 'pod%d' % i, n_zones)
        pods.append(pod)
        requests[pod['name']] = asked
    for name in list(requests) + ['gone%d' % i for i in range(rng.randrange(0, 3))]:
        if rng.random() < .8:
            use = (some_cpu(rng, 20), some_bytes(rng, 20))
            used[name] = use
            samples.append({'name': name, **amounts(rng, *use)})
            if rng.random() < .5:
                samples[-1]['priorityClass'] = rng.choice(['prod', 'mid', 'batch', 'free'])
    apps, by_class = some_apps(rng)
    system = (some_cpu(rng, 10), some_bytes(rng, 10))
    limit = strategy.get('degradeTimeMinutes', 15) * 60
    age = rng.choice([0, 20, limit, limit + 1, None] if rng.random() < .3 else [0, 30])
    metrics = {'ageSeconds': age, 'systemUsage': amounts(rng, *system), 'pods': samples, 'hostApps': apps}
    given = {'strategy': strategy, 'node': node, 'pods': pods, 'metrics': metrics}
    if age is None or age > limit:
        return given, {'reset': True}
    rows = [[], []]  # (request, used, max, zones it is bound to)
    for pod in pods:
        if pod['phase'] not in ('Running', 'Pending') or class_of(pod) in ('batch', 'free'):
            continue
        bound = [z for z in pod.get('numaNodes', []) if z < n_zones] or list(range(n_zones))
        for k in range(2):
            asked, use = requests[pod['name']][k], used.get(pod['name'], requests[pod['name']])[k]
            counted = asked if pod.get('qos') == 'LSE' and k == 0 else use
            rows[k].append((asked, counted, use, bound))
    listed = {p['name'] for p in pods if p['phase'] in ('Running', 'Pending')}
    for sample in samples:
        if sample['name'] in listed or sample.get('priorityClass') in ('batch', 'free'):
            continue
        for k in range(2):
            rows[k].append((0, used[sample['name']][k], used[sample['name']][k], list(range(n_zones))))

    def value(k, base, is_reserved, is_system, asked, use, most):
        p = strategy.get(('cpuReclaimThresholdPercent', 'memoryReclaimThresholdPercent')[k], (60, 65)[k])
        policy, margin = policies[k], base * (100 - p) / Fraction(100)
        margin = trunc(margin * unit) / Fraction(unit)
        if policy == 'request' and k == 1:
            left = base - margin - is_reserved - asked
        else:
            left = base - margin - is_system - (most if policy == 'maxUsageRequest' else use)
        cap_p = strategy.get(('batchCPUThresholdPercent', 'batchMemoryThresholdPercent')[k])
        left = max(0, left)
        return left if cap_p is None else min(left, trunc(Fraction(base * cap_p, 100)))
    out, by_zone = {}, [[], []]
    for k in range(2):
        unit = 1
        apps_used = sum(by_class.get(c, (0, 0))[k] for c in ('prod', 'mid'))
        is_system = max(system[k] + apps_used, reserved[k])
        out[('batchCPU', 'batchMemory')[k]] = trunc(value(k, cap[k], reserved[k], is_system, sum(r[0] for r in rows[k]), sum(r[1] for r in rows[k]),
                                                          sum(max(r[0], r[2]) for r in rows[k])))
        unit = (1, 1000)[k]

        def part(x, n):
            """CPU is in milli-CPU, memory in thousandths of a byte."""
            return Fraction(math.ceil(Fraction(x * unit, n)), unit)
        for z in range(n_zones):
            mine = [r for r in rows[k] if z in r[3]]
            asked = sum(part(r[0], len(r[3])) for r in mine)
            use = sum(part(r[1], len(r[3])) for r in mine)
            most = sum(max(part(r[0], len(r[3])), part(r[2], len(r[3]))) for r in mine)
            by_zone[k].append(trunc(value(k, zones[z][k], part(reserved[k], n_zones), part(is_system, n_zones), asked, use, most)))
    if n_zones:
        out['zones'] = [list(pair) for pair in zip(*by_zone)]
    return given, out


def mid(rng):
    node, cap, reserved = some_node(rng)
    pods, asked = [], [0, 0]
    for i in range(rng.randrange(0, 6)):
        pod, requests = some_pod(rng, 'pod%d' % i, 0)
        pods.append(pod)
        if pod['phase'] in ('Running', 'Pending') and class_of(pod) in ('prod', None):
            asked = [a + b for a, b in zip(asked, requests)]
    strategy = {key: rng.choice([0, 5, 10, 50, 100]) for key in ('midCPUThresholdPercent', 'midMemoryThresholdPercent', 'midUnallocatedPercent',
                                                                 'midStaticCPUReservedPercent', 'midStaticMemoryReservedPercent') if rng.random() < .5}
    if rng.random() < .2:
        strategy['midReclaimMode'] = 'static'
    of = {**DEFAULTS, **strategy}
    apps, by_class = some_apps(rng)
    system, usage, reclaimable = [(some_cpu(rng, m), some_bytes(rng, m)) for m in (10, 150, 60)]
    age = rng.choice([0, 30, 900, 901, None])
    metrics = {'ageSeconds': age, 'systemUsage': amounts(rng, *system), 'hostApps': apps}
    knows_usage, knows = rng.random() < .8, [rng.random() < .8, rng.random() < .8]
    if knows_usage:
        metrics['nodeUsage'] = amounts(rng, *usage)
    metrics['prodReclaimable'] = {k: v for (k, v), known in zip(amounts(rng, *reclaimable).items(), knows) if known}
    given = {'strategy': strategy, 'node': node, 'pods': pods, 'metrics': metrics}
    most = [percent(cap[k], of[('midCPUThresholdPercent', 'midMemoryThresholdPercent')[k]]) for k in range(2)]
    names = ('midCPU', 'midMemory')
    if 'midReclaimMode' in strategy:
        fixed = [percent(cap[k], of[('midStaticCPUReservedPercent', 'midStaticMemoryReservedPercent')[k]]) for k in range(2)]
        return given, {names[k]: min(fixed[k], most[k]) for k in range(2)}
    if age is None or age > 900:
        return given, {'reset': True}
    out, free = {}, []
    for k in range(2):
        unused = cap[k] - usage[k] if knows_usage else 0
        free.append(max(0, cap[k] - max(reserved[k], system[k] + by_class.get('prod', (0, 0))[k]) - asked[k]))
        value = max(0, min(reclaimable[k] if knows[k] else 0, unused)) + percent(free[k], of['midUnallocatedPercent'])
        out[names[k]] = min(value, most[k])
    return given, {**out, 'unallocated': free}


def prepare(rng):
    names = ['kubernetes.io/batch-cpu', 'kubernetes.io/batch-memory', 'kubernetes.io/mid-cpu', 'kubernetes.io/mid-memory']
    has = {n: rng.randrange(0, 10 ** 6) if rng.random() < .5 else Fraction(rng.randrange(0, 10 ** 9), 1000) for n in names if rng.random() < .7}
    given = {'calculated': {n: '%dm' % (v * 1000) if v % 1 else str(int(v)) for n, v in has.items()}}
    resets = [n for n in names if n not in has and rng.random() < .5]
    if resets:
        given['resets'] = resets
    ratio = rng.choice([None, None, '1.20', '0.80', '1.00', '2.55', '1.01', 'x', ''])
    if ratio is not None:
        given['normalizationRatio'] = ratio
    node = dict(has)
    if names[0] in node and ratio and ratio[0].isdigit() and Fraction(ratio) > 1:
        node[names[0]] = Fraction(trunc(node[names[0]] * 1000 * Fraction(ratio)), 1000)
    node = {n: math.ceil(v) for n, v in node.items()}
    out = {'node': node}
    if rng.random() < .4:
        entries = [{'name': 'x%d' % i, 'priority': rng.choice(['koord-batch', 'koord-batch', 'koord-mid', 'koord-prod']),
                    'resources': {n: str(rng.randrange(0, 400000)) for n in names[:2] if rng.random() < .7}} for i in range(rng.randrange(0, 4))]
        given['thirdParty'] = entries
        out['origin'] = {n: node.get(n, 0) for n in names[:2]}
        for n in names[:2]:
            if n in node:
                node[n] = max(0, node[n] - sum(int(e['resources'].get(n, 0)) for e in entries if e['priority'] == 'koord-batch'))
    return given, out


def needsync(rng):
    names = ['kubernetes.io/batch-cpu', 'kubernetes.io/batch-memory', 'kubernetes.io/mid-cpu', 'kubernetes.io/mid-memory']
    threshold = rng.choice([.01, .05, .1, .25, .5, 1.0])
    old, new = {}, {}
    for n in names:
        a = rng.choice([0, 20, 20000, 40 * G, rng.randrange(0, 10 ** 12)])
        edge = Fraction(a) * Fraction(str(threshold))
        b = rng.choice([a, a + math.floor(edge), a - math.floor(edge), a + math.floor(edge) + 1, a - math.floor(edge) - 1, 0, rng.randrange(0, 10 ** 6)])
        if rng.random() < .85:
            old[n] = a
        if rng.random() < .85:
            new[n] = max(0, b)
    watch = rng.sample(names, rng.randrange(1, 5))
    last, every = rng.choice([0, 10, 299, 300, 301, None]), rng.choice([300, 60])
    sync = last is None or last > every
    for n in watch:
        if (n in old) != (n in new):
            sync = True
        elif n in old and abs(new[n] - old[n]) > old[n] * Fraction(str(threshold)):
            sync = True
    return {'threshold': threshold, 'updateTimeThresholdSeconds': every, 'lastSyncSeconds': last, 'watch': watch,
            'old': {n: str(v) for n, v in old.items()}, 'new': {n: str(v) for n, v in new.items()}}, {'sync': sync}


def numa_split(rng):
    n, cpu, memory = rng.randrange(1, 9), some_cpu(rng, 20), rng.randrange(1, 64) << 30
    nodes = sorted(rng.sample(range(n + 3), rng.randrange(0, 4))) if rng.random() < .6 else []
    bound = [z for z in nodes if z < n] or list(range(n))
    given = {**amounts(rng, cpu, memory), 'zones': n}
    if nodes:
        given['numaNodes'] = nodes
    parts = math.ceil(Fraction(cpu, len(bound))), math.ceil(Fraction(memory, len(bound)))
    return given, {'cpu': [parts[0] if z in bound else 0 for z in range(n)], 'mem': [parts[1] if z in bound else 0 for z in range(n)]}


FIELDS = {'enable': [True, False], 'cpuReclaimThresholdPercent': [0, 65, 150], 'memoryReclaimThresholdPercent': [0, 65, 150], 'degradeTimeMinutes': [1, 15, 60],
          'updateTimeThresholdSeconds': [1, 300], 'resourceDiffThreshold': [.05, .1, 1.0], 'metricAggregateDurationSeconds': [1, 60, 600],
          'metricReportIntervalSeconds': [1, 30], 'cpuCalculatePolicy': ['usage', 'maxUsageRequest'], 'memoryCalculatePolicy': ['usage', 'request', 'maxUsageRequest'],
          'metricMemoryCollectPolicy': ['usageWithoutPageCache', 'usageWithPageCache', 'usageWithHotPageCache'], 'midReclaimMode': ['static'],
          'midCPUThresholdPercent': [0, 10, 100], 'midMemoryThresholdPercent': [0, 10, 100], 'midUnallocatedPercent': [0, 10, 100],
          'midStaticCPUReservedPercent': [0, 10, 100], 'midStaticMemoryReservedPercent': [0, 10, 100], 'batchCPUThresholdPercent': [0, 10, 150],
          'batchMemoryThresholdPercent': [0, 10, 150]}
WRONG = {'degradeTimeMinutes': [0, -1], 'updateTimeThresholdSeconds': [0, -3], 'resourceDiffThreshold': [0, -.1, 1.1, 2], 'metricAggregateDurationSeconds': [0, -1],
         'metricReportIntervalSeconds': [0], 'cpuReclaimThresholdPercent': [-1], 'memoryReclaimThresholdPercent': [-1], 'midCPUThresholdPercent': [-1, 101],
         'midMemoryThresholdPercent': [-1, 150], 'midUnallocatedPercent': [-10, 101], 'batchCPUThresholdPercent': [-1], 'batchMemoryThresholdPercent': [-20],
         'midStaticCPUReservedPercent': [-1, 101], 'midStaticMemoryReservedPercent': [-1, 200],
         'midReclaimMode': ['Static', 'dynamic'], 'memoryCalculatePolicy': ['most'], 'metricMemoryCollectPolicy': ['usage']}
RATIOS = {'cpu-reclaim-ratio': 'cpuReclaimThresholdPercent', 'memory-reclaim-ratio': 'memoryReclaimThresholdPercent',
          'mid-static-cpu-reserved-ratio': 'midStaticCPUReservedPercent', 'mid-static-memory-reserved-ratio': 'midStaticMemoryReservedPercent'}


def some_fields(rng, most=6):
    return {k: rng.choice(FIELDS[k]) for k in rng.sample(sorted(FIELDS), rng.randrange(0, most))}


def as_json(value):
    import json
    return json.dumps(value)


def strategy_merge(rng):
    cluster = some_fields(rng)
    labels = {k: rng.choice(['a', 'b']) for k in ('zone', 'pool') if rng.random() < .7}
    configs, effective, found = [], dict(cluster), False
    for _ in range(rng.randrange(0, 4)):
        entry = {'matchLabels': {k: rng.choice(['a', 'b']) for k in rng.sample(['zone', 'pool'], rng.randrange(1, 3))}, 'strategy': some_fields(rng) or {'enable': True}}
        if rng.random() < .2:
            entry['badSelector'] = True
        configs.append(entry)
        if not found and 'badSelector' not in entry and entry['matchLabels'].items() <= labels.items():
            effective.update(entry['strategy'])
            found = True
    annotations = {}
    if rng.random() < .5:
        own = some_fields(rng)
        annotations['node.koordinator.sh/colocation-strategy'] = as_json(own)
        effective.update(own)
    elif rng.random() < .3:
        annotations['node.koordinator.sh/colocation-strategy'] = rng.choice(['{]', '', '[1]', '"text"', '{"cpuReclaimThresholdPercent":"many"}', '{"enable":true'])
    for key, field in RATIOS.items():
        if rng.random() < .3:
            text = rng.choice(['0.7', '1', '0', '0.125', '.5', '1.0', '-0.1', 'x', '', '0.5x', '0.999'])
            labels['node.koordinator.sh/' + key] = text
            try:
                value = Fraction(text)
            except ValueError:
                continue
            if value >= 0:
                effective[field] = trunc(value * 100)
    return {'cluster': cluster, 'nodeConfigs': configs, 'labels': labels, 'annotations': annotations}, effective


def strategy_validate(rng):
    strategy, valid = some_fields(rng), True
    if rng.random() < .4:
        key = rng.choice(sorted(WRONG))
        strategy[key] = rng.choice(WRONG[key])
        valid = False
    configs = []
    for _ in range(rng.randrange(0, 3)):
        entry = {'name': 'x', 'matchLabels': {'a': 'b'}, 'strategy': {'enable': True, **some_fields(rng)}}
        wrong = rng.randrange(0, 8)
        if wrong == 0:
            entry['badSelector'] = True
        elif wrong == 1:
            entry['matchLabels'] = {}
        elif wrong == 2:
            entry['strategy'] = {}
        elif wrong == 3:
            key = rng.choice(sorted(WRONG))
            entry['strategy'][key] = rng.choice(WRONG[key])
        elif wrong == 4:
            del entry['matchLabels']
        elif wrong == 5:
            del entry['strategy']
        valid = valid and wrong > 5
        configs.append(entry)
    given = {'strategy': strategy}
    if configs:
        given['nodeConfigs'] = configs
    return given, {'valid': valid}


def cpu_normalization(rng):
    names = {(False, False): 'baseRatio', (True, False): 'hyperThreadEnabledRatio', (False, True): 'turboEnabledRatio', (True, True): 'hyperThreadTurboEnabledRatio'}
    strategy, enabled, error = {}, False, False
    if rng.random() < .9:
        strategy['enable'] = enabled = rng.random() < .7
    ratios = [.99, 1.0, 1.1, 2.255, 5.0, 5.01, 0, -1, 1.5, 1.25]
    if rng.random() < .4:
        strategy['defaultRatio'] = rng.choice(ratios)
    if rng.random() < .7:
        strategy['ratioModel'] = {m: {n: rng.choice(ratios) for n in names.values() if rng.random() < .7} for m in rng.sample(['XXX', 'A B @ 2.00GHz', 'c.d'], 2)}
    given = {'strategy': strategy}
    if rng.random() < .3:
        given['enabledLabel'] = label = rng.choice(['true', 'false', 'yes', '', 'True'])
        error = label not in ('true', 'false')
        enabled = label == 'true'
    cpu = None
    if rng.random() < .8:
        cpu = {'model': rng.choice(['XXX', 'A B @ 2.00GHz', 'c.d']), 'ht': rng.random() < .5, 'turbo': rng.random() < .5}
        given['cpu'] = {k: v for k, v in cpu.items() if v or rng.random() < .5}
    if error:
        return given, {'error': True}
    if not enabled:
        return given, {'annotation': '1.00'}
    ratio = None
    if cpu:
        ratio = strategy.get('ratioModel', {}).get(cpu['model'], {}).get(names[cpu['ht'], cpu['turbo']], strategy.get('defaultRatio'))
    if ratio is None or not 1 <= ratio <= 5:
        return given, {'error': True}
    return given, {'annotation': '%.2f' % ratio}


def cpu_normalization_meta(rng):
    texts = [None, '1.00', '1.10', '1.109', '1.12', '1.105', '5.00', 'x', '', '1.099999999']
    old, new = rng.choice(texts), rng.choice(texts)

    def number(text):
        try:
            return Fraction(text)
        except ValueError:
            return None
    if old is None or new is None:
        sync = old != new
    elif number(old) is None or number(new) is None:
        sync = number(old) is None
    else:
        sync = abs(number(new) - number(old)) > Fraction(1, 100)
    return {'old': old, 'new': new}, {'sync': sync}


def amplification(rng):
    given, error, ratios = {}, False, {}
    if rng.random() < .8:
        given['enable'] = rng.random() < .7
    if rng.random() < .7:
        own = {n: rng.choice([1.0, 1.5, 2.5, 1.25, 3, .9, 0]) if rng.random() < .3 else rng.choice([1, 1.5, 2]) for n in ('cpu', 'memory', 'example.com/x') if rng.random() < .6}
        given['ratios'] = own
        if given.get('enable'):
            ratios = dict(own)
            error = any(v < 1 for v in own.values())
    text = rng.choice([None, None, '1.20', '1.00', '2.50', 'invalid', '-1', ''])
    if text is not None:
        given['normalization'] = text
        error = error or text in ('invalid', '-1', '')
    if error:
        return given, {'error': True}
    cpu = Fraction(str(ratios.pop('cpu', 1))) * Fraction(text or '1')
    if cpu > 1:
        ratios['cpu'] = cpu
    rows = ['"%s":%.2f' % (n, float(v)) for n, v in sorted(ratios.items())]
    return given, {'annotation': '{%s}' % ','.join(rows) if rows else None}


def device_sum(rng):
    names = ['koordinator.sh/gpu-core', 'koordinator.sh/gpu-memory', 'koordinator.sh/gpu-memory-ratio']
    devices, out, rdma = [], {}, 0
    for _ in range(rng.randrange(0, 5)):
        healthy = rng.random() < .8
        if rng.random() < .2:
            devices.append({'type': 'rdma', 'healthy': healthy})
            rdma += 100 * healthy
            out['koordinator.sh/rdma'] = rdma
            continue
        d = {'healthy': healthy, **{n: rng.choice([100, 8000, 16 << 30]) for n in names}}
        if rng.random() < .4:
            d['vendor'] = rng.choice(['NVIDIA', 'nvidia', 'Other'])
        devices.append(d)
        for n in names:
            out[n] = out.get(n, 0) + (d[n] if healthy else 0)
        if d.get('vendor', 'NVIDIA').upper() == 'NVIDIA':
            out['koordinator.sh/gpu'] = out.get('koordinator.sh/gpu', 0) + (d[names[0]] if healthy else 0)
    return {'devices': devices}, out


def histogram(rng):
    linear = rng.random() < .5
    if linear:
        size, n = rng.choice([.5, 1.0, 2.0]), rng.randrange(2, 30)
        buckets, starts = {'type': 'linear', 'max': float(size * n), 'size': size}, [size * i for i in range(n + 1)]
    else:
        first, ratio, most = rng.choice([.025, 5.0, 40.0]), rng.choice([1.05, 1.5, 2.0]), 500.0
        n = math.ceil(math.log(most * (ratio - 1) / first + 1, ratio)) + 1
        buckets, starts = {'type': 'exponential', 'max': most, 'first': first, 'ratio': ratio}, [first * (ratio ** i - 1) / (ratio - 1) for i in range(n)]
    given, out = {'buckets': buckets}, {'numBuckets': len(starts)}

    def bucket(v):
        return max([i for i, s in enumerate(starts) if v >= s] or [0]) if v >= starts[1] else 0
    half = 3600 if rng.random() < .6 else 0
    if half:
        given['halfLifeSeconds'] = half
    samples, weights, t = [], [0] * len(starts), 0
    for _ in range(rng.randrange(0, 12)):
        # in the middle of a bucket: nothing hangs on how a border is rounded
        at = rng.randrange(0, len(starts))
        value = (starts[at] + starts[at + 1]) / 2 if at + 1 < len(starts) else starts[at] * 1.5
        w = rng.choice([1, 1, 2, 5])
        t += rng.choice([0, 60, 3600, 36000, 400000]) if half else 0
        samples.append([value, w, t])
        weights[at] += w * Fraction(2) ** (Fraction(t - samples[0][2], 3600)) if half and (t - samples[0][2]) % 3600 == 0 else w * (2.0 ** ((t - samples[0][2]) / 3600) if half else 1)
    given['samples'] = samples
    weights = [Fraction(w) for w in weights]
    # what is beyond a hundred half-lives is counted from a later time, and what is nothing then is nothing
    if half and samples:
        ref = 0
        for s in samples:
            while (s[2] - samples[0][2] - ref) / half > 100:
                ref += half * round((s[2] - samples[0][2] - ref) / half)
        weights = [w / Fraction(2) ** (ref // half) for w in weights]
    total, rows = sum(weights), []
    live = [i for i, w in enumerate(weights) if w >= Fraction(1, 10000)]
    for p in (0.0, .37, .5, .9, .95, .98, 1.0):
        if not live:
            rows.append([p, 0.0])
            continue
        run, at = Fraction(0), live[-1]
        for i in range(live[0], live[-1] + 1):
            run += weights[i]
            if run >= Fraction(str(p)) * total and abs(run - Fraction(str(p)) * total) > total / 10 ** 9 or (p in (0.0,) and run > 0):
                at = i
                break
        else:
            at = live[-1]
        if any(abs(sum(weights[:i + 1]) - Fraction(str(p)) * total) < total / 10 ** 6 for i in range(live[0], live[-1])) and p not in (0.0,):
            continue  # nothing hangs on how sums are rounded
        rows.append([p, starts[at + 1] if at + 1 < len(starts) else starts[-1]])
    out['percentiles'] = rows
    finds = [-1.0, 0.0] + [(starts[i] + starts[i + 1]) / 2 for i in range(0, len(starts) - 1, 5)] + [starts[-1] * 2]
    out['find'] = [[v, bucket(v)] for v in finds]
    out['starts'] = [[i, starts[i]] for i in range(0, len(starts), 7)]
    return given, out


def prod_reclaimable(rng):
    margin, cold = rng.choice([0, 10, 25]), rng.choice([60, 3600])
    free = (some_cpu(rng, 30), some_bytes(rng, 30))
    pods, spare, peaks, asked = [], [0, 0], [0, 0], [0, 0]
    for i in range(rng.randrange(0, 6)):
        need, peak, age = (some_cpu(rng, 8), some_bytes(rng, 8)), (rng.randrange(0, 8000), some_bytes(rng, 8)), rng.choice([0, 60, 61, 3600, 3601, 90000])
        pod = {'name': 'p%d' % i, 'ageSeconds': age, **amounts(rng, *need)}
        known, leaves = rng.random() < .8, rng.random() < .2
        if known:
            pod.update(p95cpu=peak[0], p98mem=peak[1])
        if leaves:
            pod['deleted'] = True
        cls = rng.choice([None, None, 'prod', 'mid', 'batch', 'free'])
        if cls:
            pod['priorityClass'] = cls
        pods.append(pod)
        if leaves or cls in ('mid', 'batch', 'free'):
            continue
        for k in range(2):
            asked[k] += need[k]
            if known and age > cold:
                p = trunc(Fraction(peak[k] * (100 + margin), 100))
                spare[k] += max(0, need[k] - p)
                peaks[k] += p
    models = {c: [rng.randrange(0, 5000), some_bytes(rng, 5)] for c in ('system', 'prod', 'none') if rng.random() < .8}
    by_pod = [max(0, min(spare[k], free[k] - peaks[k])) for k in range(2)]
    t = [trunc(Fraction(sum(m[k] for m in models.values()) * (100 + margin), 100)) for k in range(2)]
    by_class = [max(0, min(asked[k] - t[k], free[k] - t[k])) for k in range(2)]
    return ({'coldStartSeconds': cold, 'safetyMarginPercent': margin, 'pods': pods, 'models': models, 'allocatable': amounts(rng, *free, 'memory')},
            {'pod': by_pod, 'priority': by_class, 'prodReclaimable': [min(a, b) for a, b in zip(by_pod, by_class)]})


def tenths(rng, most):
    return rng.randrange(0, most * 10) / 10


def milli(x):
    return int(Fraction(str(x)) * 1000)


def cpu_suppress(rng):
    cap = rng.randrange(1, 128)
    given = {'capacity': str(cap), 'nodeUsed': tenths(rng, cap), 'thresholdPercent': rng.choice([0, 50, 65, 70, 100]), 'pods': [], 'hostApps': []}
    all_pods = kept_pods = all_apps = kept_apps = 0
    for _ in range(rng.randrange(0, 6)):
        pod = {'name': 'p', 'qos': rng.choice(['LSE', 'LSR', 'LS', 'BE', 'SYSTEM', 'unknown']), 'used': tenths(rng, 5)}
        given['pods'].append(pod)
        all_pods += milli(pod['used'])
        kept_pods += milli(pod['used']) if pod['qos'] != 'BE' else 0
    for _ in range(rng.randrange(0, 3)):
        app = {'qos': rng.choice(['LS', 'BE']), 'used': tenths(rng, 3)}
        given['hostApps'].append(app)
        all_apps += milli(app['used'])
        kept_apps += milli(app['used']) if app['qos'] != 'BE' else 0
    reserved = 0
    if rng.random() < .4:
        given['reserved'] = reserved = rng.randrange(0, 8)
    value = percent(cap * 1000, given['thresholdPercent']) - kept_pods - kept_apps - max(milli(given['nodeUsed']) - all_pods - all_apps, 0, reserved * 1000)
    if rng.random() < .4:
        given['minPercent'] = rng.choice([0, 10, 60])
        value = max(value, percent(cap * 1000, given['minPercent']))
    return given, {'milli': value}


def set_of(text):
    return {int(x) for x in text.split(',') if x}


def cpu_suppress_cpuset(rng):
    nodes, cores, threads = rng.choice([1, 2]), rng.choice([2, 4, 6]), rng.choice([1, 2])
    cpus = [[(n * cores + c) * threads + t if rng.random() < 2 else 0, n * cores + c, n, n] for n in range(nodes) for c in range(cores) for t in range(threads)]
    if threads == 2 and rng.random() < .5:  # the second threads have the higher numbers
        cpus = [[c[1] + (c[0] % 2) * nodes * cores, *c[1:]] for c in cpus]
    ids = [c[0] for c in cpus]

    def some(p):
        return ','.join(str(i) for i in sorted(i for i in ids if rng.random() < p))
    given = {'cpus': cpus, 'lsr': some(.3), 'lse': some(.1), 'old': some(.5), 'target': cpu_text(rng, some_cpu(rng, 12))}
    if rng.random() < .3:
        given['reserved'] = some(.3)
    out = set_of(given['lse']) | set_of(given.get('reserved', ''))
    text = given['target']
    target = int(text[:-1]) if text.endswith('m') else int(text) * 1000
    n = max(2, math.ceil(Fraction(target, 1000)))
    n = max(2, min(n, len(set_of(given['old'])) + math.ceil(Fraction(len(ids), 10))))
    free = [c for c in cpus if c[0] not in out]
    lsr, ls = [c for c in free if c[0] in set_of(given['lsr'])], [c for c in free if c[0] not in set_of(given['lsr'])]
    n_lsr = n * len(lsr) // (len(lsr) + len(ls)) if free else 0

    def pick(k, rows):
        if len(rows) < k:
            return []
        buckets = {}
        for c in rows:
            buckets.setdefault((c[3], c[2]), []).append(c)
        order = sorted(buckets.values(), key=lambda b: (-len(b), min(c[0] for c in b)))
        order = [sorted(b, key=lambda c: (c[1], c[0])) for b in order]
        got, at, idle = [], 0, 0
        while k > 1 and idle < len(order):
            b = order[at % len(order)]
            pair = next((i for i in range(len(b) - 1) if b[i][1] == b[i + 1][1]), None)
            idle = idle + 1 if pair is None else 0
            if pair is not None:
                got += [b.pop(pair)[0], b.pop(pair)[0]]
                k -= 2
            at += 1
        idle = 0
        while k > 0 and idle < len(order):
            b = order[at % len(order)]
            idle = idle + 1 if not b else 0
            if b:
                got.append(b.pop(0)[0])
                k -= 1
            at += 1
        return got
    picked = pick(n_lsr, lsr) + pick(n - n_lsr, ls)
    return given, {'cpuset': sorted(picked) or None}


def cpu_suppress_quota(rng):
    cap, target = rng.randrange(1, 128), some_cpu(rng, 80)
    current = rng.choice([-1, 2000, 100000, rng.randrange(2000, 10 ** 7), target * 100, target * 100 + cap * 1000, target * 100 - cap * 1000 + 1])
    current = current if current == -1 else max(2000, current)
    q, full = max(2000, target * 100), cap * 100000
    if current != -1:
        if abs(q - current) < Fraction(full, 100) and q != 2000:
            q = current
        elif q - current > Fraction(full, 10):
            q = current + full // 10
    return {'capacity': str(cap), 'target': cpu_text(rng, target), 'current': current}, {'quota': q}


def cpu_evict_satisfaction(rng):
    lower, upper = rng.choice([0, 30, 60, 61]), rng.choice([30, 40, 99, 100, 20])
    strategy = {'cpuEvictBESatisfactionLowerPercent': lower, 'cpuEvictBESatisfactionUpperPercent': upper}
    usage, by_allocatable = 90, False
    if rng.random() < .4:
        strategy['cpuEvictBEUsageThresholdPercent'] = usage = rng.choice([50, 80, 100])
    if rng.random() < .3:
        strategy['cpuEvictPolicy'] = rng.choice(['evictByAllocatable', 'evictByRealLimit'])
        by_allocatable = strategy['cpuEvictPolicy'] == 'evictByAllocatable'
    allocatable = rng.choice([0, 10000, 30000])

    def figures(count):
        limit = rng.choice([0, -1, 500, 999, 1000, 10000, 14000, rng.randrange(0, 40000)])
        return {'count': count, 'limit': limit, 'used': rng.choice([max(0, limit) * 9 // 10, max(0, limit), rng.randrange(0, 40000)]), 'request': rng.choice([0, 50000, rng.randrange(0, 80000)])}
    window, interval = rng.choice([60, 10]), rng.choice([1, 5])
    average = figures(rng.choice([0, 1, 3, 10, 19, 20, 59]))
    given = {'strategy': strategy, 'allocatable': allocatable, 'window': window, 'interval': interval, 'avg': average}
    if rng.random() < .7:
        given['current'] = figures(1)

    def release(f):
        limit = (allocatable or 1) if by_allocatable else f['limit']
        if limit <= 0 or f['request'] <= 0:
            return 0
        if limit >= 1000 and Fraction(f['used'], limit) < Fraction(usage, 100):
            return 0
        if Fraction(limit, f['request']) > Fraction(lower, 100):
            return 0
        return max(0, trunc(Fraction(f['request'] * upper, 100)) - limit)
    valid = 0 < lower <= 60 and upper < 100 and lower <= upper and average['count'] * interval * 3 >= window
    value = 0
    if valid:
        value = release(average)
        if 'current' in given:
            value = min(value, release(given['current']))
    return given, {'releaseMilli': value}


def evict_by_usage(rng):
    kind = rng.choice(['cpu', 'memory'])
    cap, used = (rng.randrange(1, 200) * 1000, some_cpu(rng, 200)) if kind == 'cpu' else (rng.randrange(1, 200) * G, some_bytes(rng, 200))
    text = cpu_text if kind == 'cpu' else bytes_text
    threshold = rng.choice([50, 70, 80])
    given = {'resource': kind, 'capacity': text(rng, cap), 'used': text(rng, used), 'threshold': threshold}
    lower = threshold - 2
    if rng.random() < .5:
        given['lower'] = lower = rng.choice([40, 50, 70, 80])
    pct = used * 100 // cap
    return given, {'release': max(0, trunc(Fraction(cap * (pct - lower), 100))) if pct >= threshold else 0}


def evict_by_allocatable(rng):
    threshold, lower, most = rng.choice([70, 80, 100]), rng.choice([50, 70]), rng.choice([5999, 7999, 5500, 4999])
    given = {'threshold': threshold, 'lower': lower, 'priorityThreshold': most, 'allocatable': {}, 'pods': []}
    sums = {'batch': 0, 'mid': 0}
    for c in sums:
        if rng.random() < .8:
            given['allocatable'][c] = rng.choice([0, 100000, rng.randrange(1, 200000)])
    for _ in range(rng.randrange(0, 6)):
        pod = {'priority': rng.choice([5000, 5999, 5500, 7000, 7999, 9000, 3000, 0]), 'request': rng.randrange(0, 80000)}
        given['pods'].append(pod)
        cls = {5: 'batch', 7: 'mid'}.get(pod['priority'] // 1000)
        if cls and pod['priority'] <= most:
            sums[cls] += pod['request']
    release = {}
    for c, total in sums.items():
        has = given['allocatable'].get(c)
        if has is None:
            value = total
        elif not total or total * 100 < threshold * has:
            value = 0
        else:
            value = max(0, total - trunc(Fraction(has * lower, 100)))
        if value:
            release[c] = value
    return given, {'release': release}


def burst_node_state(rng):
    cpus, threshold = rng.randrange(1, 64), rng.choice([0, 30, 50, 100])
    used = None if rng.random() < .1 else tenths(rng, cpus)
    given, shared, left = {'cpus': cpus, 'nodeUsed': used, 'thresholdPercent': threshold, 'pods': []}, cpus * 1000, 0 if used is None else milli(used)
    for _ in range(rng.randrange(0, 6)):
        pod = {'qos': rng.choice(['LSE', 'LSR', 'LS', 'BE']), 'request': rng.randrange(0, 16), 'used': tenths(rng, 4)}
        given['pods'].append(pod)
        shared -= pod['request'] * 1000 if pod['qos'] in ('LSE', 'LSR') else 0
        left -= milli(pod['used']) if pod['qos'] != 'LS' else 0
    if used is None:
        return given, {'state': 'unknown'}
    ratio, t = (Fraction(left, shared) if shared > 0 else Fraction(1)), Fraction(threshold, 100)
    return given, {'state': 'overload' if ratio >= t else 'cooling' if ratio >= t * Fraction(9, 10) else 'idle'}


def burst_quota(rng):
    limit, pct = rng.randrange(1, 80) * 100, rng.choice([90, 100, 150, 300])
    base = limit * 100
    given = {'limitMilli': limit, 'policy': rng.choice(['auto', 'none', 'cpuBurstOnly', 'cfsQuotaBurstOnly']), 'percent': pct, 'periodSeconds': rng.choice([-1, 60, 0]),
             'throttled': rng.choice([0, .5, 1]), 'state': rng.choice(['idle', 'cooling', 'overload', 'unknown']), 'current': rng.choice([base, base * 2, base * 3, rng.randrange(base // 2, base * 4)])}
    if given['policy'] in ('none', 'cpuBurstOnly'):
        way = 'reset'
    elif given['periodSeconds'] >= 0 and pct < 100:
        way = 'down'
    else:
        way = 'up' if given['throttled'] else 'remain'
    if way in ('up', 'remain'):
        way = {'overload': 'down', 'cooling': 'remain', 'unknown': 'remain', 'idle': way}[given['state']]
    q = {'reset': base, 'up': given['current'] * 6 // 5, 'down': given['current'] * 4 // 5, 'remain': given['current']}[way]
    most = percent(base, pct) if pct > 100 else base
    return given, {'quota': min(max(q, base), most)}


def burst_limiter(rng):
    given = {'periodSeconds': rng.choice([60, 100, 300]), 'maxPercent': rng.choice([110, 150, 300]), 'elapsedSeconds': rng.choice([1, 10, 60]),
             'initRatio': rng.choice([0, .1, .25, .5, 1]), 'usagePercent': rng.choice([0, 40, 59, 60, 80, 99, 100, 150, 300])}
    cap = given['periodSeconds'] * (given['maxPercent'] - 100)
    tokens, use = Fraction(str(given['initRatio'])) * cap, given['usagePercent']
    if use >= 100 or use < 60:
        tokens += (100 - use) * given['elapsedSeconds']
    tokens = trunc(max(-cap, min(cap, tokens)))
    return given, {'allow': tokens > 0, 'tokens': tokens}


def memory_qos(rng):
    free, limit = rng.randrange(8, 64) << 30, rng.choice([0, rng.randrange(1, 1 << 34)])
    request = rng.randrange(0, limit + 1) if limit else rng.choice([0, rng.randrange(0, 1 << 33)])
    given = {'nodeAllocatable': bytes_text(rng, free), 'minLimitPercent': rng.choice([0, 50, 100]), 'lowLimitPercent': rng.choice([0, 25, 80, 100]),
             'throttlingPercent': rng.choice([0, 80, 90, 100])}
    if request:
        given['request'] = str(request)
    if limit:
        given['limit'] = str(limit)
    low_min, low = percent(request, given['minLimitPercent']), percent(request, given['lowLimitPercent'])
    low = max(low, low_min) if low else 0
    high = 'max'
    if given['throttlingPercent']:
        top = request + percent((limit or free) - request, given['throttlingPercent'])
        high = max(top // 4096 * 4096, low_min)
    return given, {'min': low_min, 'low': low, 'high': high}


KINDS = [batch, mid, prepare, needsync, numa_split, strategy_merge, strategy_validate, cpu_normalization, cpu_normalization_meta, amplification, device_sum, histogram,
         prod_reclaimable, cpu_suppress, cpu_suppress_cpuset, cpu_suppress_quota, cpu_evict_satisfaction, evict_by_usage, evict_by_allocatable, burst_node_state, burst_quota,
         burst_limiter, memory_qos]


def table(function, rng, n):
    cases = []
    for i in range(n):
        given, out = function(rng)
        cases.append({'name': str(i), 'in': given, 'out': out})
    return {'kind': function.__name__.replace('_', '-'), 'cases': cases}
