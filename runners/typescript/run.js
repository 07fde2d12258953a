// SPDX-License-Identifier: Apache-2.0
// Runs one TypeScript program.
'use strict';
const { start, takeOptions } = require('../javascript/run.js');
const typescript = require('./translate.js');

const { target } = takeOptions();
typescript.prepare(target);
start(typescript.translate);
