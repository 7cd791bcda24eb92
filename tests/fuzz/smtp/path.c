/* Addresses as arguments of MAIL and RCPT: no address ends its path, and a
 * server that takes quotes off has the address that we meant. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "smtp/smtp.h"

/* The local part without its quotes and escapes. */
static void
unquote(const char *s, size_t len, struct buf *out)
{
	size_t i, end = len;

	if (len >= 2 && s[0] == '"' && s[len - 1] == '"') {
		end = len - 1;
		for (i = 1; i < end; i++) {
			if (s[i] == '\\' && i + 1 < end)
				i++;
			MUST(buf_add_char(out, s[i]) == 0);
		}
		return;
	}
	MUST(buf_add(out, s, len) == 0);
}

/* As a server reads it: a path ends at the first `>` outside of quotes. */
static size_t
path_end(const char *p, size_t len)
{
	bool quoted = false;
	size_t i;

	for (i = 1; i < len; i++) {
		if (quoted && p[i] == '\\')
			i++;
		else if (p[i] == '"')
			quoted = !quoted;
		else if (p[i] == '>' && !quoted)
			return i;
	}
	return len;
}

static void
check_path(const char *path, size_t len, const char *address)
{
	struct buf sent = { 0 }, meant = { 0 };
	size_t local = address_local_len(address), domain;
	const char *at;

	MUST(len >= 2 && path[0] == '<' && path[len - 1] == '>');
	MUST(path_end(path, len) == len - 1);
	if (address[0] == '\0') {
		MUST(len == 2);
		return;
	}
	/* The dot of the root is not sent. */
	domain = strlen(address) - local;
	if (domain > 2 && address[local + domain - 1] == '.')
		domain--;
	at = memrchr(path, '@', len);
	if (strchr(address, '@') == NULL)
		at = path + len - 1;
	else
		MUST(strncmp(at + 1, address + local + 1, domain - 1) == 0);
	unquote(path + 1, (size_t)(at - path) - 1, &sent);
	unquote(address, local, &meant);
	if (sent.len != meant.len ||
	    memcmp(buf_str(&sent), buf_str(&meant), sent.len) != 0) {
		/* Not a quoted string in itself: it was meant as it stands. */
		buf_reset(&meant);
		MUST(buf_add(&meant, address, local) == 0);
	}
	MUST(sent.len == meant.len);
	MUST(memcmp(buf_str(&sent), buf_str(&meant), sent.len) == 0);
	buf_done(&sent);
	buf_done(&meant);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	char *address = fuzz_string(&in);
	struct buf out = { 0 };
	size_t i;
	int r;

	MUST(buf_add_str(&out, "RCPT TO:") == 0);
	r = smtp_path_add(&out, address);
	MUST(smtp_path_is_fit(address) == (r == 0));
	if (r < 0) {
		MUST(r == -EINVAL && strcmp(out.data, "RCPT TO:") == 0);
	} else {
		for (i = 0; i < out.len; i++)
			MUST((unsigned char)out.data[i] >= 0x20 &&
			    out.data[i] != 0x7f);
		check_path(out.data + 8, out.len - 8, address);
	}
	buf_done(&out);
	free(address);
	return 0;
}
