/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: how an agent is started by a container runtime, instead of by the engine itself: words among
 * its arguments, and descriptors beside the control socket.
 */

/* Its standard descriptors are the runtime's: the agent replaces them. */
#define CONTAINER_WORD "container"
/* The control stream is standard input, if that is a socket, or standard input and output: for
 * runtimes that pass no other descriptor. */
#define CONTAINER_STDIO_WORD "stdio"
/* Followed by a mask of enum wire_layer, decimal: what the agent and its payloads may lack because
 * the runtime's kernel does not have it. HELLO says what was applied. */
#define CONTAINER_LACKS "lacks="
/* The root is an image's: its programs may be anywhere in it. */
#define CONTAINER_ROOT_WORD "own-root"
/* Not with CONTAINER_STDIO_WORD: the agent writes one byte there when it is ready to say HELLO,
 * which it does when the other end is closed: from then on the limits of the box are those of its
 * programs, without what the runtime needed to start. */
#define CONTAINER_READY_FD 5
