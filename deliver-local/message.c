#include "deliver-local/child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/domain.h"
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

struct line {
	const char *data;
	size_t len; /* without its end */
};

/* The next line; false at the end. */
static bool
next_line(struct line *left, struct line *ret)
{
	const char *lf;

	if (left->len == 0)
		return false;
	lf = memchr(left->data, '\n', left->len);
	ret->data = left->data;
	ret->len = lf == NULL ? left->len : (size_t)(lf - left->data);
	left->len -= ret->len + (lf != NULL);
	left->data += ret->len + (lf != NULL);
	if (ret->len > 0 && ret->data[ret->len - 1] == '\r')
		ret->len--;
	return true;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Is this the field? Then *ret_value is the text behind the colon. */
static bool
is_field(const struct line *l, const char *name, struct line *ret_value)
{
	size_t n = strlen(name);

	if (l->len < n || strncasecmp(l->data, name, n) != 0)
		return false;
	while (n < l->len && is_blank(l->data[n]))
		n++;
	if (n == l->len || l->data[n] != ':')
		return false;
	*ret_value = (struct line){ l->data + n + 1, l->len - n - 1 };
	return true;
}

static void
trim(struct line *l)
{
	while (l->len > 0 && is_blank(l->data[0])) {
		l->data++;
		l->len--;
	}
	while (l->len > 0 && is_blank(l->data[l->len - 1]))
		l->len--;
}

static bool
same_address(const struct line *l, const char *address)
{
	char here[ADDRESS_FOLDED_MAX + 1], there[ADDRESS_FOLDED_MAX + 1];
	char copy[ADDRESS_MAX + 1];

	if (l->len > ADDRESS_MAX || memchr(l->data, '\0', l->len) != NULL)
		return false;
	memcpy(copy, l->data, l->len);
	copy[l->len] = '\0';
	return address_fold(copy, there) == 0 &&
	    address_fold(address, here) == 0 && strcmp(there, here) == 0;
}

/* An address on a line of its own below the name is still the field's. */
static void
unfold_empty(struct line *left, struct line *value)
{
	struct line ahead = *left, next;

	trim(value);
	while (value->len == 0 && ahead.len > 0 && is_blank(ahead.data[0])) {
		next_line(&ahead, &next);
		trim(&next);
		*value = next;
	}
}

static int
scan_header(struct line left, const char *recipient)
{
	struct line l, value;

	while (next_line(&left, &l) && l.len > 0) {
		if (!is_field(&l, "Delivered-To", &value))
			continue;
		unfold_empty(&left, &value);
		if (same_address(&value, recipient))
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
		r = scan_header((struct line){ data, size }, m->recipient);
	free(data);
	return r;
}
