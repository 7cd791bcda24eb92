#include "deliver-smtp/protection/tls_inside.h"

#include <stdlib.h>
#include <string.h>

static void
clear(struct tls_session_row *row)
{
	SSL_SESSION_free(row->session);
	free(row->key);
	*row = (struct tls_session_row){ 0 };
}

static struct tls_session_row *
find(struct tls_sessions *s, const char *key)
{
	size_t i;

	for (i = 0; i < TLS_SESSIONS_MAX; i++)
		if (s->row[i].used != 0 && strcmp(s->row[i].key, key) == 0)
			return &s->row[i];
	return NULL;
}

/* A free row, else that which was used longest ago. */
static struct tls_session_row *
oldest(struct tls_sessions *s)
{
	struct tls_session_row *row = &s->row[0];
	size_t i;

	for (i = 1; i < TLS_SESSIONS_MAX; i++)
		if (s->row[i].used < row->used)
			row = &s->row[i];
	return row;
}

void
tls_sessions_put(struct tls_sessions *s, const char *key, SSL_SESSION *session)
{
	struct tls_session_row *row = find(s, key);
	char *copy = strdup(key);

	if (copy == NULL) {
		SSL_SESSION_free(session);
		return;
	}
	if (row == NULL)
		row = oldest(s);
	clear(row);
	row->key = copy;
	row->session = session;
	row->used = ++s->uses;
}

SSL_SESSION *
tls_sessions_find(struct tls_sessions *s, const char *key)
{
	struct tls_session_row *row = find(s, key);

	if (row == NULL)
		return NULL;
	row->used = ++s->uses;
	return row->session;
}

void
tls_sessions_drop(struct tls_sessions *s, const char *key)
{
	struct tls_session_row *row = find(s, key);

	if (row != NULL)
		clear(row);
}

void
tls_sessions_done(struct tls_sessions *s)
{
	size_t i;

	for (i = 0; i < TLS_SESSIONS_MAX; i++)
		clear(&s->row[i]);
}

int
tls_session_key(const struct tls_want *want, struct buf *out)
{
	size_t i;
	int r = buf_printf(out, "%s %s %s", tls_level_word(want->level),
	    want->relay, want->host == NULL ? "" : want->host);

	for (i = 0; r == 0 && i < want->nnames; i++)
		r = buf_printf(out, " %s", want->names[i]);
	return r;
}
