# SPDX-License-Identifier: Apache-2.0
"""What pods may ask for by annotation is told in the manual, all of it."""
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = (TOP / 'man' / 'nri-rp-annotations.7').read_text()
# Of Nodes; names of resources; labels.
NOT_OF_PODS = re.compile(r'node\.koordinator\.sh/(?!extended)|koordinator\.sh/(gpu|rdma|priority|qosClass|eviction-enabled)|kubernetes\.io/(batch|mid)-|'
                         r'cpuclass\.balloons|cmk\.intel|resource\.katalyst')
# Text that is written before the macro of a domain, or has one in it.
KEY = re.compile(r'"(\w[\w./-]*)" (?:\w+_)?DOMAIN\b|"([a-z][\w.-]*\.(?:resource-policy|memory-qos|podpools|dynamic-pools|balloons)\.nri\.io|resource-policy\.nri\.io/[\w-]+|'
                 r'(?:[a-z.]*\.)?(?:weka\.io|katalyst\.kubewharf\.io|koordinator\.sh|noderesource\.dev|intel\.com|kubernetes\.io)/[\w.-]+)')


def keys():
    for folder in ('modules', 'core/nri-rpd/cache', 'core/nri-rpd/pipeline', 'core/nri-rpd/host'):
        for path in (TOP / folder).rglob('*.[ch]'):
            for key in map(''.join, KEY.findall(path.read_text())):
                if not NOT_OF_PODS.search(key):
                    yield path.relative_to(TOP), key


def short(key):
    return key.removesuffix('.resource-policy.nri.io').rstrip('.')


def test_each_key_has_its_place_in_the_manual():
    found = list(keys())
    assert len({key for _, key in found}) > 40
    assert not [(str(path), key) for path, key in found if short(key) not in PAGE]


def families():
    """Lists of names that say the same thing: the one that takers[] has, then the others."""
    text = (TOP / 'core/nri-rpd/cache/annotation_rules.c').read_text()
    table = re.search(r'families\[\]\[\d+\] = \{(.*?)\n\};', text, re.S)[1].replace('KATALYST "', '"katalyst.kubewharf.io/')
    return [re.findall(r'"([^"]+)"', family) for family in re.findall(r'\{(.*?)\}', table, re.S)]


def test_takers_are_those_of_the_manual():
    table = re.search(r'takers\[\] = \{(.*?)\};', (TOP / 'core/nri-rpd/cache/annotation_rules.c').read_text(), re.S)[1]
    section = re.search(r'\.Sh TAKERS\n(.*?)\.Sh ', PAGE, re.S)[1]
    told = [line.split(' , ') for line in re.findall(r'^\.It Ic (.*)$', section, re.M)]
    ours = {short(key) for key in re.findall(r'"([^"]+)"', table)}
    assert {key for line in told for key in line} == ours | {key for family in families() for key in family}
    assert all(family in told for family in families())


def test_what_enhancements_say_is_of_their_family():
    ask = (TOP / 'modules' / 'qos' / 'ask.c').read_text()
    read = set(re.findall(r'SHORT\("(\w+)"', ask)) | set(re.findall(r'DOMAIN "(numa_(?!bind_)\w+)"', ask))
    assert read == {key for family in families()[:2] for key in family[1:]}
