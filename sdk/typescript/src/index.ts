// SPDX-License-Identifier: Apache-2.0
// The package in Node.js.
import { findEndpoint } from "./node/endpoint.js";
import { forward } from "./node/forward.js";
import { NodeHttp } from "./node/http.js";
import { nodeFiles } from "./node/local_files.js";
import { usePlatform } from "./platform.js";

usePlatform({ findEndpoint, openHttp: (endpoint) => new NodeHttp(endpoint), files: nodeFiles, forward });

export * from "./exports.js";
export { LocalDaemon, type LocalOptions, local } from "./node/local.js";
