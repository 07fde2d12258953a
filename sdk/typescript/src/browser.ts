// SPDX-License-Identifier: Apache-2.0
// The package in browsers: fetch over TCP, no local files.
import { usePlatform } from "./platform.js";
import { findEndpoint } from "./web/endpoint.js";
import { WebHttp } from "./web/http.js";

usePlatform({ findEndpoint, openHttp: (endpoint) => new WebHttp(endpoint), files: null, forward: null });

export * from "./exports.js";
