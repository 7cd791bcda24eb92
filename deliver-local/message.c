#include "deliver-local/child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/domain.h"
#include "base/header.h"
#include "base/io.h"

int
message_begin(struct message *m)
{
	m->at = 0;
	buf_reset(&m->prefix);
	return buf_printf(&m->prefix, "Return-Path: <%s>\nDelivered-To: %s\n",
	    m->sender, m->recipient);
}

void
message_done(struct message *m)
{
	buf_done(&m->prefix);
}

/* Of the content, which has them: `size` bytes from `at`. */
static int64_t
read_content(const struct message *m, char *out, size_t size, uint64_t at)
{
	int64_t n;

	if (m->data != NULL) {
		memcpy(out, m->data + at, size);
		return (int64_t)size;
	}
	n = io_pread_all(m->fd, out, size, (int64_t)(m->off + at));
	return n >= 0 && (size_t)n < size ? -EIO : n;
}

int64_t
message_read(struct message *m, char *out, size_t size)
{
	size_t head = 0;
	uint64_t content_at, left;
	int64_t n;

	if (m->at < m->prefix.len) {
		head = m->prefix.len - (size_t)m->at;
		head = head < size ? head : size;
		memcpy(out, m->prefix.data + m->at, head);
		m->at += head;
		size -= head;
	}
	if (m->at < m->prefix.len)
		return (int64_t)head;
	content_at = m->at - m->prefix.len;
	left = m->len - content_at;
	size = left < size ? (size_t)left : size;
	n = read_content(m, out + head, size, content_at);
	if (n < 0) /* with what there is before it; the next call fails */
		return head > 0 ? (int64_t)head : n;
	m->at += (uint64_t)n;
	return (int64_t)head + n;
}

/* ---- loops ---- */

static bool
same_address(const char *text, size_t len, const char *address)
{
	char here[ADDRESS_FOLDED_MAX + 1], there[ADDRESS_FOLDED_MAX + 1];
	char copy[ADDRESS_MAX + 1];

	while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL &&
	    text[len - 1] != '\0')
		len--;
	if (len > ADDRESS_MAX || memchr(text, '\0', len) != NULL)
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return address_fold(copy, there) == 0 &&
	    address_fold(address, here) == 0 && strcmp(there, here) == 0;
}

static int
scan_header(const char *data, size_t size, const char *recipient)
{
	const char *end = data + size, *text = NULL, *stop;

	while ((text = header_find(data, size, "Delivered-To", text)) != NULL) {
		stop = memchr(text, '\n', (size_t)(end - text));
		if (same_address(text,
			(size_t)((stop == NULL ? end : stop) - text),
			recipient))
			return MESSAGE_WAS_HERE;
	}
	return MESSAGE_NO_LOOP;
}

int
message_find_loop(const struct message *m)
{
	size_t size =
	    m->len < MESSAGE_HEADER_MAX ? (size_t)m->len : MESSAGE_HEADER_MAX;
	char *data = malloc(size + 1);
	int64_t n;
	int r;

	if (data == NULL)
		return -ENOMEM;
	n = read_content(m, data, size, 0);
	if (n < 0)
		r = (int)n;
	else
		r = scan_header(data, size, m->recipient);
	free(data);
	return r;
}
