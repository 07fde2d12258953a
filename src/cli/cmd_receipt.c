/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/client/program.h"
#include "cli/message.h"
#include "cli/resource.h"
#include "seal/seal.h"

/*
 * 'receipt verify' needs no daemon: it reads the receipt and a public key that the caller trusts,
 * given with --key or pinned before. A key that comes with a receipt proves nothing.
 */

#define FORMAT      "millibox-receipt-1"
#define RECEIPT_MAX (64u << 20)
#define CODE_MAX    (256u << 20)
#define PINS_MAX    65536

struct receipt_options {
	struct common_options common;
	const char *key;       /* verify */
	const char *code;      /* verify */
	const char *execution; /* verify */
	bool pin;              /* key */
};

/* Return: owned; NULL: no home. */
static char *pins_path(void)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (config && config[0] == '/')
		return xasprintf("%s/millibox/receipt-keys", config);
	return home && home[0] == '/' ? xasprintf("%s/.config/millibox/receipt-keys", home) : NULL;
}

static int read_source(const char *name, struct buf *b, struct error *err)
{
	bool is_stdin = str_equal(name, "-");
	int r = is_stdin ? program_read_fd(STDIN_FILENO, b) : file_read_at(AT_FDCWD, name, b);

	if (r < 0)
		return error_set(err, ERR_NOT_FOUND, -r, "read %s",
		                 is_stdin ? "standard input" : name);
	return buf_add(b, "", 1) < 0 ? error_set(err, ERR_TOO_LARGE, 0, "%s is too long", name) : 0;
}

/* One key per line. Return: whether one of them signed it. */
static int try_keys(char *text, const json_t *receipt, size_t *ret_tried, struct error *err)
{
	char *save = NULL;

	*ret_tried = 0;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned char key[SEAL_PUBLIC_LEN];

		line[strcspn(line, " \t\r")] = '\0';
		if (!*line || *line == '#')
			continue;
		if (seal_public_parse(line, key) < 0)
			return error_set(err, ERR_INVALID, 0, "'%.50s' is not a public key", line);
		++*ret_tried;
		error_clear(err);
		if (seal_check(receipt, FORMAT, key, err))
			return 1;
	}
	return 0;
}

/* Return: 1 signed by a trusted key, 0 not (*err says why), -1 no key. */
static int check_signature(const struct receipt_options *options, const json_t *receipt,
                           struct error *err)
{
	cleanup_buf struct buf keys = BUF_INIT(PINS_MAX);
	cleanup_free char *pins = pins_path();
	size_t tried = 0;
	int r;

	if (options->key && access(options->key, F_OK) < 0) {
		/* Not a file: the key itself. */
		if (buf_add(&keys, options->key, strlen(options->key) + 1) < 0)
			return error_set(err, ERR_INVALID, 0, "--key is too long");
	} else if (options->key) {
		if (read_source(options->key, &keys, err) < 0)
			return -1;
	} else if (!pins || access(pins, F_OK) < 0 || read_source(pins, &keys, err) < 0) {
		error_clear(err);
		return error_set(err, ERR_INVALID, 0,
		                 "no public key to check with: give --key, or pin the key of a "
		                 "daemon that you trust with 'millibox receipt key --pin'");
	}
	r = try_keys(keys.data, receipt, &tried, err);
	if (r == 0 && tried == 0)
		return error_set(err, ERR_INVALID, 0,
		                 "no public key to check with: the file has "
		                 "none");
	return r;
}

/* @object: a receipt, or a result that has one. */
static const json_t *find_receipt(const json_t *object)
{
	const json_t *inner = json_object_get(object, "receipt");

	return inner ? inner : object;
}

static bool has_text(const json_t *object, const char *key, const char *text)
{
	const json_t *own = json_object_get(object, key);

	/* Text of JSON may contain NUL. */
	return json_is_string(own) && json_string_length(own) == strlen(text) &&
	       str_equal(json_string_value(own), text);
}

static bool has_hash(const json_t *object, const char *key, const char *data, size_t len)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof(hash) + 1];

	(void)crypto_hash_sha256(hash, (const unsigned char *)data, len);
	(void)sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	return has_text(object, key, hex);
}

/*
 * A result has text, not bytes. Receipts of earlier daemons have the hash of the bytes only: text
 * with U+FFFD for some of them cannot be checked and is refused.
 */
static bool is_output_signed(const json_t *object, const json_t *outcome, const char *stream)
{
	const json_t *text = json_object_get(object, stream);
	cleanup_free char *bytes_key = xasprintf("%s_sha256", stream);
	cleanup_free char *text_key = xasprintf("%s_text_sha256", stream);
	const char *key = json_object_get(outcome, text_key) ? text_key : bytes_key;

	return json_is_string(text) &&
	       has_hash(outcome, key, json_string_value(text), json_string_length(text));
}

static bool is_same(const json_t *object, const json_t *part, const char *key)
{
	return json_equal(json_object_get(object, key), json_object_get(part, key));
}

/* Results of the control plane's later paths call success "completed". */
static bool is_same_status(const json_t *object, const json_t *outcome)
{
	return is_same(object, outcome, "status") ||
	       (has_text(object, "status", "completed") && has_text(outcome, "status", "success"));
}

/* @object: a result. */
static bool is_result_signed(const json_t *object, const json_t *payload)
{
	const json_t *outcome = json_object_get(payload, "outcome");

	return is_same(object, payload, "execution_id") && is_same_status(object, outcome) &&
	       is_same(object, outcome, "exit_code") && is_same(object, payload, "isolation") &&
	       is_output_signed(object, outcome, "stdout") &&
	       is_output_signed(object, outcome, "stderr");
}

static int check_code(const char *file, const json_t *payload, struct error *err)
{
	cleanup_buf struct buf code = BUF_INIT(CODE_MAX);

	if (read_source(file, &code, err) < 0)
		return -1;
	if (has_hash(payload, "code_sha256", code.data, code.len - 1))
		return 1;
	(void)error_set(err, ERR_INVALID, 0, "it was issued for other code than %s", file);
	return 0;
}

/* A genuine receipt of another execution is no proof of this one. Return: 1, 0 or -1. */
static int check_binding(const struct receipt_options *options, const json_t *object,
                         const json_t *payload, struct error *err)
{
	if (options->execution && !has_text(payload, "execution_id", options->execution)) {
		(void)error_set(err, ERR_INVALID, 0, "it was issued for another execution than %s",
		                options->execution);
		return 0;
	}
	if (json_object_get(object, "receipt") && !is_result_signed(object, payload)) {
		(void)error_set(err, ERR_INVALID, 0, "it was issued for another result");
		return 0;
	}
	return options->code ? check_code(options->code, payload, err) : 1;
}

static void print_field(const char *name, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	(void)printf("%-14s", name);
	if (json_is_string(value))
		message_print_safe(stdout, json_string_value(value));
	else
		(void)putchar('-');
	(void)putchar('\n');
}

static void print_payload(const json_t *receipt, const json_t *payload)
{
	const json_t *isolation = json_object_get(payload, "isolation");

	(void)printf("%-14s%s\n", "receipt", "valid");
	print_field("signed by", receipt, "key_id");
	print_field("execution", payload, "execution_id");
	print_field("tenant", payload, "tenant");
	print_field("code sha256", payload, "code_sha256");
	print_field("status", json_object_get(payload, "outcome"), "status");
	print_field("completed", payload, "completed_at");
	print_field("isolation", isolation, "mode");
	print_field("network", isolation, "network");
	print_field("filter sha256", isolation, "filter_sha256");
}

static int run_verify(const void *values, const struct args *args, struct error *err)
{
	const struct receipt_options *options = values;
	cleanup_buf struct buf text = BUF_INIT(RECEIPT_MAX);
	json_auto_t *object = NULL;
	const json_t *receipt, *payload;
	int r;

	if (args->words_count != 1)
		return error_set(err, ERR_INVALID, 0, "expected one file, or -");
	if (sodium_init() < 0)
		return error_set(err, ERR_SYSTEM, 0, "set up libsodium");
	if (read_source(args->words[0], &text, err) < 0)
		return -1;
	object = json_loadb(text.data, text.len - 1, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	receipt = find_receipt(object);
	payload = json_object_get(receipt, "payload");
	if (!payload)
		return error_set(err, ERR_INVALID, 0, "%s has no receipt", args->words[0]);
	r = check_signature(options, receipt, err);
	if (r == 1)
		r = check_binding(options, object, payload, err);
	if (r < 0)
		return -1;
	if (r == 0) {
		message_show("invalid receipt: %s", err->msg);
		error_clear(err);
		return CLI_FAILED;
	}
	if (options->common.json)
		message_print_json(payload);
	else
		print_payload(receipt, payload);
	return CLI_OK;
}

static int add_pin(const char *key, const char *id, struct error *err)
{
	cleanup_free char *path = pins_path();
	cleanup_free char *dir = path ? xstrdup(path) : NULL;
	cleanup_free char *line = xasprintf("%s %s\n", key, id);
	cleanup_close int fd = -1;
	int r;

	if (!path)
		return error_set(err, ERR_INVALID, 0, "HOME is not set");
	*strrchr(dir, '/') = '\0';
	r = file_mkdir_parents(dir, 0700);
	fd = r < 0 ? r : fd_open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
	r = fd < 0 ? fd : fd_write_all(fd, line, strlen(line));
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "write %s", path);
	message_show("pinned in %s", path);
	return 0;
}

static int run_key(const void *values, const struct args *args, struct error *err)
{
	const struct receipt_options *options = values;
	const struct daemon_call call = {.method = "GET", .path = "/api/v1/receipts/key"};
	json_auto_t *answer = NULL;
	unsigned char key[SEAL_PUBLIC_LEN];
	const char *text, *id;
	int status;

	if (args->words_count != 0)
		return error_set(err, ERR_INVALID, 0, "expected no argument");
	status = resource_call(&options->common, &call, &answer, err);
	if (!answer)
		return status;
	text = message_text(answer, "public_key");
	id = message_text(answer, "key_id");
	if (seal_public_parse(text, key) < 0)
		return error_set(err, ERR_PROTOCOL, 0, "the daemon's answer has no public key");
	(void)puts(text);
	return options->pin && add_pin(text, id, err) < 0 ? -1 : status;
}

#define AT(member) offsetof(struct receipt_options, member)

/* clang-format off */
static const struct option_row verify_rows[] = {
	{"key",       'k', OPTION_TEXT, AT(key),         "KEY",  "the public key, or a file with one per line; default: the pinned ones"},
	{"code",      'c', OPTION_TEXT, AT(code),        "FILE", "the receipt must be of this code"},
	{"execution", 'x', OPTION_TEXT, AT(execution),   "ID",   "the receipt must be of this execution"},
	{"json",      0,   OPTION_FLAG, AT(common.json), NULL,   "print what was signed as JSON"},
};
static const struct option_row key_rows[] = {
	{"pin", 0, OPTION_FLAG, AT(pin), NULL, "trust it from now on: add it to the pinned keys of this user"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(receipt_verify, "receipt verify", "(FILE | -)", "Check a signed receipt; needs no daemon",
        run_verify, verify_rows, struct receipt_options,
        .text = "FILE is a receipt, or a result that has one; -: standard input.\n");
COMMAND(receipt_key, "receipt key", "", "Show the public key that signs receipts", run_key,
        key_rows, struct receipt_options);
