// SPDX-License-Identifier: Apache-2.0
// Where the daemon is, in a browser: only arguments name it.
import { MilliboxError } from "../base_errors.js";
import { type Endpoint, type EndpointOptions, checkKey, checkUrl } from "../platform.js";

export function findEndpoint(options: EndpointOptions): Endpoint {
  if (options.socket || options.caFile) throw new MilliboxError("there are no sockets and files here: give only url");
  if (!options.url) throw new MilliboxError("give url, such as http://127.0.0.1:8000");
  const apiKey = options.apiKey ? checkKey(options.apiKey, "apiKey") : null;
  return { url: checkUrl(options.url), socket: null, apiKey, caFile: null };
}
