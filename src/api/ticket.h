/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the answer to an execution that is not waited for: given when it is on the disk. */

struct run_record;
struct http_request;

/** ticket_answer - @e was asked for as durable. @status: of the answer, once it is stored. */
void ticket_answer(struct http_request *req, struct run_record *e, int status);
