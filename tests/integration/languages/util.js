// SPDX-License-Identifier: Apache-2.0
exports.answer = () => 42;
