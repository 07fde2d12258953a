/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what one box may reach. A rule as an operator writes it is one of
 *
 *   NAME[:PORTS]                  pypi.org, *.example.com, api.test:8443,9443
 *   [METHODS] NAME[:PORTS][PATH]  GET,HEAD deb.debian.org:80/debian/... (plain HTTP only)
 *   TCP NAME:PORTS                TCP db.corp:5432 (tunnels that are not TLS)
 *   CIDR[:PORTS]                  10.0.0.0/8:5432, 10.2.0.7, [fd00::/8]:443
 *
 * Names match whole labels; *.example.com matches names below example.com only. Ports are 80 and
 * 443 unless given (one, or several with commas).
 *
 * A rule with methods or a path allows plain HTTP only, since a tunnel hides both. A path ends with
 * an asterisk (a prefix) or matches exactly; the query of a request is not part of its path. A
 * request path that servers may read in several ways never matches a rule with a path: an empty
 * segment, "." or "..", a backslash, an escape of a dot, slash, backslash, semicolon, percent sign
 * or control character, or escapes that are not valid UTF-8.
 *
 * A CIDR rule allows addresses: a literal target, or what a name resolves to when ANOTHER rule
 * allows the name and the address is not public ("pypi.corp" plus "10.1.0.0/16"). It has no methods
 * and no path. A range opens non-public addresses only if all of it is of one kind (see
 * address_opened_by()); a range of a kind that is never opened, as link-local, is an error.
 */

#include "base/attr.h"
#include "base/error.h"
#include "egress/target.h"

#define RULES_MAX      1024
#define RULES_TEXT_MAX 512 /* characters of one */
#define RULES_PORTS    16  /* of one */

struct rules;

void rules_free(struct rules *r);
void rules_freep(struct rules **r);
#define cleanup_rules attr_cleanup(rules_freep)
/**
 * rules_parse - @texts: one rule each, at most RULES_MAX. An error names the rule's text and what
 * is wrong with it. Return: NULL with *err filled.
 */
struct rules *rules_parse(const char *const *texts, size_t count, struct error *err)
	attr_owned(rules_free);

/* Refusals name the reason; the texts of the rules are the operator's. In the order of how near a
 * rule came to allowing the request. */
enum rules_verdict {
	RULES_NO_HOST, /* no rule names this host */
	RULES_ADDRESS, /* a literal address that no CIDR rule contains */
	RULES_PORT,    /* a rule names the host, not the port */
	RULES_TUNNEL, /* the host is allowed only for plain HTTP: methods or paths are restricted */
	RULES_METHOD,
	RULES_PATH,
	RULES_ALLOWED,
	RULES_COUNT
};

/**
 * rules_match - whether a target may be resolved and connected to. @method: NULL: a tunnel; @path
 * is not looked at then. @ret_rule: the text of the rule that decided, or NULL. Valid as long as
 * @r.
 */
enum rules_verdict rules_match(const struct rules *r, const struct target *target,
                               const char *method, const char *path, size_t path_len,
                               const char **ret_rule);
/** rules_look_inside - whether a request to @target is allowed, if at all, for its method or path.
 */
bool rules_look_inside(const struct rules *r, const struct target *target);
/**
 * rules_allow_address - whether a CIDR rule opens an address that is not public, for this port.
 * @by_itself: a rule for this one address.
 */
bool rules_allow_address(const struct rules *r, const struct in6_addr *a, uint16_t port,
                         bool by_itself);
/** rules_have_address - whether one is a CIDR rule. */
bool rules_have_address(const struct rules *r);
/** rules_cover - whether @r has a rule for the names and ports of the only rule of @one, which has
 * neither methods nor a path. */
bool rules_cover(const struct rules *r, const struct rules *one);
/** rules_allow_raw - whether a tunnel may carry anything: a rule "TCP HOST:PORT", or a CIDR rule
 * for a literal address. Other tunnels must be TLS. */
bool rules_allow_raw(const struct rules *r, const struct target *target);
