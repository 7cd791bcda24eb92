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

static bool
is_between(const char *text, size_t least, size_t most)
{
	const size_t len = strlen(text);

	return len >= least && len <= most;
}

/* Writes the key of the row. */
static const char *
credentials_judge(const struct credentials *t, char *const *word, size_t n,
    char ret_key[HOP_KEY_MAX])
{
	size_t i;

	if (n <= WORD_SECRET)
		return "next hop, user and secret are needed";
	if (hop_key_of_row(word[WORD_KEY], ret_key) < 0)
		return "the first word is no next hop";
	for (i = 0; i < t->count; i++)
		if (strcmp(t->rows[i].key, ret_key) == 0)
			return "the next hop has a row already";
	if (!is_between(word[WORD_USER], 1, CREDENTIALS_USER_MAX))
		return "the user is empty or too long";
	if (!is_between(word[WORD_SECRET], 1, CREDENTIALS_SECRET_MAX))
		return "the secret is empty or too long";
	if (n > WORD_MECHANISM &&
	    strcmp(word[WORD_MECHANISM], "oauthbearer") != 0 &&
	    strcmp(word[WORD_MECHANISM], "xoauth2") != 0)
		return "the fourth word must be oauthbearer or xoauth2, or "
		       "absent; quote a password that has blanks";
	return NULL;
}

static int
take_line(void *arg, char *line, uint32_t number, const char **ret_word UNUSED,
    const char **ret_why)
{
	struct credentials *t = arg;
	char *word[NWORDS] = { NULL }, key[HOP_KEY_MAX] = "";
	struct credential row = { .line = number };
	size_t n = 0, i;
	int r = 0;

	if (*line == '#')
		return 0;
	*ret_why = line_words(line, word, NWORDS, &n);
	if (*ret_why == NULL && n > 0)
		*ret_why = credentials_judge(t, word, n, key);
	if (*ret_why != NULL)
		r = -EINVAL;
	else if (n > 0) {
		row.key = strdup(key);
		row.user = strdup(word[WORD_USER]);
		row.secret = strdup(word[WORD_SECRET]);
		row.token = n > WORD_MECHANISM;
		r = row.key == NULL || row.user == NULL || row.secret == NULL
		    ? -ENOMEM
		    : array_add(
			  &t->rows, &t->count, &t->room, &row, sizeof(row));
	}
	if (r == -ENOMEM) {
		row_done(&row);
		*ret_why = "out of memory";
	}
	for (i = 0; i < n; i++)
		wipe(&word[i]);
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
