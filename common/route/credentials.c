#include "route/credentials.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/line.h"
#include "base/line_file.h"
#include "route/hop_key.h"

enum word {
	WORD_KEY,
	WORD_USER,
	WORD_SECRET,
	WORD_MECHANISM,
	NWORDS,
};

struct credentials {
	struct credential *rows;
	size_t count, room;
};

static void
wipe(char **text)
{
	if (*text != NULL)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

static void
row_done(struct credential *row)
{
	free(row->key);
	free(row->user);
	wipe(&row->secret);
}

/* ---- one line ---- */

static const char *
split(const char *line, struct buf word[NWORDS], size_t *ret_count)
{
	const char *why;
	size_t n = 0;

	for (;;) {
		line += strspn(line, " \t");
		if (*line == '\0')
			break;
		if (n == NWORDS)
			return "too many words";
		why = line_word(&line, &word[n++]);
		if (why != NULL)
			return why;
	}
	*ret_count = n;
	return NULL;
}

static const char *
judge(const struct credentials *t, const struct buf word[NWORDS], size_t n)
{
	char key[HOP_KEY_MAX];
	size_t i;

	if (n <= WORD_SECRET)
		return "next hop, user and secret are needed";
	if (hop_key_of_row(buf_str(&word[WORD_KEY]), key) < 0)
		return "the first word is no next hop";
	for (i = 0; i < t->count; i++)
		if (strcmp(t->rows[i].key, key) == 0)
			return "the next hop has a row already";
	if (word[WORD_USER].len == 0 ||
	    word[WORD_USER].len > CREDENTIALS_USER_MAX)
		return "the user is empty or too long";
	if (word[WORD_SECRET].len == 0 ||
	    word[WORD_SECRET].len > CREDENTIALS_SECRET_MAX)
		return "the secret is empty or too long";
	if (n > WORD_MECHANISM &&
	    strcmp(buf_str(&word[WORD_MECHANISM]), "oauthbearer") != 0 &&
	    strcmp(buf_str(&word[WORD_MECHANISM]), "xoauth2") != 0)
		return "the fourth word must be oauthbearer or xoauth2, or "
		       "absent; quote a password that has blanks";
	return NULL;
}

static int
append(struct credentials *t, const struct buf word[NWORDS], uint32_t line)
{
	char key[HOP_KEY_MAX] = "";
	const int r = hop_key_of_row(buf_str(&word[WORD_KEY]), key);
	struct credential row = {
		.key = strdup(key),
		.user = strdup(buf_str(&word[WORD_USER])),
		.secret = strdup(buf_str(&word[WORD_SECRET])),
		.token = word[WORD_MECHANISM].len > 0,
		.line = line,
	};

	if (r < 0 || row.key == NULL || row.user == NULL ||
	    row.secret == NULL ||
	    array_add(&t->rows, &t->count, &t->room, &row, sizeof(row)) < 0) {
		row_done(&row);
		return -ENOMEM;
	}
	return 0;
}

static int
take_line(void *arg, char *line, uint32_t number, const char **ret_word UNUSED,
    const char **ret_why)
{
	struct credentials *t = arg;
	struct buf word[NWORDS] = { 0 };
	size_t n = 0, i;
	int r = -EINVAL;

	if (*line == '#')
		return 0;
	*ret_why = split(line, word, &n);
	if (*ret_why == NULL && n == 0)
		return 0;
	if (*ret_why == NULL)
		*ret_why = judge(t, word, n);
	if (*ret_why == NULL) {
		*ret_why = "out of memory";
		r = append(t, word, number);
	}
	for (i = 0; i < NWORDS; i++)
		buf_wipe(&word[i]);
	return r;
}

/* ---- the file ---- */

/* Root may let a group read, as it does with the copy for the agents. */
static bool
is_secret(const struct stat *st)
{
	mode_t group = st->st_mode & S_IRWXG;

	return (st->st_mode & S_IRWXO) == 0 &&
	    (group == 0 || (group == S_IRGRP && st->st_uid == 0));
}

static int
check_rights(const char *path, struct buf *ret_error)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		(void)buf_printf(ret_error, "%s: %s", path, strerror(errno));
		return -errno;
	}
	if (is_secret(&st))
		return 0;
	(void)buf_printf(ret_error,
	    "%s: has mode %04o: others than its owner may not read it "
	    "(chmod 600)",
	    path, (unsigned)st.st_mode & 07777u);
	return -EACCES;
}

int
credentials_load(const char *path, struct credentials **ret_credentials,
    struct buf *ret_error)
{
	static const struct line_file how = {
		.max_bytes = CREDENTIALS_FILE_MAX,
		.max_line = CREDENTIALS_LINE_MAX,
		.take = take_line,
	};
	struct credentials *t = calloc(1, sizeof(*t));
	int r = 0;

	if (t == NULL)
		return -ENOMEM;
	if (*path != '\0')
		r = check_rights(path, ret_error);
	if (*path != '\0' && r == 0)
		r = line_file_read(path, &how, t, ret_error);
	if (r < 0)
		credentials_free(&t);
	else
		*ret_credentials = t;
	return r;
}

void
credentials_free(struct credentials **credentials)
{
	struct credentials *t = *credentials;

	*credentials = NULL;
	if (t == NULL)
		return;
	while (t->count > 0)
		row_done(&t->rows[--t->count]);
	free(t->rows);
	free(t);
}

const struct credential *
credentials_find(const struct credentials *credentials, const char *nexthop)
{
	struct hop_keys keys;
	size_t i, k;

	hop_keys_of(nexthop, &keys);
	for (k = 0; k < keys.count; k++)
		for (i = 0; i < credentials->count; i++)
			if (strcmp(credentials->rows[i].key, keys.key[k]) == 0)
				return &credentials->rows[i];
	return NULL;
}

const struct credential *
credentials_row(const struct credentials *credentials, size_t number)
{
	return number < credentials->count ? &credentials->rows[number] : NULL;
}
