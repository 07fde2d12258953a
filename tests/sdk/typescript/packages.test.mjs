// SPDX-License-Identifier: Apache-2.0
// Packages: of single executions, of new sandboxes and of running ones.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client, Sandbox, errors } from 'millibox';

const client = new Client();
after(() => client.close());
const USE = 'import tinypkg; tinypkg.VALUE';

test('an execution with packages', async () => {
  const shown = [];
  const result = await client.runCode('import watched; 7', { packages: ['watched'], onInstall: (text) => shown.push(text) });
  assert.equal(result.json, 7);
  assert.match(shown.join(''), /Successfully installed watched/);
  assert.equal((await client.runCode(USE, { packages: ['tinypkg==1.0'] })).json, '1.0');
  const failed = client.runCode('1', { packages: ['no-such-package'], onInstall: () => undefined });
  await assert.rejects(failed, (error) => error instanceof errors.InstallFailedError && error.log.includes('no-such-package'));
});

test('a sandbox with packages', async () => {
  const box = await Sandbox.create({ client, packages: ['tinypkg==1.0'] });
  assert.equal((await box.runCode(USE)).json, '1.0');
  await box.close();
  await assert.rejects(Sandbox.create({ client, packages: ['no-such-package'] }), errors.InstallFailedError);
});

test('packages for a running sandbox', async () => {
  const box = await Sandbox.create({ client });
  try {
    assert.equal((await box.runCode(`x = 41; ${USE}`)).error.name, 'ModuleNotFoundError');
    const shown = [];
    const done = await box.install(['tinypkg==1.0', 'needy'], { onOutput: (text) => shown.push(text) });
    assert.deepEqual([done.manager, done.packages], ['pip', ['tinypkg==1.0', 'needy']]);
    assert.match(shown.join(''), /Successfully installed/);
    assert.equal((await box.runCode(`${USE} + str(x)`)).json, '1.041');
    assert.equal((await box.install('pip')).lock, null);
    assert.equal((await box.install([], { lock: done.lock })).manager, 'pip');
    await assert.rejects(box.install('no-such-package'), (error) => error instanceof errors.InstallFailedError && error.log.length > 0);
    await assert.rejects(box.install('x', { language: 'lua' }), { name: 'InvalidParameterError', field: 'language' });
    const gone = new Error('not any more');
    await assert.rejects(box.install('needy', { signal: AbortSignal.abort(gone) }), gone);
  } finally {
    await box.close();
  }
});

test('hosts', async () => {
  // The policy of this daemon lets requests name none.
  await assert.rejects(client.runCode('1', { allow: ['api.example.com'] }), { name: 'PolicyDeniedError', field: 'network_allow' });
  assert.equal((await client.runCode('print(1)', { allow: [] })).stdout, '1\n');
});

test('what else a program is given', async () => {
  const signed = await client.runCode('import sys; sys.argv[0]', { fileName: 'job.py', receipt: 'signed' });
  assert.deepEqual([signed.json, typeof signed.receipt.payload], ['job.py', 'object']);
  assert.equal((await client.runCode('1')).receipt, null);
});
