# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven over its debugging pipe: messages of JSON, each ended by a zero byte."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))), None)
ANSWER_S = 60


class Browser:
    def __init__(self, width=1600, height=1000, dark=False):
        self.profile = tempfile.TemporaryDirectory(prefix='nri-rp-browser-', ignore_cleanup_errors=True)
        to_browser, self.out = os.pipe()
        self.inp, from_browser = os.pipe()
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_browser, from_browser)]
        command = [PROGRAM, '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--hide-scrollbars',
                   '--remote-debugging-pipe', '--user-data-dir=' + self.profile.name, 'about:blank']
        # the browser's ends of the pipe have to be descriptors 3 and 4
        self.process = subprocess.Popen(command, preexec_fn=lambda: [os.dup2(fd, at) for at, fd in enumerate(ends, 3)], pass_fds=(3, 4),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in ends:
            os.close(fd)
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.last, self.session, self.complaints = b'', 0, None, []
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log'):
            self.call(domain + '.enable')
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'},
                                                          {'name': 'prefers-reduced-motion', 'value': 'reduce'}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(ANSWER_S)
        os.close(self.out)
        os.close(self.inp)
        self.profile.cleanup()

    def _message(self, deadline):
        while b'\0' not in self.rest:
            ready, _, _ = select.select([self.inp], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.inp, 1 << 20) if ready else b''
            assert data, 'the browser says nothing'
            self.rest += data
        text, self.rest = self.rest.split(b'\0', 1)
        return json.loads(text)

    def call(self, method, **params):
        self.last += 1
        message = {'id': self.last, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.out, json.dumps(message).encode() + b'\0')
        deadline = time.monotonic() + ANSWER_S
        while True:
            said = self._message(deadline)
            if said.get('id') == self.last:
                assert 'error' not in said, said
                return said['result']
            # what a page complains of: exceptions that nobody caught, and what its policy of contents forbids
            if said.get('method') == 'Runtime.exceptionThrown':
                self.complaints.append(said['params']['exceptionDetails'].get('exception', {}).get('description') or str(said['params']))
            elif said.get('method') == 'Log.entryAdded' and said['params']['entry']['source'] not in ('network',):
                self.complaints.append(said['params']['entry']['text'] + ' ' + said['params']['entry'].get('url', ''))

    def open(self, url):
        self.call('Page.navigate', url=url)

    def evaluate(self, expression):
        done = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        assert 'exceptionDetails' not in done, done
        return done['result'].get('value')

    def until(self, expression, seconds=ANSWER_S):
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < end, 'never true: %s; %s' % (expression, self.complaints)
            time.sleep(0.05)

    def key(self, key, code=None):
        for kind in ('keyDown', 'keyUp'):
            more = {'text': key} if kind == 'keyDown' and len(key) == 1 else {}
            self.call('Input.dispatchKeyEvent', type=kind, key=key, code=code or key, **more)

    def picture(self, path):
        data = self.call('Page.captureScreenshot', format='png')['data']
        with open(path, 'wb') as f:
            f.write(base64.b64decode(data))
