// SPDX-License-Identifier: Apache-2.0
// The persistent TypeScript runner: JavaScript's, with a compiler before it.
'use strict';
const { start } = require('../javascript/session.js');
const typescript = require('./translate.js');

typescript.prepare();
typescript.translate('const sample: number = 1', 'sample'); // loads the compiler before a caller waits
start(typescript.translate);
