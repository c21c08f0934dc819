# SPDX-License-Identifier: Apache-2.0
"""What pods may ask for by annotation is told in the manual, all of it."""
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = (TOP / 'man' / 'nri-rp-annotations.7').read_text()
# Of Nodes, not of pods; written, not read; and domains of their own.
NOT_OF_PODS = re.compile(r'node\.koordinator\.sh/(?!extended)|^\.|koordinator\.sh/(gpu|rdma|priority)|cpuclass\.|kubernetes\.io/(batch|mid)|balloons\.nri|/$')
KEY = re.compile(r'#define (?:[A-Z_]*(?:KEY|ANNOTATION|ORDER|POLICY|SPEC|PREFER|ISOLATED|SHARED|RESERVED|PRIORITY|BURSTABLE|THREADS|TYPE|HINTS)\w*) '
                 r'(?:TA_DOMAIN |DOMAIN )?"([a-z][\w./-]+)"')


def keys():
    for path in (TOP / 'modules').rglob('*.[ch]'):
        for key in KEY.findall(path.read_text()):
            if not NOT_OF_PODS.search(key) and re.search('[-./]', key):
                yield path.relative_to(TOP), key


def short(key):
    return key.removesuffix('.resource-policy.nri.io').removesuffix('.nri.io')


def test_each_key_has_its_place_in_the_manual():
    found = list(keys())
    assert len(found) > 15
    assert not [(str(path), key) for path, key in found if short(key) not in PAGE]


def test_takers_are_those_of_the_manual():
    table = re.search(r'takers\[\] = \{(.*?)\};', (TOP / 'core' / 'cache' / 'hear.c').read_text(), re.S)[1]
    section = re.search(r'\.Sh TAKERS\n(.*?)\.Sh ', PAGE, re.S)[1]
    told = {word for line in re.findall(r'^\.It Ic (.*)$', section, re.M) for word in line.split(' , ')}
    ours = {short(key) for key in re.findall(r'"([^"]+)"', table)}
    assert told <= ours
    assert {key for key in ours if key not in told} <= {'katalyst.kubewharf.io/' + key for key in told}
