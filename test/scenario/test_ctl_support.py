# SPDX-License-Identifier: Apache-2.0
"""nri-rpctl support, version and config schema: what a report of a fault needs."""
import io
import json
import os
import pathlib
import re
import subprocess
import tarfile

from operator_tools import FAILED, OK, ctl, ctl_json, run_ctl
from simnode import BUILD, STATIC, ctr


def test_support_archive(make_node, tmp_path):
    """What a report of a fault needs, readable by its owner alone, without what pods may keep secret."""
    node = make_node(STATIC)
    node.create('web', ctr('c0', '1', '64Mi', env=['KEY=hidden-in-env']), annotations={'note': 'hidden-in-annotation'})
    file = tmp_path / 'report.tar.gz'
    said = ctl(node, 'support', str(file))
    assert said.code == OK and str(file) in said.out and file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        parts = {pathlib.Path(m.name).name: archive.extractfile(m).read().decode() for m in archive if m.isfile()}
    listed = set(re.findall(r'^([a-z]+\.\w+) ', parts['README'], re.M))
    assert listed | {'README'} == set(parts) and 'MISSING' not in parts['README']
    assert not [name for name, text in parts.items() if 'hidden-in' in text]
    assert json.loads(parts['containers.json'])[0]['full_name'] == 'default/web/c0'
    assert json.loads(parts['status.json'])['policy']['name'] == 'static'
    assert 'policy: "static"' in parts['config.txt'] and 'nri-rpd answers' in parts['doctor.txt']


def test_support_without_a_daemon(make_node, tmp_path):
    """The archive says what is missing."""
    node = make_node(STATIC)
    node.stop()
    file = tmp_path / 'report.tar.gz'
    assert ctl(node, 'support', str(file)).code == OK
    with tarfile.open(file) as archive:
        readme = next(archive.extractfile(m).read().decode() for m in archive if m.name.endswith('/README'))
    assert re.search(r'^status.json .*MISSING', readme, re.M)
    piped = subprocess.run([BUILD / 'bin' / 'nri-rpctl', '--socket', node.paths['control'], 'support', '-'], capture_output=True, check=True,
                           env={**os.environ, 'TMPDIR': str(tmp_path)})
    with tarfile.open(fileobj=io.BytesIO(piped.stdout)) as archive:
        assert [m for m in archive if m.name.endswith('/README')] and piped.stderr == b''
    assert not list(tmp_path.glob('nri-rp-support.*'))
    assert run_ctl('--socket', node.paths['control'], 'support', 'host:report.tar.gz', cwd=tmp_path).code == OK  # no other host is asked
    assert (tmp_path / 'host:report.tar.gz').exists()
    refused = ctl(node, 'support', str(tmp_path / 'none' / 'report.tar.gz'))
    assert refused.code == FAILED and 'cannot write' in refused.err


def test_version(make_node):
    node = make_node({'policy': 'none'})
    done = ctl(node, 'version')
    mine, daemon = done.out.splitlines()
    assert mine.split()[0] == 'nri-rpctl' and daemon.split()[0] == 'nri-rpd' and mine.split()[1] == daemon.split()[1]
    assert ctl(node, '--version').out == done.out
    doc = ctl_json(node, 'version')
    assert doc['nri-rpd']['pid'] == node.status()['pid']


def test_config_schema():
    """For programs a JSON schema with a section a module; for people the keys of one."""
    done = run_ctl('config', 'schema', '--module-dir', BUILD / 'modules')
    assert done.code == OK
    schema = json.loads(done.out)
    assert {'policy', 'controllers', 'metrics', 'static', 'topology-aware', 'balloons', 'rdt', 'blkio'} <= set(schema['properties'])
    keys = run_ctl('config', 'schema', 'static', 'core', '--module-dir', BUILD / 'modules')
    assert keys.code == OK and 'reservedResources' in keys.out and 'onPolicyError' in keys.out
    missing = run_ctl('config', 'schema', 'no-such', '--module-dir', BUILD / 'modules')
    assert missing.code == FAILED and 'no-such' in missing.err
