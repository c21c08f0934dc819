# SPDX-License-Identifier: Apache-2.0
"""The data file: what a container can read of its own placement (cache.exportData)."""
import os
import pathlib
import stat

import pytest

from simnode import STATIC, ctr, eventually

MOUNTED_AT = '/.nri-resource-policy'
EXPORT = {'cache': {'exportData': True}}


def folder_of(node, name):
    return pathlib.Path(node.paths['state'], 'containers', node.container(name)['id'])


def data_of(folder):
    """The assignments in the file; {} as long as there is none."""
    try:
        lines = (folder / 'resources.sh').read_text().splitlines()
    except FileNotFoundError:
        return {}
    return {key: value.strip('"') for key, _, value in (line.partition('=') for line in lines)}


def folders(node):
    top = pathlib.Path(node.paths['state'], 'containers')
    return sorted(f.name for f in top.iterdir()) if top.exists() else []


@pytest.fixture(params=[
    {**STATIC, **EXPORT},
    {'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}}, **EXPORT},
], ids=lambda p: p['policy'])
def node(make_node, request):
    return make_node(request.param)


def test_off_by_default(make_node):
    node = make_node(STATIC)
    given = node.create('p', ctr('c', '2', '64Mi'))[0]['given']
    assert 'mounts' not in given
    assert folders(node) == []


def test_mounted_and_written(node):
    given = node.create('p', ctr('own', '2', '64Mi'))[0]['given']
    folder = folder_of(node, 'p/own')
    assert given['mounts'] == [{'destination': MOUNTED_AT, 'source': str(folder), 'type': 'bind', 'options': 'bind,rslave,ro'}]
    eventually(lambda: data_of(folder))
    own = node.container('p/own')['cpus']
    assert own in data_of(folder).values()
    assert stat.S_IMODE((folder / 'resources.sh').stat().st_mode) == 0o644
    assert [f.name for f in folder.iterdir()] == ['resources.sh']


def test_the_mount_is_kept_apart_from_others(node):
    """The pod's own mounts stay where they are."""
    mounts = [{'destination': '/data', 'source': '/srv', 'type': 'bind', 'options': ['rbind', 'ro']}]
    node.create('p', ctr('c', '500m/1', '64Mi', mounts=mounts))
    folder = folder_of(node, 'p/c')
    eventually(lambda: data_of(folder))
    assert node.container('p/c')['given']['mounts'][0]['source'] == str(folder)


def test_follows_the_shared_cpus(make_node):
    node = make_node({**STATIC, **EXPORT})
    node.create('s', ctr('shares', '500m/1', '64Mi'))
    folder = folder_of(node, 's/shares')
    eventually(lambda: data_of(folder).get('SHARED_CPUS') == '0-15')
    node.create('g', ctr('owns', '2', '64Mi'))
    eventually(lambda: data_of(folder).get('SHARED_CPUS') == '0-1,4-15')
    assert node.container('s/shares')['cpus'] == '0-1,4-15'
    node.delete('g')
    eventually(lambda: data_of(folder).get('SHARED_CPUS') == '0-15')


def test_goes_with_the_container(node):
    node.create('p', ctr('a', '1', '64Mi'), ctr('b', '500m/1', '64Mi'))
    both = sorted(folder_of(node, 'p/' + name).name for name in 'ab')
    eventually(lambda: folders(node) == both)
    node.remove('p/a')
    eventually(lambda: folders(node) == both[:1] or folders(node) == both[1:])
    node.delete('p')
    eventually(lambda: folders(node) == [])


def test_what_went_unseen_is_cleared_away(node):
    """
    Containers that are gone when the daemon comes back leave no folders; those that run keep theirs. It may be killed before a file
    has been written, or while it is: under the name that mkstemp() made of it.
    """
    node.create('p', ctr('stays', '1', '64Mi'))
    node.create('q', ctr('goes', '1', '64Mi'))
    kept, gone = folder_of(node, 'p/stays').name, folder_of(node, 'q/goes')
    eventually(lambda: len(folders(node)) == 2)
    node.kill()
    (gone / 'resources.sh.aB3xYz').write_text('X=')
    node.delete('q')
    top = pathlib.Path(node.paths['state'], 'containers')
    (top / 'nobody').mkdir()
    (top / 'nobody' / 'resources.sh').write_text('X="1"\n')
    node.start()
    eventually(lambda: folders(node) == [kept] and data_of(top / kept))


def test_a_refused_container_leaves_no_folder(node):
    node.reject('big', ctr('c', '64', '64Mi'))
    node.create('p', ctr('c', '1', '64Mi'))
    eventually(lambda: folders(node) == [folder_of(node, 'p/c').name])


def test_a_folder_that_cannot_be_made_is_no_obstacle(make_node):
    """Where the folders should be is a file: the container runs without its data."""
    node = make_node({**STATIC, **EXPORT})
    pathlib.Path(node.paths['state'], 'containers').write_text('')
    given = node.create('p', ctr('c', '2', '64Mi'))[0]['given']
    assert 'mounts' not in given
    assert node.cpus('p/c') == {2, 3}
    node.log('default/p/c: cannot write its data file')


def test_switched_on_by_a_reload(make_node):
    """From then on; what runs already has no mount, and gets no folder."""
    node = make_node(STATIC)
    node.create('before', ctr('c', '500m/1', '64Mi'))
    node.config({**STATIC, **EXPORT})
    given = node.create('after', ctr('c', '500m/1', '64Mi'))[0]['given']
    assert given['mounts'][0]['destination'] == MOUNTED_AT
    eventually(lambda: data_of(folder_of(node, 'after/c')))
    node.create('owner', ctr('c', '2', '64Mi'))
    eventually(lambda: data_of(folder_of(node, 'after/c')).get('SHARED_CPUS') == '0-1,4-15')
    assert folder_of(node, 'before/c').name not in folders(node)
    assert 'data file' not in node.read_log()


def test_switched_off_by_a_reload(make_node):
    """What was written goes with its container, or at the next start."""
    node = make_node({**STATIC, **EXPORT})
    node.create('p', ctr('c', '500m/1', '64Mi'))
    node.create('q', ctr('c', '500m/1', '64Mi'))
    node.create('r', ctr('c', '500m/1', '64Mi'))
    eventually(lambda: len(folders(node)) == 3)
    node.config(STATIC)
    node.delete('p')
    eventually(lambda: len(folders(node)) == 2)
    node.stop()
    node.delete('q')
    node.start()
    eventually(lambda: folders(node) == [folder_of(node, 'r/c').name])


def test_nothing_is_written_by_a_trial(make_node):
    node = make_node({**STATIC, **EXPORT})
    node.create('p', ctr('c', '500m/1', '64Mi'))
    folder = folder_of(node, 'p/c')
    eventually(lambda: data_of(folder).get('SHARED_CPUS') == '0-15')
    before = os.stat(folder / 'resources.sh')
    node.badconfig({**STATIC, **EXPORT, 'static': {'reservedResources': {'cpu': 'cpuset:77'}}})
    after = os.stat(folder / 'resources.sh')
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert folders(node) == [folder.name]


def test_policies_that_say_nothing(make_node):
    """Without data there is nothing to mount."""
    node = make_node({'policy': 'none', **EXPORT})
    given = node.create('p', ctr('c', '500m/1', '64Mi'))[0]['given']
    assert 'mounts' not in given
    assert folders(node) == []
