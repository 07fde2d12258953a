// SPDX-License-Identifier: Apache-2.0
// fetch() of Node.js follows HTTPS_PROXY from 24 on, and in 22 from 22.21 on (NODE_USE_ENV_PROXY). Here older ones learn it: HTTPS goes
// through a tunnel, plain HTTP as a request to the proxy. Nothing is loaded before the first call.
'use strict';

const DISPATCHER = Symbol.for('undici.globalDispatcher.1');
const { process } = globalThis; // the program may delete it

/** Whether this Node.js does it by itself, or there is no proxy. */
function isNeedless() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return !process.env.HTTPS_PROXY || major >= 24 || (major === 22 && minor >= 21) || typeof globalThis.fetch !== 'function';
}

const isLocal = (host) => /^(localhost|127\.[\d.]+|\[?::1\]?)$/.test(host);

/** A socket of node:net or node:tls, once it is connected. */
function whenReady(socket, event, done) {
  socket.once('error', done);
  socket.once(event, () => done(null, socket.off('error', done)));
}

function openTunnel(proxy, path, done) {
  const headers = { host: path };
  const request = require('http').request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path, headers, agent: false });
  request.once('error', done);
  request.once('connect', (answer, socket) => {
    if (answer.statusCode === 200) return done(null, socket);
    socket.destroy();
    return done(new Error(`the proxy refused ${path}: ${answer.statusCode} ${answer.statusMessage}`));
  });
  request.end();
}

/** A socket to a host: for plain HTTP only to the proxy itself, or to a server in the box. */
function connect(proxy, options, done) {
  const { hostname, protocol, servername } = options;
  const host = hostname.replace(/^\[|\]$/g, '');
  const port = Number(options.port) || (protocol === 'https:' ? 443 : 80);
  const wrap = (error, socket) => {
    if (error) return done(error);
    const settings = { ...options, host, servername: servername || host, socket, ALPNProtocols: ['http/1.1'] };
    return whenReady(require('tls').connect(settings), 'secureConnect', done);
  };
  const next = protocol === 'https:' ? wrap : done;
  if (protocol === 'https:' && !isLocal(host)) openTunnel(proxy, `${hostname}:${port}`, next);
  else whenReady(require('net').connect({ host, port }), 'connect', next);
}

function install() {
  const proxy = new URL(process.env.HTTPS_PROXY);
  void globalThis.Headers; // loads the library of fetch()
  const { constructor: Agent } = globalThis[DISPATCHER];
  class ProxyAgent extends Agent {
    dispatch(options, handler) {
      const origin = new URL(options.origin);
      if (origin.protocol !== 'http:' || isLocal(origin.hostname)) return super.dispatch(options, handler);
      const headers = Array.isArray(options.headers) ? [...options.headers, 'host', origin.host] : { host: origin.host, ...options.headers };
      return super.dispatch({ ...options, origin: proxy.origin, path: origin.origin + options.path, headers }, handler);
    }
  }
  globalThis[DISPATCHER] = new ProxyAgent({ connect: (options, done) => connect(proxy, options, done) });
}

module.exports = () => {
  if (isNeedless()) return;
  const { fetch } = globalThis;
  let isReady = false;
  globalThis.fetch = function (input, init = undefined) {
    if (!isReady) install();
    isReady = true;
    return fetch(input, init);
  };
};
